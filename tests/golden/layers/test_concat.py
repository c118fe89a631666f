"""Concatenation of maps: a graph against onnxruntime's Concat, encodings of the result, what is refused."""

import numpy as np
import pytest

from bitloom.golden import file
from bitloom.golden.encoding import BIPOLAR, TERNARY, bipolar, signed, unsigned
from bitloom.golden.graph import INPUT
from bitloom.golden.kernels import packed
from bitloom.golden.layers.concat import Concat
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.network import Model, Network
from tests.cases import case_map, random_values
from tests.errors import value_error

WAYS = ("act_1", INPUT, "act_2")
"""What is concatenated, in this order."""


def three_ways() -> Model:
    """An input and two convolutions of it beside each other, and a convolution of all."""
    channels = {"conv_1": 3, "conv_2": 2, "conv_4": 4}
    reads = {"conv_4": "concat_3"}
    one, two, four = (
        Conv(name=name, out_channels=count, kernel=(1, 1), weight=signed(3), inputs=(reads.get(name, INPUT),))
        for name, count in channels.items()
    )
    ways = ((1, signed(6)), (2, unsigned(6)))
    acts = [Requantise(name=f"act_{k}", encoding=encoding, inputs=(f"conv_{k}",)) for k, encoding in ways]
    layers = (one, two, *acts, Concat(name="concat_3", inputs=WAYS), four)
    network = Network(name="ways", input=case_map(3, 4, 2, signed(4)), layers=layers)
    rng = np.random.default_rng(1)
    arrays = {}
    for name, count in channels.items():
        inputs = 7 if name == "conv_4" else 2
        arrays[name] = {"weight": random_values((count, 1, 1, inputs), signed(3), rng)}
    for k, count in ((1, 3), (2, 2)):
        arrays[f"act_{k}"] = dict(zip(("bias", "multiplier", "shift"), np.array([[1, 3, 1]] * count).T))
    return Model(network, arrays)


def test_a_network_with_three_ways(tmp_path):
    onnx, onnxruntime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    model = three_ways()
    x = random_values((3, 3, 4, 2), signed(4), np.random.default_rng(2))
    maps = {INPUT: x, **dict(model.walk(x))}
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.INT64, None) for name in ("a", "b", "c", "y")]
    node = onnx.helper.make_node("Concat", ["a", "b", "c"], ["y"], axis=-1)
    graph = onnx.helper.make_graph([node], "concat", values[:3], values[3:])
    opset = [onnx.helper.make_opsetid("", 13)]
    session = onnxruntime.InferenceSession(
        onnx.helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()
    )
    (expected,) = session.run(None, dict(zip("abc", (np.ascontiguousarray(maps[name], np.int64) for name in WAYS))))
    assert np.array_equal(maps["concat_3"], expected)
    assert len(np.unique(expected[0, 0, 0])) > 3  # the ways differ
    assert model.network.maps["concat_3"].encoding == signed(7)
    assert np.array_equal(packed.forward(model, x), maps["conv_4"])
    file.save(model, tmp_path / "ways.npz")
    read = file.load(tmp_path / "ways.npz")
    assert read.network == model.network
    assert np.array_equal(read.forward(x), maps["conv_4"])


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
