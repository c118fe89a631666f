"""All implementations give golden's bits, and one that doesn't is noticed."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from bitloom.golden import file
from bitloom.golden import zoo as networks
from bitloom.golden.kernels.tiled import check, reference
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Network
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.cli.group import bitloom
from bitloom.overlay.study import crosscheck
from tests.cases import case_map, random_model
from tests.errors import value_error
from tests.printed import row

WITHOUT_RTL = ("tiled", "popc", "mma-xor", "mma-and", "cpu")


@pytest.fixture(scope="module")
def model():
    layers = (
        Conv(name="conv_1", out_channels=9, kernel=(3, 2), padding=(1, 0, 1, 1)),
        Threshold(name="threshold_1"),
        MaxPool(name="pool_1", kernel=(2, 2), stride=(2, 2)),
        Dense(name="dense_2", out_channels=4),
    )
    network = Network(name="small", input=case_map(4, 5, 7), layers=layers)
    return random_model(network, np.random.default_rng(0))


@pytest.mark.parametrize("rtl", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_implementation_gives_goldens_bits(model, tmp_path, monkeypatch, rtl):
    monkeypatch.setitem(crosscheck.NPUS, "small", Npu(kfp=7, kgp=3, pfp=3, shift_bits=0))
    progress = []
    names = [*WITHOUT_RTL, *(["rtl"] if rtl else [])]
    rows = crosscheck.crosscheck(model, tmp_path, names, images=2, progress=lambda *at: progress.append(at))
    assert [(row.name, row.values) for row in rows] == [("conv_1", 360), ("pool_1", 72), ("dense_2", 8)]
    assert all(row.wrong == dict.fromkeys(names, 0) for row in rows)
    assert progress == [(k, len(names)) for k in range(len(names))]


def test_one_design_runs_the_network_cut_off_after_each_stage(model, tmp_path, monkeypatch):
    """What the simulation would be asked to run; the slow tests let it."""
    ran = []

    def run(build, shorter, images):
        assert build.program(shorter.network.name).output_shape == shorter.network.output.shape
        ran.append((build.digest, shorter.network.name))
        return SimpleNamespace(outputs=shorter.forward(images))

    monkeypatch.setattr(crosscheck, "run", run)
    rows = crosscheck.crosscheck(model, tmp_path, ["rtl"])
    assert [name for _, name in ran] == ["small-threshold-1", "small-pool-1", "small-dense-2"]
    assert len({digest for digest, _ in ran}) == 1
    assert [row.wrong for row in rows] == [{"rtl": 0}] * 3


@pytest.mark.parametrize("word_bits", [32, 64])
def test_a_wrong_value_of_the_last_image_is_counted(model, tmp_path, monkeypatch, word_bits):
    dtypes = set()

    def wrong(layer, words):
        dtypes.add(words.dtype)
        output = reference.run(layer, words)
        if layer.threshold is None:
            output[-1, 0, 0, 0] += 1
        return output

    monkeypatch.setitem(check.IMPLEMENTATIONS, "tiled", check.Implementation(wrong))
    rows = crosscheck.crosscheck(model, tmp_path, ["tiled"], images=3, word_bits=word_bits)
    assert [row.wrong for row in rows] == [{"tiled": 0}, {"tiled": 0}, {"tiled": 1}]
    assert dtypes == {np.dtype(f"uint{word_bits}")}


def test_without_a_compiler_numpy_takes_part_alone(monkeypatch, no_gpu):
    monkeypatch.setenv("CXX", "no-such-g++")
    assert crosscheck.available() == ["tiled"]
    assert set(crosscheck.missing()) == {*crosscheck.NAMES} - {"tiled"}
    assert crosscheck.missing()["rtl"].startswith("C++ compiler 'no-such-g++' was not found")


def test_requests_are_checked(model, tmp_path):
    names = "tiled, popc, mma-xor, mma-and, cpu, gpu, rtl"
    with value_error(f"crosscheck: an implementation must be one of {names}, got 'tpu'"):
        crosscheck.crosscheck(model, tmp_path, ["tiled", "tpu"])
    with value_error("crosscheck: images must be >= 1, got 0"):
        crosscheck.crosscheck(model, tmp_path, ["tiled"], images=0)


def test_names_of_cut_off_models(model):
    cut = crosscheck.cut_off(model, "pool_1")
    assert (cut.network.name, len(cut.network.layers)) == ("small-pool-1", 3)
    assert set(cut.arrays) == {"conv_1", "threshold_1"}


def test_a_gpu_takes_part_where_there_is_one(monkeypatch):
    for missing, found in ((None, True), ("gpu: CUDA finds no device", False)):
        gpu = replace(check.IMPLEMENTATIONS["gpu"], missing=lambda missing=missing: missing)
        monkeypatch.setitem(check.IMPLEMENTATIONS, "gpu", gpu)
        assert ("gpu" in crosscheck.available()) is found
    assert (*WITHOUT_RTL, "gpu", "rtl") == crosscheck.NAMES


@pytest.fixture
def no_gpu(monkeypatch):
    gpu = replace(check.IMPLEMENTATIONS["gpu"], missing=lambda: "gpu: CUDA finds no device")
    monkeypatch.setitem(check.IMPLEMENTATIONS, "gpu", gpu)


@pytest.mark.usefixtures("no_gpu")
def test_command_shows_a_table_and_says_what_did_not_run(model, tmp_path):
    path = tmp_path / "small.npz"
    file.save(model, path)
    skip = [word for name in ("rtl", "popc") for word in ("--skip", name)]
    done = CliRunner().invoke(bitloom, ["crosscheck", str(path), *skip])
    assert done.exit_code == 0, done.output
    assert row(done.output, "pool_1") == ["36", "0", "not run", "0", "0", "0", "not run", "not run"]
    assert "not run: gpu: CUDA finds no device" in done.output


@pytest.mark.usefixtures("no_gpu")
def test_command_fails_where_a_bit_differs(model, tmp_path, monkeypatch):
    path = tmp_path / "small.npz"
    file.save(model, path)

    def wrong(layer, words):
        output = reference.run(layer, words)
        if layer.threshold is None:
            output[0, 0, 0, :2] += 1
        return output

    monkeypatch.setitem(check.IMPLEMENTATIONS, "cpu", check.Implementation(wrong))
    command = ["crosscheck", str(path), "--skip", "rtl", "--json", "--images", "3", "--word-bits", "64"]
    done = CliRunner().invoke(bitloom, command)
    text, end = done.stdout[: done.stdout.rindex("}") + 1], "bitloom: crosscheck: every value must equal golden's, got "
    assert done.exit_code != 0
    assert f"{end}others in {path} dense_2 (cpu)" in str(done.exception) + done.output
    found = json.loads(text)
    assert (found["images"], found["word_bits"]) == (3, 64)
    assert found["not_run"] == {"gpu": "gpu: CUDA finds no device", "rtl": "left out"}
    stages = found["networks"][str(path)]
    assert [stage["wrong"]["cpu"] for stage in stages] == [0, 0, 2]
    assert stages[2] == {"name": "dense_2", "values": 12, "wrong": dict.fromkeys(WITHOUT_RTL, 0) | {"cpu": 2}}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rows"), [("digits-cnn", 5), ("cnv-w1a1", 11), ("lfc-w1a1", 4)])
def test_real_networks(name, rows, tmp_path):
    found = crosscheck.crosscheck(networks.load(name), tmp_path, [*WITHOUT_RTL, "rtl"])
    assert len(found) == rows
    if name != "lfc-w1a1":  # an integer input
        assert found.pop(0).wrong == dict.fromkeys(WITHOUT_RTL) | {"rtl": 0}
    assert all(set(row.wrong.values()) == {0} for row in found)
