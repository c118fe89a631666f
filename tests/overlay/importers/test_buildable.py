"""Whatever is imported can be built: what the compiler would refuse is refused in one line when it is imported."""

import numpy as np
import pytest

from bitloom.golden.network import Model
from bitloom.overlay.build.buildable import check_buildable
from bitloom.overlay.importers.imported import import_graph
from bitloom.overlay.importers.onnx_file import to_graph
from tests.errors import refusal

from .against import by_onnxruntime, by_qonnx, check, import_chain
from .onnx_files import Chain
from .test_engine_choice import both_kinds

RULE = (
    "weights less their zero point must fit 8 bits, -128..127, got {}; quantise them to int8, or to uint8 with zero "
    "point 128 (onnxruntime: extra_options={{'WeightSymmetric': True}})"
)


def qdq(weights, zero, result=(2, 4), *, in_floats=False):
    """A convolution between quantisers, whose weights of 8 bits have a zero point; the file may have them in floats,
    in front of a quantiser. ``result``: scale and zero point of what it makes."""
    chain = Chain((2, 5, 5)).qdq(0.5, 4)
    lattice = chain.constant(np.float32(0.125)), chain.constant(np.uint8(zero), np.uint8)
    if in_floats:
        integers = chain.weight("QuantizeLinear", np.float32(0.125) * (np.float32(weights) - zero), *lattice)
    else:
        integers = chain.constant(np.asarray(weights, np.uint8), np.uint8)
    return chain.node("Conv", chain.weight("DequantizeLinear", integers, *lattice)).qdq(*result)


def operator(weights, zero, result=(2, 4)):
    """The same in onnxruntime's older format."""
    chain = Chain((2, 5, 5))
    scale, offset = chain.constant(np.float32(0.5)), chain.constant(np.uint8(4), np.uint8)
    chain.node("QuantizeLinear", scale, offset)
    integers = chain.constant(np.asarray(weights, np.uint8), np.uint8)
    zero = chain.constant(np.uint8(zero), np.uint8)
    ends = chain.constant(np.float32(result[0])), chain.constant(np.uint8(result[1]), np.uint8)
    chain.node("QLinearConv", scale, offset, integers, np.float32(0.125), zero, *ends)
    return chain.node("DequantizeLinear", *ends)


def random_weights():
    weights = np.random.default_rng(1).integers(1, 255, (3, 2, 3, 3))
    weights[0, 0, 0, 0], weights[2, 1, 2, 2] = 0, 255
    return weights


@pytest.mark.parametrize("kind", [qdq, operator])
def test_weights_without_a_sign(kind):
    """A zero point of 128 leaves 8 bits with a sign."""
    chain = kind(random_weights(), 128)
    imported = check(chain, by_onnxruntime, near=0)
    assert [built.wrong for built in imported.emitted.built] == [(0, 0)]
    check_buildable(imported.model)
    assert (imported.model.arrays["conv_1"]["weight"].min(), imported.model.arrays["conv_1"]["weight"].max()) == (
        -128,
        127,
    )


@pytest.mark.parametrize("kind", [qdq, operator])
@pytest.mark.parametrize(
    ("zero", "parts", "result"), [(119, 2, (2, 4)), (0, 3, (128, 4)), (255, 3, (128, 250))], ids=["119", "0", "255"]
)
def test_weights_of_nine_bits(kind, zero, parts, result):
    """Each is the sum of weights that read the same position: -254 is two times -127, and 255 takes three."""
    imported = check(kind(random_weights(), zero, result), by_onnxruntime, near=0)
    assert [built.wrong for built in imported.emitted.built] == [(0, 0)]
    check_buildable(imported.model)
    layer = imported.model.network.layers[0]
    assert (layer.kernel, layer.stride, layer.growth, layer.repeats) == ((3, 3 * parts), (1, parts), (1, parts), True)
    weight = imported.model.arrays["conv_1"]["weight"]
    assert np.array_equal(weight.reshape(3, 3, 3, parts, 2).sum(axis=3), random_weights().transpose(0, 2, 3, 1) - zero)


def wide(op, shape, **attributes):
    """A network of QONNX with weights of 9 bits in its second layer, which an operator has."""
    rng = np.random.default_rng(2)
    chain = Chain((3, 6, 5)).quant(0.25, 4)
    chain.node("Conv", rng.integers(-1, 2, (4, 3, 1, 1)).astype(np.float32)).node("Relu").quant(0.5, 4, signed=0)
    if op == "MatMul":
        chain.node("Flatten")
    weights = rng.integers(-255, 256, shape).astype(np.float32)
    weights.flat[:2] = -255, 255
    return chain.node(op, weights, **attributes).node("Add", np.float32([7])).quant(32, 8)


WIDE = {
    "strides and padding": lambda: wide("Conv", (5, 4, 3, 2), strides=[2, 3], pads=[1, 0, 2, 1]),
    "taps apart in rows": lambda: wide("Conv", (5, 4, 2, 2), dilations=[2, 1]),
    "taps apart in columns": lambda: wide("Conv", (5, 4, 2, 2), dilations=[1, 2]),
    "depthwise": lambda: wide("Conv", (4, 1, 3, 3), group=4, pads=[1, 1, 1, 1]),
    "groups": lambda: wide("Conv", (6, 2, 3, 3), group=2),
    "a dense layer": lambda: wide("MatMul", (120, 5)),
}


@pytest.mark.parametrize("name", WIDE)
def test_layers_with_weights_of_nine_bits(name):
    imported = check(WIDE[name](), by_qonnx, near=0)
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}
    assert imported.model.network.layers[2].growth == ((3, 1) if name == "taps apart in columns" else (1, 3))


def test_weights_of_nine_bits_that_have_no_parts():
    with refusal(f"Conv_4: {RULE.format('-255..255')}"):
        import_chain(wide("Conv", (5, 4, 2, 2), dilations=[2, 2]))


@pytest.mark.parametrize("in_floats", [False, True])
def test_weights_that_fit_in_lowest_terms(in_floats):
    """Even weights of 9 bits are twice weights of 8."""
    halves = np.random.default_rng(1).integers(-59, 68, (3, 2, 3, 3))
    halves[:, 0, 0, 0] = 68
    imported = check(qdq(119 + 2 * halves, 119, in_floats=in_floats), by_onnxruntime, near=0)
    assert [built.wrong for built in imported.emitted.built] == [(0, 0)]
    assert np.array_equal(imported.model.arrays["conv_1"]["weight"], halves.transpose(0, 2, 3, 1))


def test_weights_that_have_to_change_sign():
    """A factor below 0 behind the sums turns the weights around, and 128 has no room."""
    chain = Chain((2, 5, 5)).quant(0.5, 8)
    weights = np.random.default_rng(1).integers(-127, 128, (3, 2, 3, 3)).astype(np.float32)
    weights[1, 0, 0, 0] = -128
    chain.node("Conv", weights).node("Mul", np.float32([[[1]], [[-1]], [[1]]])).quant(64, 8)
    with refusal(
        "Conv_1 (integer engine): weights that change sign, as a scale behind them is negative, must be -127..127, got "
        "-128; quantise weights to -127..127"
    ):
        import_chain(chain)


def test_networks_of_both_engines():
    check_buildable(import_chain(both_kinds(0)).model)


def test_the_check_is_made_where_imports_end(monkeypatch):
    """Of chains and of graphs."""
    checked = []

    def refuse(model: Model) -> None:
        checked.append(model)
        raise ValueError("conv_1: must be so, got other")

    monkeypatch.setattr("bitloom.overlay.importers.imported.check_buildable", refuse)
    chain = Chain((2, 5, 5)).quant(0.5, 3).node("Conv", np.ones((2, 2, 1, 1), np.float32)).quant(4, 8)
    fork = chain.here
    graph = Chain((2, 5, 5)).quant(0.5, 3).node("Conv", np.ones((2, 2, 1, 1), np.float32)).quant(4, 8)
    graph.node("Conv", np.ones((2, 2, 1, 1), np.float32)).quant(4, 8).node("Add", fork).quant(4, 8)
    for one in (chain, graph):
        with refusal("Conv_1 (layer conv_1): must be so, got other"):
            import_graph(to_graph(one.bytes()), name="x")
    assert len(checked) >= 2
