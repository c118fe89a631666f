"""Activations by table: each entry is what TFLite's kernel makes of the input, or onnxruntime between two quantisers.

``python -m tests.overlay.importers.test_curves`` records data/curves.npz again, of ai-edge-litert. Its reference
kernels have no ELU; that is of its other kernels.
"""

import math
import warnings
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from importlib.util import find_spec
from typing import ClassVar

import numpy as np
import pytest

from bitloom.golden.file import model_digest
from bitloom.overlay.importers import activations
from bitloom.overlay.importers.activations import ACTIVATIONS as IMPORTED
from bitloom.overlay.importers.activations import CURVES, curve_table
from bitloom.overlay.importers.curves import Curve, curve, sigmoid, softplus
from bitloom.overlay.importers.errors import ImportRefused, Unsupported
from bitloom.overlay.importers.links import Condition
from bitloom.overlay.importers.tflite_rules import multiplier_of, rounded_product, single_scale
from bitloom.overlay.importers.verify import verify
from tests.errors import refusal, value_error

from .against import by_onnxruntime, by_qonnx, import_chain, outputs
from .against import check as check_sums
from .onnx_files import Chain as OnnxChain
from .onnx_files import helper
from .test_boundaries import network
from .test_tflite import import_chain as import_tflite_chain
from .test_tflite_forms import check
from .tflite_files import DATA, Chain

pytest.importorskip("onnx", reason="the extra import is not installed")

CODES = ("BuiltinCode",)
"""Codes above 127, such as that of GELU, stand in this field alone."""
SCALES = {
    "LOGISTIC": [(1 / 256, -128)],
    "TANH": [(1 / 128, 0), (1 / 100, 3)],
}
"""Scales and zero points of results, of kernels that take few."""
OPTIONS = {"LEAKY_RELU": "LeakyReluOptions", "GELU": "GeluOptions"}
"""By operator, the schema's table of its options."""


def cases(kind):
    """(source, result, attributes) of an operator: random ones, and powers of two, with many results halfway."""
    rng = np.random.default_rng(list(kind.encode()))  # whatever other operators there are
    for number in range(24):
        scale = float(np.float32(2.0 ** rng.integers(-7, 1) if number % 3 == 0 else 10 ** rng.uniform(-2.5, 0.3)))
        result = float(
            np.float32(scale * (2.0 ** rng.integers(-2, 3) if number % 3 == 0 else 10 ** rng.uniform(-1, 1)))
        )
        zero, result_zero = (int(number) for number in rng.integers(-128, 128, 2))
        few = SCALES.get(kind, [(result, result_zero)])
        attributes = {
            "LEAKY_RELU": {"alpha": float(np.float32(rng.uniform(0, 1.2)))},
            "PRELU": {"slope": (int(rng.integers(-127, 128)), float(np.float32(rng.uniform(0.001, 0.02))))},
            "GELU": {"approximate": number % 2 == 1},
        }.get(kind, {})
        yield (scale, zero), few[number % len(few)], attributes


def with_activation(chain, kind, result, attributes):
    """The chain with an activation behind."""
    if kind == "PRELU":
        slope, scale = attributes["slope"]
        constant = chain.constant(np.full((1, 1, chain.now.shape[-1]), slope, np.int8), (scale,))
        return chain.operator(kind, chain.now.shape, result, (constant,))
    fields = {name.capitalize(): value for name, value in attributes.items()}
    return chain.operator(kind, chain.now.shape, result, (), OPTIONS.get(kind), **fields)


def by_litert(kind, source, result, attributes):
    """Results of ai-edge-litert for all int8 values; None if it refuses the scales."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    chain = with_activation(Chain((1, 1, 256), *source, codes=CODES), kind, result, attributes)
    resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES if kind == "ELU" else OpResolverType.BUILTIN_REF
    interpreter = Interpreter(model_content=chain.bytes(), experimental_op_resolver_type=resolver)
    try:
        interpreter.allocate_tensors()
    except RuntimeError:
        return None
    interpreter.set_tensor(
        interpreter.get_input_details()[0]["index"], np.arange(-128, 128, dtype=np.int8)[None, None, None]
    )
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).ravel()


@pytest.mark.parametrize("kind", CURVES)
def test_tables_are_the_kernels(kind):
    """For all inputs, as they were recorded, and as they are computed where ai-edge-litert is installed."""
    recorded = np.load(DATA / "curves.npz")[kind]
    for (source, result, attributes), wanted in zip(cases(kind), recorded, strict=True):
        try:
            table = curve_table(kind, source, result, attributes)
        except Unsupported:
            table = np.full(256, 128)  # as it was recorded of what the kernel refuses
        assert np.array_equal(table, wanted), (source, result, attributes)
        if find_spec("ai_edge_litert") is not None:
            computed = by_litert(kind, source, result, attributes)
            assert np.array_equal(wanted, np.full(256, 128) if computed is None else computed)
    assert (recorded < 128).sum() > 20 * 256


@pytest.mark.parametrize(
    ("kind", "source", "result", "attributes", "integer", "wanted"),
    [
        ("PRELU", (0.1, -6), (0.005, 48), {"slope": (74, 0.0078125)}, -12, -21),
        ("PRELU", (0.1, -6), (0.005, 48), {"slope": (52, 0.0078125)}, -9, 24),
        ("LEAKY_RELU", (0.7, 33), (0.02, 122), {"alpha": float(np.float32(0.1))}, -38, -126),
    ],
)
def test_scales_are_of_single_precision(kind, source, result, attributes, integer, wanted):
    """Recorded of ai-edge-litert, where a scale in double precision gives a neighbour."""
    source, result = ((float(np.float32(scale)), zero) for scale, zero in (source, result))
    assert curve_table(kind, source, result, attributes)[integer + 128] == wanted
    if find_spec("ai_edge_litert") is not None:
        assert by_litert(kind, source, result, attributes)[integer + 128] == wanted


def test_a_value_of_relu_that_lies_halfway_has_a_scale_of_single_precision():
    """ai-edge-litert's RELU makes 86 of -79, of a tensor of (0.7, -80) for one of (0.2, 82): 1 becomes 4."""
    result, source = (float(np.float32(scale)) for scale in (0.2, 0.7))
    assert rounded_product(np.array([1]), multiplier_of(single_scale(result, source))) == 86 - 82
    assert rounded_product(np.array([1]), multiplier_of(source / result)) == 3


def test_a_kernel_refuses_scales():
    with value_error("the result's scale must be at least 1/128 of the input's, got 0.001 of 1"):
        curve_table("HARD_SWISH", (1.0, 0), (0.001, 0), {})


RESULTS = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0), "ELU": (0.02, -70), "GELU": (0.02, -119)}
RESULTS |= {"HARD_SWISH": (0.02, -109), "LEAKY_RELU": (0.021, -60), "PRELU": (0.019, 5), "EXP": (0.05, -128)}
RESULTS |= {"ABS": (0.02, -128), "LOG": (0.02, 50)}
ATTRIBUTES = {"GELU": {"approximate": False}, "LEAKY_RELU": {"alpha": 0.1}, "PRELU": {"slope": (-40, 0.01)}}


@pytest.mark.sample(5)
@pytest.mark.parametrize("kind", CURVES)
def test_between_convolutions(kind):
    """A lookup in the trip of the convolution in front, and the map is held less its zero point in 9 bits."""
    rng = np.random.default_rng(1)
    chain = Chain((5, 6, 3), 0.02, 7, codes=CODES).conv(rng, 4, (3, 3), (0.03, 9))
    with_activation(chain, kind, RESULTS[kind], ATTRIBUTES.get(kind, {}))
    chain.conv(rng, 5, (3, 3), (0.05, -7)).reshape(1, 150).dense(rng, 5, (0.05, 3))
    if kind == "ELU":  # which reference kernels lack
        imported = import_tflite_chain(chain)
    else:
        imported, _ = check(chain)
    assert [layer.kind for layer in imported.model.network.layers][:3] == ["conv", "requantise", "lookup"]
    assert imported.choice.held[1].zero == -137


@pytest.mark.parametrize("kind", ["ELU", "TANH"])
def test_of_real_numbers_in_tflite(kind):
    """Between DEQUANTIZE and QUANTIZE, as converters leave ELU."""
    rng = np.random.default_rng(1)
    chain = Chain((5, 6, 3), 0.02, 7, codes=CODES).conv(rng, 4, (3, 3), (0.03, 9))
    for step, kept in (("DEQUANTIZE", "FLOAT32"), (kind, "FLOAT32"), ("QUANTIZE", "INT8")):
        chain.operator(step, chain.now.shape, RESULTS[kind], kept=kept)
    imported = import_tflite_chain(chain.reshape(1, 120).dense(rng, 5, (0.05, 3)))
    assert len(verify(imported, 4)) > 3  # ONNX's own reference has the function
    assert "lookup" in [layer.kind for layer in imported.model.network.layers]


def multiplied(chain, other, grid):
    return chain.operator("MUL", chain.now.shape, grid, (other,), "MulOptions", FusedActivationFunction=0)


@pytest.mark.parametrize("first", [False, True])
def test_a_product_with_a_sigmoid_is_a_silu(first):
    """Two operators, one lookup; whichever is the first factor."""
    rng = np.random.default_rng(2)
    chain = Chain((4, 4, 3), 0.02, 3).conv(rng, 3, (3, 3), (0.03, -20))
    before = chain.here
    chain.operator("LOGISTIC", chain.now.shape, (1 / 256, -128))
    if first:
        before, chain.here = chain.here, before
    multiplied(chain, before, (0.02, -115))
    imported, _ = check(chain.conv(rng, 4, (3, 3), (0.03, -2)))
    assert [layer.kind for layer in imported.model.network.layers] == [
        "conv",
        "requantise",
        "lookup",
        "conv",
        "requantise",
    ]


PLACES = {
    "the input": lambda chain, rng: chain.operator("LOGISTIC", chain.now.shape, (1 / 256, -128)),
    "a sum": lambda chain, rng: summed(chain, rng).operator("TANH", chain.now.shape, (1 / 128, 0)),
    "a pool": lambda chain, rng: (
        chain.conv(rng, 4, (3, 3), (0.03, 9)).pool("MAX", (2, 2)).operator("TANH", chain.now.shape, (1 / 128, 0))
    ),
    "another": lambda chain, rng: (
        chain.conv(rng, 4, (3, 3), (0.03, 9))
        .operator("TANH", chain.now.shape, (1 / 128, 0))
        .operator("HARD_SWISH", chain.now.shape, (0.01, -90))
    ),
    "a map that is padded": lambda chain, rng: (
        chain.conv(rng, 4, (3, 3), (0.03, 9)).pad((1, 0), (0, 2)).operator("LOGISTIC", chain.now.shape, (1 / 256, -128))
    ),
    "a mean": lambda chain, rng: (
        chain.conv(rng, 4, (3, 3), (0.03, 9))
        .mean((0.01, 3), keep=True)
        .operator("LOGISTIC", chain.now.shape, (1 / 256, -128))
    ),
    "a depthwise convolution": lambda chain, rng: chain.conv(rng, 0, (3, 3), (0.03, 9), depth=1).operator(
        "HARD_SWISH", chain.now.shape, (0.01, -90)
    ),
}
"""By what is looked up: a network that does so."""


def summed(chain, rng):
    fork = chain.conv(rng, 4, (3, 3), (0.03, 9)).here
    return chain.conv(rng, 4, (3, 3), (0.03, 9)).add(fork, (0.05, -9))


@pytest.mark.parametrize("place", PLACES)
def test_everywhere(place):
    rng = np.random.default_rng(3)
    chain = PLACES[place](Chain((4, 5, 3), 0.02, 7), rng)
    imported, _ = check(chain.flat().dense(rng, 7, (0.05, 3)))
    assert "lookup" in [layer.kind for layer in imported.model.network.layers]


PLAIN = ("Sigmoid", "Tanh", "Selu", "HardSwish", "Softplus", "Erf", "Mish", "Gelu", "Pow", "Exp", "Softsign")
ACTIVATIONS = {name: {} for name in PLAIN}
ACTIVATIONS |= {"Elu": {"alpha": 0.7}, "HardSigmoid": {"alpha": 0.15}, "LeakyRelu": {"alpha": 0.1}}
NEWER = {"Mish": 18, "Gelu": 20}
"""Versions of ONNX's operators that have an activation first."""


def all_values(chain):
    """All 256 inputs: scores of the import, and onnxruntime's."""
    imported = import_chain(chain)
    x = (np.arange(256, dtype=np.float64) - 131).reshape(1, 1, 16, 16) / 32
    return imported, outputs(imported, x), by_onnxruntime(chain, x)


def between(activation, version=17, scale=1 / 32, out=(1 / 61, 40)):
    """An activation between a convolution that copies, and one behind."""
    chain = OnnxChain((1, 16, 16), opset=version).qdq(np.float32(1 / 32), 131)
    weight = chain.dequantised([[[[1]]]], 1)
    chain.node("Conv", weight).qdq(np.float32(scale), 131)
    activation(chain)
    chain.qdq(np.float32(out[0]), out[1])
    return chain.node("Conv", weight)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_onnx(name):
    """Between two quantisers, for all 256 values, as onnxruntime has it."""
    inputs = (np.float32(3),) if name == "Pow" else ()
    chain = between(lambda chain: chain.node(name, *inputs, **ACTIVATIONS[name]), NEWER.get(name, 17))
    imported, got, wanted = all_values(chain)
    assert np.abs(got - wanted).max() < 1e-5
    assert len(np.unique(wanted)) > 40
    kinds = [layer.kind for layer in imported.model.network.layers]
    assert ("lookup" in kinds) == (name != "HardSigmoid")  # a clip of a line is a requantisation


@pytest.mark.parametrize("activation", [each for each in IMPORTED if each.drawn], ids=lambda each: each.onnx)
def test_attributes_that_random_files_have(activation):
    """The import takes them, and ONNX has them."""
    rng = np.random.default_rng(0)
    several = [activation.drawn(rng) for _ in range(6)]
    assert len({str(attributes) for attributes in several}) > 1
    for attributes in several:
        chain = between(partial(OnnxChain.node, op=activation.onnx, **attributes), NEWER.get(activation.onnx, 17))
        _, got, wanted = all_values(chain)
        assert np.abs(got - wanted).max() < 1e-5


def joined(op, way):
    """An operator on what ``way`` makes of the tensor that is here, and that tensor itself."""

    def activation(chain):
        before = chain.here
        way(chain)
        chain.nodes.append(helper.make_node(op, [chain.here, before], [f"joined{len(chain.nodes)}"], f"{op}_join"))
        chain.here = chain.nodes[-1].output[0]
        return chain

    return activation


def cube(chain):
    """x + 0.044715 x^3."""
    return joined("Add", lambda chain: chain.node("Pow", 3.0).node("Mul", 0.044715))(chain)


PRODUCTS = {
    "SiLU": joined("Mul", lambda chain: chain.node("Sigmoid")),
    "SiLU, quantised between": joined("Mul", lambda chain: chain.node("Sigmoid").qdq(np.float32(1 / 255), 0)),
    "GELU": joined("Mul", lambda chain: chain.node("Div", np.float32(2**0.5)).node("Erf").node("Add", 1.0)),
    "Mish": joined("Mul", lambda chain: chain.node("Softplus").node("Tanh")),
    "HardSwish": joined("Mul", lambda chain: chain.node("Add", 3.0).node("Clip", 0.0, 6.0).node("Div", 6.0)),
    "GELU by Tanh": joined("Mul", lambda chain: cube(chain).node("Mul", 0.797885).node("Tanh").node("Add", 1.0)),
}
"""Activations as exporters write them, as several nodes."""


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name):
    imported, got, wanted = all_values(between(PRODUCTS[name]))
    assert np.abs(got - wanted).max() < 1e-5
    assert len(np.unique(wanted)) > 60
    kinds = [layer.kind for layer in imported.model.network.layers]
    assert kinds.count("lookup") == 1


def test_of_integer_operators():
    """QLinearSigmoid and QLinearLeakyRelu of onnxruntime."""
    for op, out in (("QLinearSigmoid", (1 / 256, 0)), ("QLinearLeakyRelu", (1 / 39.7, 90))):
        chain = OnnxChain((1, 16, 16)).qdq(np.float32(1 / 32), 131)
        weight = chain.dequantised([[[[1]]]], 1)
        chain.node("Conv", weight).node("QuantizeLinear", np.float32(1 / 32), chain.constant(131, np.uint8))
        scales = [
            chain.constant(1 / 32),
            chain.constant(131, np.uint8),
            chain.constant(out[0]),
            chain.constant(out[1], np.uint8),
        ]
        chain.node(op, *scales, domain="com.microsoft", **({"alpha": 0.1} if op == "QLinearLeakyRelu" else {}))
        chain.node("DequantizeLinear", *scales[2:]).node("Conv", weight)
        imported, got, wanted = all_values(chain)
        assert np.abs(got - wanted).max() < 1e-5
        assert "lookup" in [layer.kind for layer in imported.model.network.layers]


def test_a_check_of_functions_that_rounding_may_move_by_several_levels():
    """Halves of the first quantiser are either of two values, and several levels of the second one apart."""
    chain = OnnxChain((2, 8, 7)).quant(0.25, 3)
    weight = np.random.default_rng(7).integers(-1, 2, (4, 2, 3, 3)).astype(np.float32)
    chain.node("Conv", weight).quant(0.25, 6).node("Abs").quant(0.5, 6)
    imported = import_chain(chain.node("HardSwish").quant(0.0625, 8).node("Abs").quant(0.25, 5))
    assert [layer.kind for layer in imported.model.network.layers][2:] == ["lookup"]
    assert verify(imported, 4)


def test_a_function_without_a_value_gives_no_warning():
    """The rules try any numbers, also those that the map has not."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(curve("Sqrt", math.sqrt).run(np.array([[-1.0]]))).all()


def test_the_binary_engine_has_no_tables():
    with refusal("maps that are looked up need the integer engine, got --engine binary"):
        import_chain(between(lambda chain: chain.node("Tanh")), engine="binary")


@dataclass(frozen=True, kw_only=True, eq=False)
class ReversibleSoftsign(Curve):
    """Softsign, through which conditions are pulled back."""

    reversible: ClassVar[bool] = True

    @property
    def falls(self):
        return np.array([False])

    def before(self, condition, channel=0):
        limit = condition.limit
        if limit is None:
            return condition
        if abs(limit) >= 1:
            return Condition(None, condition.rising == (limit < 0))
        return Condition(limit / (1 - abs(limit)), condition.rising, condition.reached)


@pytest.fixture
def reversible(monkeypatch):
    """A function that lets the import have `ReversibleSoftsign` from then on."""

    def link(name, formula):
        return ReversibleSoftsign(name=name, formulas=np.array(formula, object))

    return partial(monkeypatch.setattr, activations, "uniform_curve", link)


def softsign_node(chain):
    return chain.node("Softsign")


def padded_softsign(chain):
    return softsign_node(chain.node("Pad", np.array([0, 0, 1, 1, 0, 0, 1, 1])))


def pooled_softsign(chain):
    return softsign_node(chain).node("MaxPool", kernel_shape=[2, 2])


@pytest.mark.parametrize("function", [softsign_node, padded_softsign, pooled_softsign])
@pytest.mark.parametrize("scale", [1 / 61, 1 / 2])
def test_between_two_quantisers_a_table_has_a_reversible_curve(function, scale, reversible):
    """As it has any other one, however many levels the second quantiser has."""
    chain = between(function, out=(scale, 40))
    before = import_chain(chain).model
    reversible()
    model = import_chain(chain).model
    assert "lookup" in [layer.kind for layer in model.network.layers]
    assert model_digest(model) == model_digest(before)


def test_behind_sums_thresholds_have_a_reversible_curve(reversible):
    with pytest.raises(ImportRefused, match="what Softsign reads must be quantised, got sums of weights"):
        import_chain(network(softsign_node))
    reversible()
    imported = check_sums(network(softsign_node), by_qonnx, near=0)
    assert imported.choice.engines == ("binary", "binary")
    assert imported.emitted.built[0].levels == 7


def test_functions_that_do_not_overflow():
    assert [sigmoid(x) for x in (-1000, 1000)] == [0, 1]
    assert [softplus(x) for x in (-1000, 1000)] == [0, 1000]
    with value_error("the values of f must be finite, got inf at 1e+200"):
        curve("f", lambda x: x**3).value(Fraction(10) ** 200)
    assert curve_table("EXP", (10.0, -128), (1.0, 0), {})[[0, 1, 255]].tolist() == [1, 127, 127]


if __name__ == "__main__":
    tables = {}
    for each in CURVES:
        results = [by_litert(each, *case) for case in cases(each)]
        tables[each] = np.array([np.full(256, 128) if table is None else table for table in results], np.int16)
    np.savez_compressed(DATA / "curves.npz", **tables)
