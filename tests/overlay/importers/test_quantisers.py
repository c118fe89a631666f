"""Constants that a file quantises are worth what qonnx and ONNX's reference make of them."""

import numpy as np
import pytest

from bitloom.overlay.importers.quantisers import QUANTISERS, ROUNDINGS, Grid
from bitloom.overlay.importers.source import SourceNode

VALUES = np.float32([[-4, -0.75, -0.5, -0.25, 0.25], [0.5, 0.74, 0.75, 1.25, 9]])
SCALES = np.float32([[0.5], [0.25]])


def grid_of(op: str, *inputs: object, **attributes: object) -> Grid:
    node = SourceNode(name="node", op=op, inputs=("x",), outputs=("y",), attributes=attributes)
    return QUANTISERS[op](node, [np.asarray(value) for value in (VALUES, *inputs)])


@pytest.mark.parametrize("scale", [np.float32(0.5), SCALES], ids=["one scale", "scales"])
@pytest.mark.parametrize("zero", [-3, 0, 3])
@pytest.mark.parametrize("bits", [2, 4])
@pytest.mark.parametrize("signed", [0, 1])
@pytest.mark.parametrize("narrow", [0, 1])
def test_quant(scale: np.ndarray, zero: int, bits: int, signed: int, narrow: int) -> None:
    quant = pytest.importorskip("qonnx.custom_op.general.quant", reason="qonnx is not installed").quant
    for rounding in ("ROUND", "FLOOR", "CEIL"):
        attributes = {"signed": signed, "narrow": narrow, "rounding_mode": rounding}
        grid = grid_of("Quant", scale, np.float32(zero), np.float32(bits), **attributes)
        wanted = quant(VALUES, scale, np.float32(zero), np.float32(bits), signed, narrow, rounding)
        np.testing.assert_array_equal(grid.values, wanted)
        np.testing.assert_array_equal(grid.values, grid.integers * scale)


@pytest.mark.parametrize("zero", [np.int8(0), np.int8(-5), np.uint8(3)], ids=repr)
def test_linear(zero: np.integer) -> None:
    reference = pytest.importorskip("onnx.reference.ops", reason="the extra import is not installed")
    quantise = reference.op_quantize_linear.QuantizeLinear_19.eval
    integers = quantise(VALUES, np.float32(0.25), zero)
    assert grid_of("QuantizeLinear", np.float32(0.25), zero).values.tolist() == integers.tolist()


@pytest.mark.parametrize("zeros", [[2, 2], [-1, 4]])
def test_integers_become_numbers(zeros: list[int]) -> None:
    integers = np.int8([[-128, -1, 0], [1, 5, 127]])
    node = SourceNode(name="node", op="DequantizeLinear", inputs=("x",), outputs=("y",), attributes={"axis": 0})
    grid = QUANTISERS[node.op](node, [integers, SCALES.ravel(), np.int8(zeros)])
    wanted = (integers.astype(int) - np.array(zeros)[:, None]) * SCALES
    np.testing.assert_array_equal(grid.values, wanted)


def test_signs() -> None:
    """Sign is 0 at 0, and then no number's sign is known."""
    assert grid_of("Sign").values.tolist() == np.sign(VALUES).tolist()
    assert grid_of("Sign").real is not None
    node = SourceNode(name="node", op="Sign", inputs=("x",), outputs=("y",))
    zero = QUANTISERS["Sign"](node, [np.float32([-2, 0, 3])])
    assert (zero.values.tolist(), zero.real) == ([-1, 0, 1], None)
    bipolar = grid_of("BipolarQuant", np.float32(0.5))
    assert bipolar.values.tolist() == np.where(VALUES >= 0, 0.5, -0.5).tolist()


@pytest.mark.parametrize("name", ROUNDINGS)
def test_places_of_a_rounding_are_where_its_numbers_change(name: str) -> None:
    rounding = ROUNDINGS[name]
    numbers = np.arange(-24, 25) / 8
    rounded = rounding.run(numbers)
    for q in range(-3, 4):
        twice, reached = rounding.place(q)
        at_least = 2 * numbers >= twice if reached else 2 * numbers > twice
        assert at_least.tolist() == (rounded >= q).tolist()
