from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, TERNARY, bipolar, signed
from bitloom.golden.kernels.tiled import layout, reference
from bitloom.golden.kernels.tiled.conv import from_golden
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.window import Window
from tests.cases import case_map
from tests.cases import random_values as values_of
from tests.errors import value_error

from .cases import case


@pytest.mark.parametrize("word_bits", [32, 64])
@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize(
    ("layer", "source"),
    [
        (Conv(name="conv", out_channels=35, kernel=(3, 2), stride=(2, 1), padding=(2, 1, 0, 1)), case_map(5, 4, 33)),
        (Conv(name="conv", out_channels=3, kernel=(2, 2)), case_map(3, 5, 64)),
        (Dense(name="dense", out_channels=40), case_map(2, 3, 5)),
        (Dense(name="dense", out_channels=7), case_map(1, 1, 65)),
    ],
    ids=["conv padded", "conv", "dense of a map", "dense"],
)
def test_from_golden_is_the_layer_with_its_thresholds(layer, source, direction, word_bits):
    rng = np.random.default_rng(3)
    x, weight = (
        values_of((3, *source.shape), BIPOLAR, rng),
        values_of(layer.array_shapes(source)["weight"], BIPOLAR, rng),
    )
    sums = layer.forward(x, {"weight": weight}, source)
    after = layer.output(source)
    low, high = after.encoding.low, after.encoding.high
    threshold = rng.integers(-5, 6, (after.channels, 1))
    threshold[:3, 0] = (low, high, 1 << 40)  # beyond the reach, and beyond an int32
    arrays = {"threshold": threshold, "direction": np.full(after.channels, direction)}
    bits = Threshold(name="threshold").forward(sums, arrays, after)

    packed = from_golden(layer, source, weight, threshold, arrays["direction"], word_bits=word_bits)
    words = reference.run(packed, layout.pack(x, word_bits))
    assert np.array_equal(2 * layout.unpack(words, after.channels).astype(int) - 1, bits)
    dots = reference.run(from_golden(layer, source, weight, word_bits=word_bits), layout.pack(x, word_bits))
    assert np.array_equal(dots, sums)


def test_from_golden_refuses_what_is_not_binary():
    weight = np.ones((2, 1, 1, 3), np.int8)
    threshold = np.zeros((2, 1), np.int64)
    source = case_map(1, 1, 3)
    dense = Dense(name="d", out_channels=2)
    one = "features and weights must be bipolar 1 bit (-1..1 in steps of 2), got "
    with value_error(f"d: {one}signed 8 bit (-128..127) and {BIPOLAR}"):
        from_golden(dense, case_map(1, 1, 3, signed(8)), weight, word_bits=32)
    with value_error(f"d: {one}{bipolar(2)} and {BIPOLAR}"):
        from_golden(dense, case_map(1, 1, 3, bipolar(2)), weight, word_bits=32)
    with value_error(f"d: {one}{BIPOLAR} and {TERNARY}"):
        from_golden(Dense(name="d", out_channels=2, weight=TERNARY), source, weight, word_bits=32)
    with value_error("d: accumulate must be popcount, got or"):
        from_golden(Dense(name="d", out_channels=2, accumulate="or"), source, weight, word_bits=32)
    assert from_golden(dense, source, weight, threshold, word_bits=32).threshold.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight": np.zeros((2, 1, 1, 3), int)}, f"d.weight: values must be {BIPOLAR}, got 0"),
        ({"weight": np.ones((1, 1, 1, 3), int)}, "d.weight: shape must be (2, 1, 1, 3), got (1, 1, 1, 3)"),
        ({"weight": [[1]]}, "d.weight: must be an array of shape (2, 1, 1, 3), got list"),
        ({"threshold": np.zeros((2, 2), int)}, "d.threshold: shape must be (2, 1), got (2, 2)"),
        ({"threshold": np.zeros((1, 1), int)}, "d.threshold: shape must be (2, 1), got (1, 1)"),
        ({"threshold": np.zeros(2, int)}, "d.threshold: shape must be (2, 1), got (2,)"),
        ({"threshold": np.full((2, 1), np.nan)}, "d.threshold: dtype must be of signed integers, got float64"),
        ({"threshold": np.zeros((2, 1), np.uint64)}, "d.threshold: dtype must be of signed integers, got uint64"),
        ({"direction": np.ones(1, int)}, "d.direction: shape must be (2,), got (1,)"),
        ({"direction": np.array([1, 0])}, f"d.direction: values must be {BIPOLAR}, got 0"),
        ({"direction": np.ones(2)}, "d.direction: values must be integers, got dtype float64"),
    ],
)
def test_from_golden_refuses_arrays_that_are_not_goldens(change, message):
    arrays = {"weight": np.ones((2, 1, 1, 3), int), "threshold": np.zeros((2, 1), int), "direction": np.ones(2, int)}
    with value_error(message):
        from_golden(Dense(name="d", out_channels=2), case_map(1, 1, 3), **arrays | change, word_bits=32)


@pytest.mark.parametrize("direction", [1, -1])
def test_a_threshold_out_of_reach_decides_as_it_did(direction):
    """All 65 products are +1: the dot is 65, and so is the threshold, or it is 1 or many beyond."""
    x = np.ones((1, 1, 1, 65), np.int64)
    dense = Dense(name="d", out_channels=1)
    turn = np.array([direction])
    for beyond in (0, 1, 1 << 40):
        limit = np.array([[direction * (65 + beyond)]])
        layer = from_golden(dense, case_map(1, 1, 65), direction * x, limit, turn, word_bits=32)
        assert reference.run(layer, layout.pack(x, 32)).item() == (beyond == 0)


def last_bit_set(words):
    """A copy whose very last word has bit 31 set."""
    words = words.copy()
    words[-1, -1, -1, -1] |= np.uint32(1 << 31)
    return words


def test_errors_of_a_layer():
    layer = case(channels=33, out_channels=5).layer
    for change, message in (
        ({"channels": 0}, "conv: channels must be an integer >= 1, got 0"),
        ({"out_channels": 2.0}, "conv: out_channels must be an integer >= 1, got 2.0"),
        ({"window": Window(kernel=(3, 3), stride=(0, 1))}, "conv: stride must be >= 1, got (0, 1)"),
        ({"pad": "same"}, "conv: pad must be one of valid, -1, +1, exact, got 'same'"),
        (
            {"window": Window(kernel=(3, 3), padding=(1, 0, 0, 0))},
            "conv: pad valid needs padding (0, 0, 0, 0), got (1, 0, 0, 0)",
        ),
        ({"channels": 1 << 27}, "conv: channels x taps must be < 2^30, got 134217728 x 9"),
        ({"weight": layer.weight.astype(np.int32)}, "conv.weight: words must be uint32 or uint64, got int32"),
        ({"weight": layer.weight[:, :1]}, "conv.weight: shape must be (5, 2, 3, 3), got (5, 1, 3, 3)"),
        ({"weight": ~layer.weight}, "conv.weight: bits of channels >= 33 must be 0"),
        ({"weight": last_bit_set(layer.weight)}, "conv.weight: bits of channels >= 33 must be 0"),
        ({"weight": None}, "conv.weight: words must be an array of uint32 or uint64, got NoneType"),
        ({"window": Window(kernel=3)}, "conv: kernel must be 2 integers, got 3"),
        ({"threshold": layer.threshold[1:]}, "conv.threshold: shape must be (5,), got (4,)"),
        ({"threshold": layer.threshold.astype(float)}, "conv.threshold: dtype must be int32, got float64"),
    ):
        with value_error(message):
            replace(layer, **change)


def test_errors_of_an_input():
    conv_case = case(channels=33, out_channels=5, size=(4, 5))
    for words, message in (
        (conv_case.words.astype(np.uint64), "conv: input must be uint32, as the weights, got uint64"),
        (conv_case.words.tolist(), "conv: input: words must be an array of uint32 or uint64, got list"),
        (conv_case.words[:, :1], "conv: input must have shape (N, 2, H, W), got (1, 1, 4, 5)"),
        (conv_case.words[:0], "conv: input must have shape (N, 2, H, W), got (0, 2, 4, 5)"),
        (conv_case.words[0], "conv: input must have shape (N, 2, H, W), got (2, 4, 5)"),
        (conv_case.words[:, :, :2], "conv: the window must fit the padded map, got kernel (3, 3) on 2 x 5"),
        (~conv_case.words, "conv: input: bits of channels >= 33 must be 0"),
    ):
        with value_error(message):
            reference.run(conv_case.layer, words)
