"""Every implementation of a binary network gives golden's bits, and one that doesn't is noticed."""

import numpy as np
import pytest

from bitloom.golden import zoo as networks
from bitloom.golden.kernels.tiled import reference
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Network
from bitloom.hls_gen.design.npu import Npu
from tests.cases import case_map, random_model
from tests.crosscheck import crosscheck
from tests.golden.kernels.tiled import check

SOFTWARE = ("tiled", "popc", "mma-xor", "mma-and", "cpu")
"""Implementations that run on any machine with a C++ compiler."""
NPU = Npu.of(kfp=7, kgp=3, pfp=3, shift_bits=0)
ROOMY = Npu.of(kfp=64, kgp=8, pfp=8, ol=4, planes=8, shift_bits=0)


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


@pytest.mark.parametrize("names", [SOFTWARE, pytest.param(("rtl",), marks=pytest.mark.slow)], ids=["software", "rtl"])
def test_every_implementation_gives_goldens_bits(model, names, tmp_path):
    rows = crosscheck(model, names, NPU, tmp_path, images=2)
    assert [(row.name, row.values) for row in rows] == [("conv_1", 360), ("pool_1", 72), ("dense_2", 8)]
    assert all(row.wrong == dict.fromkeys(names, 0) for row in rows)


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
    rows = crosscheck(model, ["tiled"], NPU, tmp_path, images=3, word_bits=word_bits)
    assert [row.wrong for row in rows] == [{"tiled": 0}, {"tiled": 0}, {"tiled": 1}]
    assert dtypes == {np.dtype(f"uint{word_bits}")}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "stages"), [("digits-cnn", 5), ("cnv-w1a1", 11), ("lfc-w1a1", 4)])
def test_real_networks(name, stages, tmp_path):
    names = [*SOFTWARE, "rtl"] if check.IMPLEMENTATIONS["gpu"].missing() else [*SOFTWARE, "gpu", "rtl"]
    rows = crosscheck(networks.load(name), names, ROOMY, tmp_path)
    assert len(rows) == stages
    if name != "lfc-w1a1":  # software leaves a layer of an integer input to golden
        assert rows.pop(0).wrong == dict.fromkeys(names) | {"rtl": 0}
    assert all(set(row.wrong.values()) == {0} for row in rows)
