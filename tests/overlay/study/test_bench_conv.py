"""bench cpu and bench gpu: rows, bytes, what stands where something was not run. No test depends on how fast it is."""

import importlib.util
import json
from functools import partial

import numpy as np
import pytest

from bitloom.golden.kernels.tiled import cpu, gpu
from bitloom.overlay.study import convolutions as bench_conv
from bitloom.overlay.study import torch_conv
from bitloom.overlay.study.contenders import ConvShape
from bitloom.overlay.study.convolutions import TimedRow
from tests import commands
from tests.errors import value_error

KEYS = {"shape", "batch", "implementation", "ms", "speedup_vs_torch_fp32", "device", "threads", "reason"}
KEYS |= {"input_bytes", "weight_bytes"}
SMALL = ConvShape(96, 70, 3, 5, 1)
TORCH = ["torch bf16", "torch fp16", "torch int8"]
CPU = [*(f"bitloom {path}" for path in cpu.paths()), "packing the input", "torch fp32", *TORCH]
CUDA = ["bitloom popc", "bitloom mma-xor", "bitloom mma-and", "torch fp32", "torch tf32", *TORCH]
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")


@pytest.fixture
def no_torch(monkeypatch):
    monkeypatch.setattr(torch_conv, "missing", lambda: torch_conv.NO_TORCH)


def measured(device: str = "cpu", shape: ConvShape = SMALL, batch: int = 2) -> dict[str, TimedRow]:
    rows = bench_conv.measure(device, chosen=[shape], batches=[batch], rounds=1, threads=1)
    assert all(set(row) == KEYS for row in rows)
    return {row["implementation"]: row for row in rows}


call = partial(commands.call, "bench")


def test_without_pytorch_ours_is_measured_and_the_rows_of_pytorch_say_why_not(no_torch):
    rows = measured()
    assert list(rows) == CPU
    for name, row in rows.items():
        assert (row["shape"], row["batch"], row["threads"]) == ("96->70 3x3 at 5x5 padding 1", 2, 1)
        assert row["speedup_vs_torch_fp32"] is None
        assert row["device"].endswith(f", path {cpu.paths()[0]}, PyTorch missing")
        if name.startswith("torch"):
            assert (row["ms"], row["reason"]) == (None, "PyTorch was not found: pip install torch")
        else:
            assert row["ms"] > 0
            assert row["reason"] == ""


def test_packed_maps_and_weights_take_a_32nd_of_fp32(no_torch):
    rows = measured(shape=ConvShape(128, 64, 3, 4, 0), batch=3)
    ours, fp32, int8 = (rows[name] for name in ("bitloom scalar", "torch fp32", "torch int8"))
    assert (fp32["input_bytes"], fp32["weight_bytes"]) == (4 * 3 * 4 * 4 * 128, 4 * 64 * 9 * 128)
    assert fp32["input_bytes"] == 32 * ours["input_bytes"] == 4 * int8["input_bytes"]
    assert fp32["weight_bytes"] == 32 * ours["weight_bytes"] == 4 * int8["weight_bytes"]


def test_without_a_compiler_our_rows_say_so(no_torch, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-g++")
    cpu.library.cache_clear()
    rows = measured()
    for path in cpu.paths():
        row = rows[f"bitloom {path}"]
        assert row["ms"] is None
        assert row["reason"].startswith("C++ compiler 'no-such-g++' was not found: ")


@needs_torch
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("number", torch_conv.FORMATS["cpu"])
def test_pytorch_computes_the_same_convolution(number, padding):
    rng = np.random.default_rng(3)
    x, weight = rng.choice(np.int8([-1, 1]), (2, 4, 4, 3)), rng.choice(np.int8([-1, 1]), (5, 3, 3, 3))
    padded = np.pad(x, [(0, 0), (padding, padding), (padding, padding), (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))  # (N, H', W', C, 3, 3)
    sums = np.einsum("nyxcij,oijc->noyx", windows.astype(int), weight.astype(int))
    runs = torch_conv.convolutions(number, x, weight, padding, "cpu")
    assert len(runs) == 2
    for run in runs:
        result = run()
        if number == "int8":  # its output has steps of 16
            np.testing.assert_array_equal(result.dequantize().numpy(), np.rint(sums / 16) * 16)
        else:
            np.testing.assert_array_equal(result.float().numpy(), sums)


def test_requests_are_checked():
    with value_error("bench: device must be one of cpu, cuda, got 'tpu'"):
        bench_conv.measure("tpu", chosen=[SMALL])
    with value_error("bench: rounds must be >= 1, got 0"):
        bench_conv.measure("cpu", chosen=[SMALL], rounds=0)


@needs_torch
def test_only_tf32_may_round_to_tf32():
    """PyTorch's setting is one for all: each run makes its own."""
    import torch

    x, weight = np.ones((1, 3, 3, 2), np.int8), np.ones((1, 3, 3, 2), np.int8)
    for number in ("fp32", "tf32", "fp32"):
        for run in torch_conv.convolutions(number, x, weight, 0, "cpu"):
            run()
            assert torch.backends.cudnn.allow_tf32 is (number == "tf32")


@needs_torch
def test_an_output_unlike_pytorchs_is_an_error(monkeypatch):
    real = cpu.Convolution.__call__

    def flipped(self, words, **options):
        out = real(self, words, **options)
        out[0, 0, 1, 2] ^= np.uint64(5)
        return out

    monkeypatch.setattr(cpu.Convolution, "__call__", flipped)
    with value_error(f"{SMALL}: all bits of bitloom {cpu.paths()[0]} must equal PyTorch's, got 2 others"):
        measured()


@pytest.mark.skipif(gpu.missing() is None, reason="there is a GPU")
def test_without_a_gpu_every_row_is_not_run():
    rows = measured("cuda")
    assert list(rows) == CUDA
    for name, row in rows.items():
        assert (row["ms"], row["speedup_vs_torch_fp32"]) == (None, None)
        assert row["reason"] == (gpu.missing() if name.startswith("bitloom") else torch_conv.no_cuda())
        assert row["device"].startswith("no GPU, PyTorch ")
    shown = call("gpu", "--shape", "->10")
    assert shown.exit_code == 0
    assert shown.stdout.count("not run") == 2 * len(CUDA) + len(CUDA)  # two batches, and the reasons
    assert f"bitloom popc: not run: {gpu.missing()}" in shown.stdout


@pytest.mark.gpu
def test_on_a_gpu_some_kernel_is_measured():
    rows = measured("cuda")
    assert any(rows[name]["ms"] for name in CUDA[:3]), rows


def test_command_cpu(no_torch):
    arguments = ("cpu", "--shape", "->10", "--shape", "512->512", "--batch", "1", "--batch", "3", "--rounds", "1")
    shown = call(*arguments)
    assert shown.exit_code == 0, shown.output
    for word in ("512->512 1x1 at 1x1", "512->10 1x1 at 1x1", "ms of 3", f"bitloom {cpu.paths()[0]}"):
        assert word in shown.stdout
    assert "torch int8: not run: PyTorch was not found: pip install torch\n" in shown.stdout
    rows = json.loads(call(*arguments, "--threads", "1", "--json").stdout)
    assert len(rows) == 2 * 2 * len(CPU)
    assert {(row["batch"], row["threads"]) for row in rows} == {(1, 1), (3, 1)}
    assert call("cpu", "--shape", "9x9").exception.code.startswith(
        "bitloom: bench: shape must be in one of 128->128 3x3 at 32x32 padding 1, 256->256"
    )
