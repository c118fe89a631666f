"""Boundaries that are pulled back through bends and lines, beside the same functions computed forwards in fractions."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from bitloom.golden.host.links import through
from bitloom.overlay.importers.bends import Bend, clip
from bitloom.overlay.importers.boundaries import Limits, Steps, staircases, threshold_arrays
from bitloom.overlay.importers.errors import ImportRefused
from bitloom.overlay.importers.links import Condition, Line, falls, merged
from bitloom.overlay.importers.operators.registry import INSTEAD, OPERATORS, operator, refused
from tests.errors import value_error

from .against import by_qonnx, check, imported
from .onnx_files import Chain


def corners(*pairs):
    return tuple((Fraction(x), Fraction(y)) for x, y in pairs)


LEAKY = Bend(name="LeakyRelu", corners=corners((0, 0)), slopes=(Fraction(1, 4), Fraction(1)))
BENDS = {
    "relu": clip(Fraction(0), None),
    "clip": clip(Fraction(-1), Fraction(3, 2)),
    "clip above": clip(None, Fraction(1)),
    "no end": clip(None, None),
    "crossed ends": clip(Fraction(1), Fraction(-1, 2)),
    "leaky": LEAKY,
    "hard sigmoid": Bend(
        name="HardSigmoid", corners=corners(("-5/2", 0), ("5/2", 1)), slopes=(Fraction(0), Fraction(0))
    ),
    "flat in the middle": Bend(
        name="flat", corners=corners((-1, 0), (1, 0), (2, 3)), slopes=(Fraction(1, 2), Fraction(2))
    ),
}
NUMBERS = [Fraction(k, 4) for k in range(-24, 25)]


@pytest.mark.parametrize("name", BENDS)
def test_a_condition_in_front_of_a_bend_is_the_one_behind_it(name):
    bend = BENDS[name]
    for limit, rising, reached in product(NUMBERS, (True, False), (True, False)):
        behind = Condition(limit, rising, reached)
        before = bend.before(behind)
        for x in NUMBERS:
            assert before.holds(x) == behind.holds(bend.value(x)), (behind, before, x)
    for always in (True, False):
        assert bend.before(Condition(None, always)) == Condition(None, always)


@pytest.mark.parametrize("name", BENDS)
def test_floating_point_computes_the_same(name):
    bend, x = BENDS[name], np.array([float(x) for x in NUMBERS])
    assert bend.run(x).tolist() == pytest.approx([float(bend.value(x)) for x in NUMBERS], abs=1e-15)


def test_infinite_numbers_stay_at_flat_ends():
    assert BENDS["clip"].run(np.array([-np.inf, np.inf])).tolist() == [-1, 1.5]
    assert LEAKY.run(np.array([-np.inf, np.inf])).tolist() == [-np.inf, np.inf]


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("relu", (0, np.inf)), ("clip", (-1, 1.5)), ("clip above", (-np.inf, 1)), ("no end", (-np.inf, np.inf)),
        ("crossed ends", (-0.5, -0.5)),
    ],
)  # fmt: skip
def test_the_host_computes_clips(name, ends):
    link = BENDS[name].host_link(2)
    assert (link[0], *(values.tolist() for values in link[1:])) == ("clip", [ends[0]] * 2, [ends[1]] * 2)
    x = np.array([[float(x)] * 2 for x in NUMBERS])
    assert np.array_equal(through((link,), x), BENDS[name].run(x))


@pytest.mark.parametrize("name", ["leaky", "hard sigmoid", "flat in the middle"])
def test_the_host_has_no_other_bends(name):
    assert not BENDS[name].on_host


@pytest.mark.parametrize(
    ("points", "slopes"), [([], (0, 0)), ([(1, 0), (1, 1)], (0, 0)), ([(0, 1), (1, 0)], (0, 0)), ([(0, 0)], (-1, 1))]
)
def test_a_bend_never_falls(points, slopes):
    with value_error("wave: corners must be from the left to the right, and nothing may fall"):
        Bend(name="wave", corners=corners(*points), slopes=(Fraction(slopes[0]), Fraction(slopes[1])))


def line(*pairs):
    multiply, add = (np.array([Fraction(number) for number in numbers], object) for numbers in zip(*pairs))
    return Line(multiply=multiply, add=add)


CHAINS = {
    "nothing": [],
    "a line": [line(("1/2", 1), (-2, "1/3"), (0, 1))],
    "a clip": [line(("1/2", 1), (-2, "1/3"), (0, 1)), clip(Fraction(0), Fraction(2))],
    "a line behind a clip": [clip(Fraction(-1), Fraction(2)), line((2, 0), (-1, 1), ("1/3", 0))],
    "leaky": [line((1, 0), (-1, 0), ("1/3", 2)), LEAKY, line(("1/2", 0), ("1/2", 0), ("1/2", 0))],
    "two bends": [LEAKY, line((1, 1), (1, 1), (1, 1)), clip(Fraction(0), None), line((-1, 3), (2, 0), (1, 0))],
}
LIMITS = np.array([[Fraction(k) for k in (-1, 0, 0, 1, 2)]], object)
REACHED = np.array([True, True, False, False, True])
SUMS = line(("1/8", "1/16"), ("-1/8", 0), ("3/7", 0))


def computed(chain, x, channel):
    for link in chain:
        x = x * link.multiply[channel] + link.add[channel] if isinstance(link, Line) else link.value(x, channel)
    return x


def level(x, limits):
    return sum(x > limit or (x == limit and hit) for limit, hit in zip(limits, REACHED))


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("rows", [1, 3])
def test_staircases_are_the_levels_of_every_sum(name, rows):
    chain = CHAINS[name]
    limits = LIMITS if rows == 1 else LIMITS + np.array([[Fraction(k, 4)] for k in range(3)], object)
    stairs = staircases(chain, limits, REACHED, SUMS)
    for channel, stair in enumerate(stairs):
        sums = np.arange(-60, 61)
        real = [computed([SUMS, *chain], Fraction(int(k)), channel) for k in sums]
        wanted = [level(x, limits[channel if rows > 1 else 0]) for x in real]
        assert stair.level(sums).tolist() == wanted
        turned = wanted if stair.rising else wanted[::-1]
        assert turned == sorted(turned)
    arrays = threshold_arrays(stairs, -60, 60)
    assert arrays["threshold"].shape == (3, 5)
    assert set(arrays["direction"]) <= {-1, 1}


def test_limits_beyond_any_sum_are_cut():
    (stair,) = staircases([line((Fraction(1, 1 << 80), 0))], LIMITS, REACHED, line((1, 0)))
    assert stair.limits == (-(1 << 61), 0, 1, 1 << 61, 1 << 61)


def test_ends_are_the_levels_that_some_number_has():
    """Of levels that all numbers have, none has, and some have."""
    for limits, always in product(
        product((None, Fraction(-1), Fraction(2)), repeat=3), product((True, False), repeat=3)
    ):
        lasting = [limit is None and here for limit, here in zip(limits, always)]
        row = Limits(limits, lasting, [True] * 3)
        levels = {row.level(x) for x in NUMBERS}
        assert row.ends == (min(levels), max(levels))


STEPS = {  # whether one line has the limits, whether all channels have the same levels
    "nothing": (True, True),
    "a line": (True, True),
    "a clip": (True, True),
    "a line behind a clip": (True, False),
    "leaky": (False, True),
    "two bends": (False, False),
}


@pytest.mark.parametrize("name", STEPS)
def test_what_one_line_and_one_clip_have(name):
    steps = Steps.of(CHAINS[name], LIMITS, REACHED, 3)
    assert (steps.straight, steps.ends_alike(np.full(3, Fraction(1), object))) == STEPS[name]
    assert len(steps.rows) == (3 if name in ("a line behind a clip", "two bends") else 1)


def test_a_bend_beyond_all_boundaries_leaves_one_line():
    """Above 0 a leaky ReLU is a ReLU; below it, a line of another slope."""
    for limits, slope in (((1, 2, 3), Fraction(1)), ((-3, -2, -1), Fraction(1, 4))):
        rows = np.array([[Fraction(limit) for limit in limits]], object)
        steps = Steps.of([LEAKY], rows, np.ones(3, bool), 1)
        assert steps.straight
        assert steps.slopes(line((2, 0))) == [2 * slope]


def test_chains():
    ones = line((1, 0), (1, 0))
    assert len(merged([ones, ones, LEAKY, ones])) == 3
    assert not falls([line((1, 0), (0, 0)), LEAKY])
    assert falls([ones, line((1, 0), (-1, 0))])


def network(chain, weight_bits=1, signed=1):
    """A convolution, what ``chain`` appends, a quantiser of 3 bits and a dense layer."""
    rng = np.random.default_rng(4)
    begun = Chain((2, 5, 6)).quant(0.25, 3)
    begun.node("Conv", np.float32(rng.choice([-1, 1], (4, 2, 3, 3))), np.float32([0.3125, 0.0625, -0.5625, 1.0625]))
    chain(begun)
    begun.quant(0.5, 3, signed=signed).node("Flatten")
    values = rng.choice([-1, 1], (5, 48)) if weight_bits == 1 else rng.integers(-7, 8, (5, 48))
    return begun.node("Gemm", values.astype(np.float32), transB=1)


def leaky(alpha=0.25):
    return lambda chain: chain.node("LeakyRelu", alpha=alpha)


REASON = (
    "Conv_1 (integer engine): a requantisation has one slope, got a LeakyRelu that bends between two levels; "
    "only maps that binary layers make or read have thresholds"
)


@pytest.mark.parametrize("weight_bits", [1, 4])
def test_an_activation_that_bends_becomes_thresholds(weight_bits):
    """Also where weights of several bits behind it need the other engine."""
    made = check(network(leaky(), weight_bits), by_qonnx, near=0)
    assert made.choice.engines == ("binary", "binary" if weight_bits == 1 else "integer")
    assert made.choice.costs["integer"] == REASON
    assert made.emitted.built[0].levels == 7


def test_the_integer_engine_refuses_it_before_anything_is_built():
    with pytest.raises(ImportRefused) as refusal:
        imported(network(leaky()), engine="integer")
    assert str(refusal.value) == REASON


def test_a_leaky_relu_that_falls_is_refused():
    with pytest.raises(ImportRefused, match=r"alpha must be >= 0, got -0\.5"):
        imported(network(leaky(-0.5)))


def test_a_bend_below_all_levels_is_for_both_engines():
    """What is below 0 has level 0 behind a quantiser without a sign: one line, as behind a ReLU."""
    for engine in ("binary", "integer"):
        made = check(network(leaky(), signed=0), by_qonnx, engine=engine, near=0)
        assert set(made.choice.engines) == {engine}


def test_channels_that_are_clipped_apart_take_both_engines():
    """The integer engine has one clip for all channels, so thresholds come in front of weights of several bits."""
    apart = np.float32([1, 0.5, 2, 1]).reshape(1, 4, 1, 1)

    def clipped(chain):
        chain.node("Clip", np.float32(-9), np.float32(1)).node("Mul", apart)

    made = check(network(clipped, 4), by_qonnx, near=0)
    assert made.choice.engines == ("binary", "integer")
    assert made.choice.costs["integer"] == (
        "Conv_1 (integer engine): all channels must be clipped to the same values; clip before what scales each channel"
    )


@pytest.mark.parametrize(
    "chain",
    [
        Chain((2, 5, 6)).node("LeakyRelu", alpha=0.5).quant(0.25, 3).node("Conv", np.ones((4, 2, 3, 3), np.float32)),
        Chain((2, 5, 6)).quant(0.25, 3).node("Conv", np.ones((4, 2, 3, 3), np.float32)).node("LeakyRelu", alpha=0.5),
    ],
)
def test_the_host_refuses_what_it_can_not_compute(chain):
    name = next(node.name for node in chain.nodes if node.op_type == "LeakyRelu")
    with pytest.raises(ImportRefused) as refusal:
        imported(chain)
    why = "at a network's ends the host computes lines and clips alone; put a quantiser behind it"
    assert str(refusal.value) == f"{name} (LeakyRelu): {why}"


def test_a_message_has_the_name_of_the_bend():
    chain = Chain((2, 5, 6)).quant(0.25, 3).node("LeakyRelu", alpha=0.5)
    with pytest.raises(ImportRefused) as refusal:
        imported(chain.node("Conv", np.ones((4, 2, 3, 3), np.float32)))
    why = "a LeakyRelu behind a quantiser must be followed by a quantiser, or cut nothing"
    assert str(refusal.value) == f"Conv_2 (Conv): {why}"


def test_no_operator_is_imported_and_refused(monkeypatch):
    monkeypatch.setattr("bitloom.overlay.importers.operators.registry.OPERATORS", dict(OPERATORS))
    monkeypatch.setattr("bitloom.overlay.importers.operators.registry.INSTEAD", dict(INSTEAD))
    with value_error("GRU: an operator must be imported or refused, got both"):
        operator("GRU")(lambda node: None)
    monkeypatch.setattr("bitloom.overlay.importers.operators.registry.OPERATORS", dict(OPERATORS))
    with value_error("Relu: an operator must be imported or refused, got both"):
        refused("Relu", instead="use another one")


def test_no_operator_has_two_functions(monkeypatch):
    monkeypatch.setattr("bitloom.overlay.importers.operators.registry.OPERATORS", dict(OPERATORS))
    with value_error("Relu: an operator must have one function, got a second one"):
        operator("Relu")(lambda node: None)
    operator("Relu", domains=("another",))(lambda node: None)
