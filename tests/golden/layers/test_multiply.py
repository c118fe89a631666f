"""Product of two maps: every pair of values against fractions, and against onnxruntime's QLinearMul."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, signed, unsigned
from bitloom.golden.graph import INPUT
from bitloom.golden.layers.multiply import MultiplyMaps
from bitloom.golden.layers.rounding import rounded_twice
from bitloom.golden.network import Model
from tests.cases import case_map, random_values
from tests.errors import value_error

from .agreement import by_onnxruntime, check_model
from .test_add import two_maps


def exact(product, bias, shift, low, high):
    """The rule in fractions: to the nearest, halves upwards, behind a bias away from zero."""
    away = bias if product >= 0 else -bias
    return max(low, min(high, floor(Fraction(product + away, 2**shift) + Fraction(1, 2))))


def arrays(multiplier=1, bias=0, shift=0):
    return {"multiplier": np.array([multiplier]), "bias": np.array([bias]), "shift": np.array([shift])}


@pytest.mark.parametrize("factors", [(1, 0, 0), (1, 0, 4), (3, 1, 2), (8_578_262, 77, 31), ((1 << 24) - 1, 0, 39)])
@pytest.mark.parametrize(
    ("first", "second", "clip"), [(signed(4), unsigned(5), None), (BIPOLAR, signed(9), (-100, 90))], ids=str
)
def test_every_pair_of_values(factors, first, second, clip):
    factor, bias, shift = factors
    xs, ys = (list(range(e.low, e.high + 1, e.step)) for e in (first, second))
    layer = MultiplyMaps(name="multiply", inputs=("a", "b"), encoding=signed(8), clip=clip)
    sources = [case_map(len(xs), len(ys), 1, e) for e in (first, second)]
    x, y = np.meshgrid(xs, ys, indexing="ij")
    values = arrays(factor, bias, shift)
    layer.check_arrays_of(values, sources)
    got = layer.forward_of([x[None, ..., None], y[None, ..., None]], values, sources)[0, ..., 0]
    assert got.tolist() == [[exact(i * j * factor, bias, shift, layer.low, layer.high) for j in ys] for i in xs]
    totals = factor * x * y + np.where(x * y < 0, -bias, bias)
    assert layer.reach(values, sources) == (totals.min(), totals.max())


def test_equals_onnxruntime():
    """All pairs of int8, but for halves, which QLinearMul rounds to the even integer."""
    x, y = (values.reshape(1, 256, 256, 1) for values in np.meshgrid(*[np.arange(-128, 128)] * 2, indexing="ij"))
    constants = [("Constant", [], [name], {"value_float": n}) for name, n in (("one", 1.0), ("result", 512 / 3))]
    reads = ["a", "one", "zero", "b", "one", "zero", "result", "zero"]
    inputs = {"a": x.astype(np.int8), "b": y.astype(np.int8), "zero": np.array(0, np.int8)}
    wanted = by_onnxruntime(*constants, ("QLinearMul", reads, ["y"], {"domain": "com.microsoft"}), **inputs)
    layer = MultiplyMaps(name="multiply", inputs=("a", "b"), encoding=signed(8))
    got = layer.forward_of([x, y], arrays(3, 0, 9), [case_map(256, 256, 1, signed(8))] * 2)
    halves = x * y * 3 % 512 == 256
    assert 0 < halves.sum() < 1000
    np.testing.assert_array_equal(got[~halves], wanted[~halves])
    assert len(np.unique(got)) > 100


@pytest.mark.parametrize("right", [0, 1, 6, 8])
@pytest.mark.parametrize("multiplier", [1 << 23, 0xABCDEF, 0xFFFFFF])
def test_equals_two_roundings(multiplier, right):
    """TFLite's rounding of products, twice, with multipliers of 31 bits of which the last 7 are 0."""
    x, y = np.meshgrid(np.arange(-255, 256), np.arange(-255, 255, 3), indexing="ij")
    wanted = np.clip(rounded_twice(x * y * (multiplier << 7), np.array(31 + right)), -256, 255)
    layer = MultiplyMaps(name="multiply", inputs=("a", "b"), encoding=signed(9))
    values = arrays(multiplier, (1 << 23) * (right > 0), 24 + right)
    got = layer.forward_of([x, y], values, [case_map(1, 1, 1, signed(9))] * 2)
    np.testing.assert_array_equal(got, wanted)


def gated() -> Model:
    """A map times another one that was made of it."""
    layer = MultiplyMaps(name="multiply_1", inputs=("act_1", "act_2"), encoding=signed(5), clip=(-9, 15))
    return two_maps("gated", layer, multiply_1=arrays(3, 5, 4))


def test_a_file(tmp_path):
    model = gated()
    x = random_values((5, 3, 4, 2), signed(4), np.random.default_rng(2))
    check_model(model, x, model.forward(x), tmp_path)


def test_what_does_not_fit_is_refused():
    layer = MultiplyMaps(name="m", inputs=(INPUT, "b"), encoding=signed(8))
    with value_error("m: maps must have one size, got (1, 2, 3) and (2, 2, 3)"):
        layer.output_of([case_map(1, 2, 3), case_map(2, 2, 3)])
    sources = [case_map(1, 2, 3, signed(8))] * 2
    with value_error("m.multiplier: shape must be (1,), got (2,)"):
        layer.check_arrays_of({**arrays(), "multiplier": np.array([1, 1])}, sources)
    with value_error("m.multiplier: values must be 0..16777215, got -1"):
        layer.check_arrays_of(arrays(-1), sources)
    with value_error("m.bias: values must be 0..549755813887, got -1"):
        layer.check_arrays_of(arrays(1, -1), sources)
    wide = [case_map(1, 1, 1, signed(bits)) for bits in (20, 21)]
    with value_error("m.multiplier: sums must be < 2^62 for all values of the maps, got 9223371487098961920"):
        layer.check_arrays_of(arrays((1 << 24) - 1), wide)
