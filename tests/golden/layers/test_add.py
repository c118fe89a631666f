"""Addition of two maps: every pair of values, against fractions; graphs with residual ways; what is refused."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, signed, unsigned
from bitloom.golden.graph import INPUT
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.multiply import MultiplyMaps
from bitloom.golden.network import Model, Network
from tests.cases import case_map, random_values
from tests.errors import value_error
from tests.graph_text import network_of

FACTORS = [
    ((1, 1), 0, 0),
    ((1, 1), 0, 1),
    ((1, -1), 1, 1),
    ((3_243_231, 8_578_262), 0, 22),
    (((1 << 24) - 1, 1 - (1 << 24)), (1 << 39) - 1, 30),
]


def arrays(multiplier=(1, 1), bias=0, shift=0):
    return {"multiplier": np.array(multiplier), "bias": np.array([bias]), "shift": np.array([shift])}


def exact(t: int, shift: int, low: int, high: int) -> int:
    """The rule in fractions: to the nearest, halves away from zero."""
    size = floor(abs(Fraction(t, 2**shift)) + Fraction(1, 2))
    return max(low, min(high, size if t >= 0 else -size))


@pytest.mark.parametrize("factors", FACTORS, ids=str)
@pytest.mark.parametrize(
    ("first", "second", "clip"), [(signed(4), unsigned(5), None), (BIPOLAR, signed(9), (-100, 90))], ids=str
)
def test_every_pair_of_values(factors, first, second, clip):
    (a, b), bias, shift = factors
    xs, ys = (list(range(e.low, e.high + 1, e.step)) for e in (first, second))
    layer = Add(name="add", inputs=("a", "b"), encoding=signed(8), clip=clip)
    sources = [case_map(len(xs), len(ys), 1, e) for e in (first, second)]
    x, y = np.meshgrid(xs, ys, indexing="ij")
    values = arrays((a, b), bias, shift)
    layer.check_arrays_of(values, sources)
    got = layer.forward_of([x[None, ..., None], y[None, ..., None]], values, sources)[0, ..., 0]
    assert got.tolist() == [[exact(a * i + b * j + bias, shift, layer.low, layer.high) for j in ys] for i in xs]
    totals = a * x + b * y + bias
    assert layer.reach(values, sources) == (totals.min(), totals.max())


def two_maps(name: str, *joins: object, **arrays: dict[str, np.ndarray]) -> Model:
    """Map act_1, map act_2 that is made of it, and layers behind, with their arrays."""
    network = network_of("3x4x2 s4", "conv_1 2 1x1 s3, act_1 s6, conv_2 2 1x1 s3, act_2 u5", *joins, name=name)
    rng = np.random.default_rng(1)
    scale = {"bias": np.array([3, -2]), "multiplier": np.array([3, 1]), "shift": np.array([2, 0])}
    weights = {name: {"weight": random_values((2, 1, 1, 2), signed(3), rng)} for name in ("conv_1", "conv_2")}
    return Model(network, {**weights, "act_1": scale, "act_2": scale, **arrays})


def residual() -> Model:
    """An identity past a convolution, and another sum past both: three readers of one map."""
    adds = "add_1 act_1 act_2 s5, add_2 act_1 add_1 s7 clip=-9..60"
    return two_maps("residual", adds, add_1=arrays((3, -2), 5, 2), add_2=arrays((1, 1), 0, 1))


def check(**given):
    sources = [case_map(2, 3, 2, signed(8)), case_map(2, 3, 2, given.pop("second", signed(8)))]
    Add(name="add", inputs=("a", "b"), encoding=signed(8)).check_arrays_of({**arrays(), **given}, sources)


def sizes():
    layers = (Conv(name="c", out_channels=1, kernel=(2, 2)), Add(name="add", inputs=("c", INPUT), encoding=signed(8)))
    return Network(name="n", input=case_map(2, 3, 1), layers=layers)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Add(name="add", encoding=signed(8)), "add: inputs must be a tuple with the names of 2 maps, got ()"),
        (
            lambda: Add(name="add", inputs=("a", "b"), encoding=unsigned(9)),
            "add: encoding must be signed 2..9 bit or unsigned 1..8 bit, got unsigned 9 bit (0..511)",
        ),
        (
            lambda: Add(name="add", inputs=("a", "b"), encoding=signed(8), clip=(3, 2)),
            "add: clip must be None or (low, high) within signed 8 bit (-128..127), got (3, 2)",
        ),
        (sizes, "add: maps must have one size, got (1, 2, 1) and (2, 3, 1)"),
        (
            lambda: check(multiplier=np.array([1, 1 << 24])),
            "add.multiplier: values must be -16777215..16777215, got 16777216",
        ),
        (lambda: check(shift=np.array([40])), "add.shift: values must be 0..39, got 40"),
        (
            lambda: check(bias=np.array([1 << 39])),
            "add.bias: values must be -549755813888..549755813887, got 549755813888",
        ),
        (lambda: check(multiplier=np.ones(3, int)), "add.multiplier: shape must be (2,), got (3,)"),
        (
            lambda: check(multiplier=np.array([1, (1 << 24) - 1]), second=signed(40)),
            "add.multiplier: sums must be < 2^62 for all values of the maps, got 9223371487098962048",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with value_error(message):
        call()


@pytest.mark.parametrize("layer", [Add, MultiplyMaps])
def test_the_first_total_of_a_result(layer):
    """It has the result at least, and the total before it has not."""
    pair = layer(name="pair", inputs=("x", "y"), encoding=signed(8))
    results = np.arange(-5, 6)
    for shift in (1, 2, 7):
        first = pair.first_total(results, shift)
        assert (pair.divided(first, np.array(shift)) >= results).all()
        assert (pair.divided(first - 1, np.array(shift)) < results).all()
