from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden.kernels.tiled import layout, reference
from bitloom.golden.kernels.tiled.conv import from_golden
from bitloom.golden.kernels.tiled.plan import plan
from bitloom.golden.layers.dense import Dense
from tests.cases import case_map

from .cases import case, random_case


@pytest.mark.sample(16)
@pytest.mark.parametrize("seed", range(64))
def test_equals_golden(seed):
    conv_case, _ = random_case(seed)
    conv_case.check(reference.run(conv_case.layer, conv_case.words))


@pytest.mark.parametrize(("threshold", "expected"), [(1, 0), (0, 1)])
def test_a_tie_is_negative_by_the_default_rule_and_positive_as_a_sign_of_0(threshold, expected):
    """2 of 4 channels match: dot 0 (spec E12)."""
    x, weight = (np.array(v).reshape(1, 1, 1, 4) for v in ([1, 1, -1, -1], [1, -1, 1, -1]))
    limits = np.array([[threshold]])
    layer = from_golden(Dense(name="d", out_channels=1), case_map(1, 1, 4), weight, limits, word_bits=32)
    assert reference.run(layer, layout.pack(x, 32)).item() == expected


@pytest.mark.parametrize("block", [(32, 1, 1), (64, 2, 1), (96, 1, 3)])
@pytest.mark.parametrize("patch", [(1, 1), (2, 3), (5, 1)])
@pytest.mark.parametrize("word_bits", [32, 64])
def test_any_tile_gives_the_same(block, patch, word_bits):
    conv_case = case(size=(6, 11), out_channels=65, padding=(1, 0, 1, 2), pad="exact", word_bits=word_bits)
    conv_case.check(
        reference.run(
            conv_case.layer, conv_case.words, plan(conv_case.layer, conv_case.words, block=block, patch=patch)
        )
    )


def test_order_of_blocks_does_not_matter():
    conv_case = case(images=2, size=(20, 19), out_channels=33, padding=(1, 1, 1, 1), pad="-1")
    how = plan(conv_case.layer, conv_case.words)
    assert how.blocks == 16
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(how.blocks).tolist()
        conv_case.check(reference.run(conv_case.layer, conv_case.words, how, order=order))


UNEVEN = [
    {"size": (14, 13), "stride": (2, 1)},
    {"size": (15, 13), "stride": (2, 1), "padding": (1, 2, 0, 1), "pad": "exact"},
    {"size": (15, 13), "stride": (2, 2), "padding": (1, 1, 0, 0), "pad": "exact"},
]
"""Maps with a last row, or column, that no output needs."""


def needed(how, index):
    """1 for each word that the outputs of a block depend on: asked of the window, one output after another."""
    layer = how.layer
    place = how.place(index)
    words = np.zeros((how.images, layer.groups, how.height, how.width), np.uint32)
    rows, columns = how.output
    taps = layer.window.positions(how.height, how.width).reshape(rows, columns, -1)
    tile = taps[place.row : place.row + how.tile[0], place.column : place.column + how.tile[1]]
    if place.channel < layer.out_channels:  # else it only makes unused bits
        words[place.image].reshape(layer.groups, -1)[:, np.unique(tile[tile >= 0])] = 1
    weight = np.zeros(layer.weight.shape, np.uint32)
    weight[place.channel : place.channel + how.block[0]] = 1
    return words, weight


@pytest.mark.parametrize("word_bits", [32, 64])
@pytest.mark.parametrize("map_", UNEVEN)
def test_a_block_reads_each_word_that_it_needs_once(map_, word_bits):
    """The upper half of 64-bit words has no channel, and its block needs nothing."""
    conv_case = case(images=2, channels=129, out_channels=31, word_bits=word_bits, **map_)
    how = replace(plan(conv_case.layer, conv_case.words, block=(32, 2, 3), patch=(2, 2)), stage_groups=2)
    for index in range(how.blocks):
        reads = reference.WordReads.none(conv_case.layer, conv_case.words)
        reference.run(conv_case.layer, conv_case.words, how, order=[index], reads=reads)
        words, weight = needed(how, index)
        assert np.array_equal(reads.words, words)
        assert np.array_equal(reads.weight, weight)
