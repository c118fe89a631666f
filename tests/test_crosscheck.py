"""Every implementation of a binary network gives golden's bits, and one that doesn't is noticed."""

import numpy as np
import pytest

from bitloom.golden import zoo as networks
from bitloom.golden.kernels.tiled import reference
from bitloom.hls_gen.design.npu import Npu
from tests.cases import random_model
from tests.crosscheck import crosscheck
from tests.golden.kernels.tiled import check
from tests.graph_text import network_of

SOFTWARE = ("tiled", "popc", "mma-xor", "mma-and", "cpu")
"""Implementations that run on any machine with a C++ compiler."""
NPU = Npu.of(kfp=7, kgp=3, pfp=3, shift_bits=0)
ROOMY = Npu.of(kfp=64, kgp=8, pfp=8, ol=4, planes=8, shift_bits=0)


@pytest.fixture(scope="module")
def model():
    network = network_of(
        "4x5x7", "conv_1 9 3x2 padding=1/0/1/1, threshold_1, max_pool pool_1 2x2 2x2, dense_2 4", name="small"
    )
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
