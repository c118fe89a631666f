"""Functions of the values at each place of several maps: tables where these are functions of one map, and sums where
two maps are compared.

``python -m tests.overlay.importers.test_pointwise`` records data/pointwise.npz again, of ai-edge-litert's reference
kernels.
"""

from importlib.util import find_spec

import numpy as np
import pytest

from bitloom.overlay.importers.errors import ImportRefused
from bitloom.overlay.importers.tflite_pointwise import POINTWISE
from bitloom.overlay.importers.tflite_rules import TensorScale
from tests.errors import refusal, value_error

from . import onnx_files
from .test_curves import all_values, between, joined
from .test_tflite import import_chain
from .test_tflite_forms import check
from .tflite_files import DATA, Chain

KINDS = [kind for kind in POINTWISE if not kind.startswith("SELECT")]
VALUES = np.arange(-128, 128)
CASES = 12


def cases(kind):
    """((scale, zero) of both inputs and of the result, the other input's values) of an operator."""
    rng = np.random.default_rng(list(kind.encode()))
    for number in range(CASES):
        scales = 2.0 ** rng.integers(-7, 0, 3) if number % 3 == 0 else 10 ** rng.uniform(-2.5, -0.1, 3)
        if kind == "SQUARED_DIFFERENCE":
            scales[2] = scales[:2].max() ** 2 * (300, 20, 3)[number % 3]
        zeros = rng.integers(-128, 128, 3)
        tensors = [(float(np.float32(scale)), int(zero)) for scale, zero in zip(scales, zeros)]
        yield tensors, rng.permutation(VALUES) if number % 4 else np.full(256, rng.integers(-128, 128))


def by_kernel(kind, tensors, other):
    """The table that is imported."""
    scales = [TensorScale(kind="INT8", scale=np.float32([s]), zero=np.array([z])) for s, z in tensors]
    return POINTWISE[kind]({"scales": scales[:2], "result_scale": scales[2]}, VALUES, other)


def by_litert(kind, tensors, other):
    """The table by ai-edge-litert."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    chain = Chain((1, 1, 256), *tensors[0])
    fields = {} if kind == "SQUARED_DIFFERENCE" else {"kept": "BOOL"}
    constant = chain.constant(other.astype(np.int8), (tensors[1][0],))
    chain.tensors[constant].zero = (tensors[1][1],)
    chain.operator(kind, chain.now.shape, tensors[2], (constant,), **fields)
    interpreter = Interpreter(model_content=chain.bytes(), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], VALUES.astype(np.int8)[None, None, None])
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).ravel().astype(np.int64)


@pytest.mark.parametrize("kind", KINDS)
def test_kernels(kind):
    """As they were recorded, and as they are computed where ai-edge-litert is installed."""
    recorded = np.load(DATA / "pointwise.npz")[kind]
    for case, wanted in zip(cases(kind), recorded, strict=True):
        assert np.array_equal(by_kernel(kind, *case), wanted), case
        if find_spec("ai_edge_litert") is not None:
            assert np.array_equal(by_litert(kind, *case), wanted)
    assert len(np.unique(recorded)) > (100 if kind == "SQUARED_DIFFERENCE" else 1)


def selu(chain, greater="GREATER", select="SELECT_V2"):
    """SELU as TFLite's converter writes it."""
    here = chain.here
    shape = chain.now.shape
    grid = (0.0086, 14)
    where = chain.with_constant(greater, 15, chain.quantised, (1.0, 0), kept="BOOL").here
    chain.here = here
    above = chain.with_constant("MUL", 127, (0.00412, -128), grid).here
    chain.here = here
    chain.operator("EXP", shape, (0.0126, -73)).with_constant("SUB", 127, (1 / 255, -128), (0.0152, -48))
    below = chain.with_constant("MUL", 127, (0.0069, -128), grid).here
    chain.here = where
    return chain.operator(select, shape, grid, (above, below))


def begun(rng):
    return Chain((4, 5, 3), 0.02, 7).conv(rng, 4, (3, 3), (0.008, 15))


def ended(chain, rng):
    return chain.reshape(1, int(np.prod(chain.now.shape))).dense(rng, 7, (0.05, 3))


FORMS = {
    "SELU": selu,
    "SELU by SELECT, and less": lambda chain: selu(chain, "LESS_EQUAL", "SELECT"),
    "Mish": lambda chain: mish(chain),
    "the square": lambda chain: chain.with_constant("SQUARED_DIFFERENCE", -9, (0.01, 3), (0.02, -128)),
    "CELU, which ends in a sum": lambda chain: celu(chain),
    "hard shrinking of real numbers": lambda chain: shrunk(chain),
    "ABS": lambda chain: chain.operator("ABS", chain.now.shape, (0.005, -100)),
    "three of which two fall and rise": lambda chain: several(chain, "LEAKY_RELU", "ABS", "GELU"),
}


def several(chain, *kinds):
    for kind in kinds:
        chain.operator(kind, chain.now.shape, (0.01, -20))
    return chain


def mish(chain):
    here = chain.here
    chain.operator("EXP", chain.now.shape, (0.016, -128)).with_constant("ADD", 127, (1 / 255, -128), (0.016, -128))
    chain.operator("LOG", chain.now.shape, (0.0056, -128)).operator("TANH", chain.now.shape, (1 / 128, 0))
    return chain.operator("MUL", chain.now.shape, (0.0052, -69), (here,), "MulOptions", FusedActivationFunction=0)


def celu(chain):
    """A map's values above 0, and what is made of those below."""
    here = chain.here
    shape = chain.now.shape
    grid = (0.0061, -12)
    above = chain.operator("RELU", shape, grid).here
    chain.here = here
    chain.with_constant("MINIMUM", 15, (0.008, 15), (0.008, 15)).operator("EXP", shape, (0.0067, -22))
    chain.with_constant("SUB", 127, (1 / 255, -128), (0.0028, 127))
    return chain.operator("ADD", shape, grid, (above,), "AddOptions", FusedActivationFunction=0)


def shrunk(chain):
    """As TFLite's converter leaves it between DEQUANTIZE and QUANTIZE."""
    here = chain.here
    shape = chain.now.shape
    grid = chain.quantised
    real = chain.operator("DEQUANTIZE", shape, kept="FLOAT32").here
    zeros = chain.operator("ZEROS_LIKE", shape, kept="FLOAT32").here
    chain.here = here
    chain.operator("ABS", shape, (0.0055, -128)).with_constant("GREATER", 127, (0.001, -128), grid, kept="BOOL")
    return chain.operator("SELECT_V2", shape, None, (real, zeros), kept="FLOAT32").operator("QUANTIZE", shape, grid)


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", FORMS)
def test_several_operators_are_one_table(name):
    rng = np.random.default_rng(3)
    imported, _ = check(ended(FORMS[name](begun(rng)), rng))
    kinds = [layer.kind for layer in imported.model.network.layers]
    assert kinds[:3] == ["conv", "requantise", "lookup"]
    assert kinds.count("lookup") == 1


def two_of_one_scale(rng, kind):
    """The larger or the smaller one of two maps."""
    chain = Chain((4, 5, 3), 0.02, 7)
    first = chain.conv(rng, 4, (3, 3), (0.03, 9)).here
    chain.here = 0
    chain.conv(rng, 4, (1, 2), (0.03, 9))
    return ended(chain.operator(kind, chain.now.shape, (0.03, 9), (first,)), rng)


@pytest.mark.parametrize("kind", ["MAXIMUM", "MINIMUM"])
def test_the_larger_and_the_smaller_one_of_two_maps(kind):
    """Two sums: by how much one is above the other, and that added or taken off."""
    imported, _ = check(two_of_one_scale(np.random.default_rng(3), kind))
    assert [layer.kind for layer in imported.model.network.layers].count("add") == 2


def test_a_leaky_relu_as_a_maximum():
    """Of a map and of what is made of it: one table."""
    rng = np.random.default_rng(3)
    chain = begun(rng)
    here, same = chain.here, chain.quantised
    chain.with_constant("MUL", 51, (1 / 255, 0), same).operator("MAXIMUM", chain.now.shape, same, (here,))
    imported, _ = check(ended(chain, rng))
    kinds = [layer.kind for layer in imported.model.network.layers]
    assert (kinds.count("lookup"), kinds.count("add")) == (1, 0)


def reads_both(op, *ways):
    """An operator on what each of several ways makes of the tensor that is here."""

    def activation(chain):
        here = chain.here
        names = []
        for way in ways:
            chain.here = here
            names.append((way(chain) or chain).here)
        tensor = f"joined{len(chain.nodes)}"
        chain.nodes.append(onnx_files.helper.make_node(op, names, [tensor], f"{op}_{len(chain.nodes)}"))
        chain.here = tensor
        return chain

    return activation


def itself(chain):
    return chain


def absolute(chain):
    return chain.node("Abs")


FORMULAS = {
    "Tanhshrink": joined("Sub", lambda chain: chain.node("Tanh")),
    "Softsign": reads_both("Div", itself, lambda chain: absolute(chain).node("Add", 1.0)),
    "sigmoid": lambda chain: chain.node("Neg").node("Exp").node("Add", 1.0).reversed("Div", np.float32(1)),
    "LeakyRelu": joined("Max", lambda chain: chain.node("Mul", 0.1)),
    "the smaller one": joined("Min", lambda chain: chain.node("Mul", 0.1)),
    "the root": lambda chain: absolute(chain).node("Sqrt"),
    "the logarithm": lambda chain: absolute(chain).node("Add", 1.0).node("Log"),
    "Reciprocal": lambda chain: absolute(chain).node("Add", 1.0).node("Reciprocal"),
    "ELU by Where": reads_both("Where", lambda chain: chain.node("Greater", 0.25), itself, lambda c: c.node("Exp")),
    "hard shrink": reads_both(
        "Where",
        reads_both("And", lambda c: c.node("Less", 0.5), lambda c: c.node("GreaterOrEqual", -0.5)),
        lambda c: c.node("Mul", 0.0),
        itself,
    ),
    "outside": reads_both(
        "Where",
        reads_both("Or", lambda c: c.node("LessOrEqual", -0.5), lambda c: c.node("Greater", 0.5).node("Not")),
        itself,
        lambda c: c.node("Mul", 0.5),
    ),
    "quantised between": joined("Sub", lambda chain: chain.node("Sigmoid").qdq(np.float32(1 / 255), 0)),
}
"""Functions as exporters write them, as several nodes."""


@pytest.mark.parametrize("name", FORMULAS)
def test_onnx(name):
    """As onnxruntime has them, for all 256 values."""
    imported, got, wanted = all_values(between(FORMULAS[name]))
    assert np.abs(got - wanted).max() < 1e-5
    assert len(np.unique(wanted)) > 40
    assert [layer.kind for layer in imported.model.network.layers].count("lookup") == 1


@pytest.mark.parametrize(
    ("activation", "why"),
    [
        (lambda chain: chain.node("Sqrt"), "QuantizeLinear): the values of Sqrt must be finite, got nan at -4.09375"),
        (
            lambda chain: chain.reversed("Div", np.float32(1)),
            "QuantizeLinear): a map must be divided by numbers other than 0",
        ),
        (
            lambda chain: chain.node("Greater", np.float32([1, 2]).reshape(2, 1, 1)),
            "Greater): a constant must be one number, got shape (2, 1, 1)",
        ),
    ],
)
def test_what_has_no_table(activation, why):
    with pytest.raises(ImportRefused) as refused:
        all_values(between(activation))
    assert refused.value.lines[0].split(" (", 1)[1] == why


@pytest.mark.parametrize(
    ("kind", "grid", "why"),
    [
        ("GREATER", (1.5, 0), "scales of what is compared must be below 1, got 1.5"),
        ("SELECT_V2", (0.1, 0), "what is selected and the result must have the same scale and zero point"),
    ],
)
def test_scales_that_kernels_do_not_take(kind, grid, why):
    rng = np.random.default_rng(3)
    chain = begun(rng)
    here = chain.here
    chain.operator("QUANTIZE", chain.now.shape, grid)
    other = chain.here
    if kind == "SELECT_V2":
        chain.here = here
        chain.with_constant("GREATER", 3, (0.1, 0), (1.0, 0), kept="BOOL")
        chain.operator(kind, chain.now.shape, (0.008, 15), (here, other))
    else:
        chain.operator(kind, chain.now.shape, (1.0, 0), (here,), kept="BOOL")
    with pytest.raises(ImportRefused) as refused:
        import_chain(chain)
    assert refused.value.lines[0].split("): ", 1)[1] == why


@pytest.mark.parametrize(("kind", "count", "wanted"), [("GREATER", 3, 2), ("LESS", 1, 2), ("SELECT", 2, 3)])
def test_as_many_tensors_as_a_kernel_takes(kind, count, wanted):
    chain = begun(np.random.default_rng(3))
    chain.operator(kind, chain.now.shape, constants=(chain.here,) * (count - 1))
    with refusal(f"{kind}_1 ({kind}): the number of inputs must be {wanted}, got {count}"):
        import_chain(chain)


if __name__ == "__main__":
    tables = {kind: np.array([by_litert(kind, *case) for case in cases(kind)], np.int16) for kind in KINDS}
    np.savez_compressed(DATA / "pointwise.npz", **tables)


def test_real_numbers_beside_integers():
    """A comparison of real numbers with integers, which TFLite has not, is refused."""
    chain = Chain((1, 2, 3), 0.05, 3)
    integers = chain.here
    chain.operator("DEQUANTIZE", chain.now.shape, kept="FLOAT32")
    chain.operator("GREATER", chain.now.shape, None, (integers,), kept="BOOL")
    with value_error("GREATER_1 (GREATER): input 0 must be of type INT8, got FLOAT32; quantise the network to int8"):
        import_chain(chain)
