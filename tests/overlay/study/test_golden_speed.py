"""bench golden: rows, and what stands where onnxruntime is missing. No test depends on how fast it is."""

import builtins
import json

import numpy as np
import pytest

from bitloom.golden.kernels.tiled import cpu
from bitloom.golden.zoo import mlperf_tiny
from bitloom.overlay.study import golden_speed
from tests.commands import call

KEYS = {"network", "batch", "implementation", "ms", "times_onnxruntime", "device", "threads", "reason"}


def test_rows():
    pytest.importorskip("onnxruntime")
    rows = golden_speed.measure(["ad"], batches=[1, 2], rounds=1)
    assert all(set(row) == KEYS for row in rows)
    assert [(row["batch"], row["implementation"]) for row in rows] == [
        (batch, name) for batch in (1, 2) for name in (golden_speed.GOLDEN, golden_speed.ONNXRUNTIME)
    ]
    for ours, theirs in zip(rows[::2], rows[1::2]):
        assert ours["times_onnxruntime"] == pytest.approx(ours["ms"] / theirs["ms"])
        assert theirs["times_onnxruntime"] == 1
        assert ours["threads"] == cpu.processors()
        assert ours["device"].endswith(f"path {cpu.paths()[0]}")


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", mlperf_tiny.NETWORKS)
def test_onnxruntime_runs_layers_of_the_same_sizes(name):
    pytest.importorskip("onnxruntime")
    model = mlperf_tiny.seeded(mlperf_tiny.NETWORKS[name]())
    (result,) = golden_speed.onnxruntime_contender(model, 3).runs[0]()
    assert result.dtype == np.uint8
    assert result.shape[:2] == (3, model.network.output.channels)


def test_without_onnxruntime_golden_is_measured_and_the_command_says_why(monkeypatch):
    real = builtins.__import__

    def without(name, *arguments, **options):
        if name == "onnxruntime":
            raise ImportError(f"No module named {name!r}", name=name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    arguments = ["bench", "golden", "ad", "--batch", "1", "--rounds", "1"]
    ours, theirs = json.loads(call(*arguments, "--json").stdout)
    assert ours["ms"] > 0
    assert (ours["times_onnxruntime"], theirs["ms"]) == (None, None)
    assert theirs["reason"].startswith("onnxruntime was not found: ")
    shown = call(*arguments).stdout
    assert f"onnxruntime int8: not run: {theirs['reason']}" in " ".join(shown.split())
