"""Several outputs as one vector: against onnxruntime's Flatten and Concat, encodings of the result, what is refused."""

import numpy as np
import pytest

from bitloom.golden import file
from bitloom.golden.encoding import BIPOLAR, signed, unsigned
from bitloom.golden.kernels import packed
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.outputs import Outputs
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.network import Model, Network
from tests.cases import case_map, random_values
from tests.errors import value_error

HEADS = ("dense_3", "act_1", "act_2")
"""What leaves, in this order."""


def three_heads() -> Model:
    """A map that leaves and is read by two heads: a convolution with a stride and a dense layer."""
    layers = (
        Conv(name="conv_1", out_channels=3, kernel=(2, 1), weight=signed(3)),
        Requantise(name="act_1", encoding=signed(6)),
        Conv(name="conv_2", inputs=("act_1",), out_channels=2, kernel=(1, 1), stride=(1, 3), weight=signed(3)),
        Requantise(name="act_2", encoding=unsigned(5)),
        Dense(name="dense_3", inputs=("act_1",), out_channels=5, weight=signed(3)),
        Outputs(name="outputs", inputs=HEADS),
    )
    network = Network(name="heads", input=case_map(3, 4, 2, signed(4)), layers=layers)
    rng = np.random.default_rng(1)
    shapes = {"conv_1": (3, 2, 1, 2), "conv_2": (2, 1, 1, 3), "dense_3": (5, 2, 4, 3)}
    arrays = {name: {"weight": random_values(shape, signed(3), rng)} for name, shape in shapes.items()}
    for name, count in (("act_1", 3), ("act_2", 2)):
        arrays[name] = dict(zip(("bias", "multiplier", "shift"), np.array([[1, 3, 1]] * count).T))
    return Model(network, arrays)


def test_a_network_with_three_heads(tmp_path):
    onnx, onnxruntime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    model = three_heads()
    x = random_values((3, 3, 4, 2), signed(4), np.random.default_rng(2))
    maps = dict(model.walk(x))
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.INT64, None) for name in (*"abc", "y")]
    nodes = [onnx.helper.make_node("Flatten", [name], [f"{name}f"]) for name in "abc"]
    nodes.append(onnx.helper.make_node("Concat", ["af", "bf", "cf"], ["y"], axis=1))
    graph = onnx.helper.make_graph(nodes, "heads", values[:3], values[3:])
    opset = [onnx.helper.make_opsetid("", 13)]
    session = onnxruntime.InferenceSession(
        onnx.helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()
    )
    (expected,) = session.run(None, dict(zip("abc", (np.ascontiguousarray(maps[name], np.int64) for name in HEADS))))
    output = model.network.output
    assert (output.shape, output.encoding) == ((1, 1, 5 + 24 + 8), model.network.maps["dense_3"].encoding)
    assert np.array_equal(maps["outputs"][:, 0, 0], expected)
    assert len(np.unique(expected)) > 20
    assert np.array_equal(packed.forward(model, x), maps["outputs"])
    file.save(model, tmp_path / "heads.npz")
    read = file.load(tmp_path / "heads.npz")
    assert read.network == model.network
    assert np.array_equal(read.forward(x), maps["outputs"])


def test_what_does_not_fit_is_refused():
    with value_error("out: inputs must be a tuple with the names of 2 maps or more, got ('a',)"):
        Outputs(name="out", inputs=("a",))
    got = "bipolar 1 bit (-1..1 in steps of 2) and signed 2 bit (-2..1)"
    with value_error(f"out: bipolar maps must have one encoding, got {got}"):
        Outputs(name="out", inputs=("a", "b")).output_of([case_map(2, 3, 1, kind) for kind in (BIPOLAR, signed(2))])
