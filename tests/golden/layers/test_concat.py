"""Concatenation of maps: a graph against onnxruntime's Concat, encodings of the result, what is refused."""

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, TERNARY, bipolar, signed, unsigned
from bitloom.golden.graph import INPUT
from bitloom.golden.layers.concat import Concat
from bitloom.golden.network import Model
from tests.cases import case_map, random_values
from tests.errors import value_error
from tests.graph_text import network_of

from .agreement import by_onnxruntime, check_model

WAYS = ("act_1", INPUT, "act_2")
"""Maps that are concatenated, in this order."""


def three_ways() -> Model:
    """An input and two convolutions of it beside each other, and a convolution of all."""
    channels = {"conv_1": 3, "conv_2": 2, "conv_4": 4}
    beside = "conv_1 3 1x1 s3, act_1 s6, conv_2 @input 2 1x1 s3, act_2 u6"
    network = network_of("3x4x2 s4", beside, Concat(name="concat_3", inputs=WAYS), "conv_4 4 1x1 s3", name="ways")
    rng = np.random.default_rng(1)
    arrays = {}
    for name, count in channels.items():
        inputs = 7 if name == "conv_4" else 2
        arrays[name] = {"weight": random_values((count, 1, 1, inputs), signed(3), rng)}
    for k, count in ((1, 3), (2, 2)):
        arrays[f"act_{k}"] = dict(zip(("bias", "multiplier", "shift"), np.array([[1, 3, 1]] * count).T))
    return Model(network, arrays)


def test_a_network_with_three_ways(tmp_path):
    model = three_ways()
    x = random_values((3, 3, 4, 2), signed(4), np.random.default_rng(2))
    maps = {INPUT: x, **dict(model.walk(x))}
    inputs = dict(zip("abc", (np.ascontiguousarray(maps[name], np.int64) for name in WAYS)))
    wanted = by_onnxruntime(("Concat", ["a", "b", "c"], ["y"], {"axis": -1}), **inputs)
    assert np.array_equal(maps["concat_3"], wanted)
    assert len(np.unique(wanted[0, 0, 0])) > 3  # the ways differ
    assert model.network.maps["concat_3"].encoding == signed(7)
    check_model(model, x, maps["conv_4"], tmp_path)


@pytest.mark.parametrize(
    ("encodings", "result_encoding"),
    [
        ((signed(4), signed(6)), signed(6)),
        ((unsigned(4), unsigned(6)), unsigned(6)),
        ((signed(6), unsigned(4)), signed(6)),
        ((unsigned(6), TERNARY), signed(7)),
        ((TERNARY, TERNARY), TERNARY),
        ((bipolar(3), bipolar(3)), bipolar(3)),
    ],
    ids=str,
)
def test_encodings(encodings, result_encoding):
    sources = [case_map(2, 3, 1 + k, encoding) for k, encoding in enumerate(encodings)]
    got = Concat(name="concat", inputs=("a", "b")).output_of(sources)
    assert (got.shape, got.encoding) == ((2, 3, 3), result_encoding)


def joined(*maps):
    Concat(name="concat", inputs=("a", "b")).output_of(maps)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Concat(name="concat"), "concat: inputs must be a tuple with the names of 2 maps or more, got ()"),
        (
            lambda: Concat(name="concat", inputs=("a",)),
            "concat: inputs must be a tuple with the names of 2 maps or more, got ('a',)",
        ),
        (
            lambda: joined(case_map(2, 3, 1, BIPOLAR), case_map(3, 2, 1, BIPOLAR)),
            "concat: maps must have one height and width, got 2 x 3 and 3 x 2",
        ),
        (
            lambda: joined(case_map(2, 3, 1, BIPOLAR), case_map(2, 3, 1, signed(2))),
            "concat: bipolar maps must have one encoding, got bipolar 1 bit (-1..1 in steps of 2) and signed 2 bit "
            "(-2..1)",
        ),
        (
            lambda: joined(case_map(2, 3, 1, unsigned(62)), case_map(2, 3, 1, signed(2))),
            "concat: values must fit 62 bits, got 63",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with value_error(message):
        call()
