"""Boundaries that are pulled back through bends and lines, beside the same functions computed forwards in fractions."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import inf

import numpy as np
import pytest

from bitloom.golden.host.links import through
from bitloom.overlay.importers.bends import bend, clip
from bitloom.overlay.importers.boundaries import Limits, Steps, staircases, threshold_arrays
from bitloom.overlay.importers.errors import ImportRefused
from bitloom.overlay.importers.links import Condition, Line, Link, falls, merged
from bitloom.overlay.importers.operators.registry import INSTEAD, OPERATORS, operator, refused
from bitloom.overlay.importers.rows import Boundaries
from tests.errors import refusal, value_error

from .against import by_qonnx, check, import_chain
from .onnx_files import Chain

LEAKY = bend("LeakyRelu", [(0, 0)], (Fraction(1, 4), 1))
OF_CHANNELS = {
    "leaky of channels": bend("PRelu", [(0, 0)], (np.array([Fraction(1, 4), 0, 2]), 1)),
    "clip of channels": clip(np.array([-1, None, Fraction(1, 2)]), np.array([Fraction(3, 2), 1, None])),
}
BENDS = {
    "relu": clip(Fraction(0), None),
    "clip": clip(Fraction(-1), Fraction(3, 2)),
    "clip above": clip(None, Fraction(1)),
    "no end": clip(None, None),
    "crossed ends": clip(Fraction(1), Fraction(-1, 2)),
    "leaky": LEAKY,
    "hard sigmoid": bend("HardSigmoid", [(Fraction(-5, 2), 0), (Fraction(5, 2), 1)], (0, 0)),
    "thresholded": bend("ThresholdedRelu", [(1, 0), (1, 1)], (0, 1)),
    "jumps": bend("jumps", [(-2, -1), (-2, 0), (0, 0), (0, 2), (1, 2), (1, 3)], (Fraction(1, 2), 0)),
    "flat in the middle": bend("flat", [(-1, 0), (1, 0), (2, 3)], (Fraction(1, 2), 2)),
    **OF_CHANNELS,
}
NUMBERS = [Fraction(k, 4) for k in range(-24, 25)]


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", BENDS)
def test_a_condition_in_front_of_a_bend_is_the_one_behind_it(name):
    link = BENDS[name]
    for channel in range(link.corners.size):
        for limit, rising, reached in product(NUMBERS, (True, False), (True, False)):
            behind = Condition(limit, rising, reached)
            before = link.before(behind, channel)
            for x in NUMBERS:
                assert before.holds(x) == behind.holds(link.value(x, channel)), (behind, before, x)
        for always in (True, False):
            assert link.before(Condition(None, always), channel) == Condition(None, always)


@pytest.mark.parametrize("name", BENDS)
def test_floating_point_computes_the_same(name):
    link = BENDS[name]
    x = np.array([[float(x)] for x in NUMBERS])
    wanted = [[float(link.value(x, channel)) for channel in range(link.corners.size)] for x in NUMBERS]
    assert link.run(x).tolist() == [pytest.approx(row, abs=1e-15) for row in wanted]


def test_a_bend_of_channels_has_a_value_for_each():
    leaky, limits = OF_CHANNELS.values()
    assert [leaky.value(Fraction(-1), channel) for channel in range(3)] == [Fraction(-1, 4), 0, -2]
    assert [limits.value(Fraction(2), channel) for channel in range(3)] == [Fraction(3, 2), 1, 2]
    assert [limits.value(Fraction(-2), channel) for channel in range(3)] == [-1, -2, Fraction(1, 2)]
    assert not leaky.is_uniform
    assert leaky.of_channel(2).is_uniform
    assert [leaky.taken(np.array([2, 2, 0])).value(Fraction(-1), channel) for channel in range(3)] == [
        -2,
        -2,
        Fraction(-1, 4),
    ]


def test_infinite_numbers_stay_at_flat_ends():
    assert BENDS["clip"].run(np.array([-np.inf, np.inf])).tolist() == [-1, 1.5]
    assert LEAKY.run(np.array([-np.inf, np.inf])).tolist() == [-np.inf, np.inf]


ENDS = {
    "relu": (0, np.inf),
    "clip": (-1, 1.5),
    "clip above": (-np.inf, 1),
    "no end": (-np.inf, np.inf),
    "crossed ends": (-0.5, -0.5),
    "clip of channels": ([-1, -np.inf, 0.5], [1.5, 1, np.inf]),
}


@pytest.mark.parametrize(("name", "ends"), ENDS.items())
def test_the_host_computes_clips(name, ends):
    link = BENDS[name].host_link(3)
    assert (link[0], *(values.tolist() for values in link[1:])) == ("clip", *(np.full(3, end).tolist() for end in ends))
    x = np.array([[float(x)] * 3 for x in NUMBERS])
    assert np.array_equal(through((link,), x), BENDS[name].run(x))


@pytest.mark.parametrize("name", ["leaky", "hard sigmoid", "thresholded", "flat in the middle", "leaky of channels"])
def test_the_host_has_no_other_bends(name):
    assert not BENDS[name].on_host


@pytest.mark.parametrize(
    ("points", "slopes"),
    [
        ([], (0, 0)),
        ([(1, 0), (1, 0)], (0, 0)),
        ([(1, 1), (1, 0)], (0, 0)),
        ([(0, 1), (1, 0)], (0, 0)),
        ([(0, 0)], (-1, 1)),
    ],
)
def test_a_bend_never_falls(points, slopes):
    with value_error("corners must be from the left to the right, and nothing may fall"):
        bend("wave", points, slopes)


def line(*pairs):
    multiply, add = (np.array([Fraction(number) for number in numbers], object) for numbers in zip(*pairs))
    return Line(multiply=multiply, add=add)


CHAINS = {
    "nothing": [],
    "a line": [line(("1/2", 1), (-2, "1/3"), (0, 1))],
    "a clip": [line(("1/2", 1), (-2, "1/3"), (0, 1)), clip(Fraction(0), Fraction(2))],
    "a line behind a clip": [clip(Fraction(-1), Fraction(2)), line((2, 0), (-1, 1), ("1/3", 0))],
    "leaky": [line((1, 0), (-1, 0), ("1/3", 2)), LEAKY, line(("1/2", 0), ("1/2", 0), ("1/2", 0))],
    "leaky of channels": [OF_CHANNELS["leaky of channels"]],
    "thresholded": [line((1, 0), (-1, 0), ("1/3", 2)), BENDS["thresholded"], line(("1/2", 0), ("3/2", 0), (2, -1))],
    "a clip of channels": [line((1, 0), (-1, 0), ("1/3", 2)), OF_CHANNELS["clip of channels"], line(*[("1/2", 1)] * 3)],
    "two bends": [LEAKY, line((1, 1), (1, 1), (1, 1)), clip(Fraction(0), None), line((-1, 3), (2, 0), (1, 0))],
}
LIMITS = np.array([[Fraction(k) for k in (-1, 0, 0, 1, 2)]], object)
REACHED = np.array([True, True, False, False, True])
BOUNDARIES = Boundaries(limits=LIMITS, reached=REACHED)
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
    stairs = staircases(chain, Boundaries(limits=limits, reached=REACHED), SUMS)
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
    (stair,) = staircases([line((Fraction(1, 1 << 80), 0))], BOUNDARIES, line((1, 0)))
    assert stair.limits == (-(1 << 61), 0, 1, 1 << 61, 1 << 61)


def test_ends_are_the_levels_that_some_number_has():
    """Of levels that all numbers have, none has, and some have."""
    for limits, rising in product(product((-inf, Fraction(-1), Fraction(2), inf), repeat=3), (True, False)):
        row = Limits(limits, [True] * 3, rising)
        levels = {row.level(x) for x in NUMBERS}
        assert row.ends == (min(levels), max(levels))


STEPS = {  # whether one line has the limits, whether all channels have the same levels
    "nothing": (True, True),
    "a line": (True, True),
    "a clip": (True, True),
    "a line behind a clip": (True, False),
    "leaky": (False, True),
    "leaky of channels": (False, False),
    "a clip of channels": (True, False),
    "two bends": (False, False),
}


@pytest.mark.parametrize("name", STEPS)
def test_what_one_line_and_one_clip_have(name):
    steps = Steps.of(CHAINS[name], BOUNDARIES, 3)
    assert (steps.straight, steps.ends_alike(np.full(3, Fraction(1), object))) == STEPS[name]
    assert len(steps.rows) == (1 if name in ("nothing", "a line", "a clip", "leaky") else 3)


def test_a_bend_beyond_all_boundaries_leaves_one_line():
    """Above 0 a leaky ReLU is a ReLU; below it, a line of another slope."""
    for limits, slope in (((1, 2, 3), Fraction(1)), ((-3, -2, -1), Fraction(1, 4))):
        rows = np.array([[Fraction(limit) for limit in limits]], object)
        steps = Steps.of([LEAKY], Boundaries(limits=rows, reached=np.ones(3, bool)), 1)
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


def thresholded(alpha=0.75):
    return lambda chain: chain.node("ThresholdedRelu", alpha=alpha)


REASON = (
    "Conv_1 (integer engine): a requantisation has one slope, got a {} that bends between two levels; "
    "only maps that binary layers make or read have thresholds"
)


@pytest.mark.parametrize("weight_bits", [1, 4])
@pytest.mark.parametrize(("name", "function"), [("LeakyRelu", leaky()), ("ThresholdedRelu", thresholded())])
def test_an_activation_that_bends_becomes_thresholds(name, function, weight_bits):
    """Also where weights of several bits behind it need the other engine."""
    imported = check(network(function, weight_bits), by_qonnx, near=0)
    assert imported.choice.engines == ("binary", "binary" if weight_bits == 1 else "integer")
    assert imported.choice.costs["integer"] == REASON.format(name)
    assert imported.emitted.built[0].levels == 7


SLOPES = np.float32([0.25, 0, 1.5, 0.75]).reshape(4, 1, 1)
LOWEST = np.float32([-0.25, 0.5, -np.inf, -1]).reshape(1, 4, 1, 1)
HIGHEST = np.float32([1, 0.75, 1.25, 3e38]).reshape(4, 1, 1)
CHANNELS = {
    "slopes": lambda chain: chain.node("PRelu", SLOPES),
    "slopes behind factors": lambda chain: chain.node("Mul", SLOPES - 0.5).node("PRelu", SLOPES),
    "slopes behind a transpose": lambda chain: (
        chain.node("Transpose", perm=[0, 2, 3, 1]).node("PRelu", SLOPES.ravel()).node("Transpose", perm=[0, 3, 1, 2])
    ),
    "maxima": lambda chain: chain.node("Max", LOWEST),
    "minima": lambda chain: chain.reversed("Min", HIGHEST),
    "maxima of several constants": lambda chain: chain.node("Max", LOWEST, np.float32(-0.5)),
    "both": lambda chain: chain.node("Max", LOWEST).node("Min", HIGHEST),
    "both in front of a max pool": lambda chain: (
        chain.node("PRelu", SLOPES).node("Min", HIGHEST).node("MaxPool", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    ),
}


@pytest.mark.parametrize("name", CHANNELS)
def test_channels_that_bend_apart_become_thresholds(name):
    imported = check(network(CHANNELS[name]), by_qonnx, near=0)
    assert imported.choice.engines == ("binary", "binary")
    assert imported.emitted.built[0].levels == 7
    assert imported.choice.costs["integer"].startswith("Conv_1 (integer engine): ")


def test_slopes_of_a_dense_layer():
    """Behind a flatten, and between two quantisers, where weights that copy come between."""
    rng = np.random.default_rng(5)
    chain = Chain((2, 3, 3)).quant(0.25, 3).node("Flatten")
    chain.node("MatMul", rng.choice([-1, 1], (18, 5)).astype(np.float32))
    chain.node("PRelu", np.float32([0.5, 2, 0, 0.25, 1])).quant(0.5, 3)
    chain.node("PRelu", np.float32([[1, 0.5, 2, 4, 0]])).quant(1.5, 2)
    imported = check(chain.node("MatMul", rng.choice([-1, 1], (5, 6)).astype(np.float32)), by_qonnx, near=0)
    assert [section.verb for section in imported.graph.sections] == ["multiplied"] * 3


@pytest.mark.parametrize("least", [np.int8(-2), np.int8([-4, 0, 1, 2]).reshape(4, 1, 1)])
def test_maxima_of_integers(least):
    """Of 3 bits, as Brevitas writes them: one constant is part of the quantiser, those of channels are not."""

    def cut(chain):
        chain.node("QuantizeLinear", 0.5, chain.constant(0, np.int8))
        chain.node("Clip", chain.constant(-4, np.int8), chain.constant(3, np.int8))
        chain.node("Max", chain.constant(least, np.int8)).node("DequantizeLinear", 0.5, chain.constant(0, np.int8))

    pytest.importorskip("onnxruntime", minversion="1.24", reason="onnxruntime 1.23 has no Max of int8")
    imported = check(network(cut), by_qonnx, near=0)
    assert len(imported.graph.sections) == (2 if least.size == 1 else 3)


def test_a_pooled_map_of_which_some_channels_are_read():
    """Behind a factor, so that no tensor of the file has the pool's values as their quantiser made them."""
    rng = np.random.default_rng(5)
    chain = Chain((2, 6, 6)).quant(0.25, 2).node("Conv", rng.choice([-1, 1], (4, 2, 3, 3)).astype(np.float32))
    chain.quant(1.0, 2).node("Mul", np.float32(0.5)).node("MaxPool", kernel_shape=[2, 2])
    chain.node("Slice", *map(np.int64, ([1], [3], [1]))).node("Max", LOWEST[:, 1:3]).quant(0.5, 2).node("Flatten")
    check(chain.node("MatMul", rng.choice([-1, 1], (18, 5)).astype(np.float32)), by_qonnx, near=0)


def test_the_host_cuts_channels_apart():
    """At both ends."""
    rng = np.random.default_rng(5)
    chain = Chain((2, 3, 3)).node("Max", np.float32([-0.5, 0.25]).reshape(2, 1, 1)).quant(0.25, 3)
    chain.node("Conv", rng.choice([-1, 1], (4, 2, 3, 3)).astype(np.float32)).node("Flatten")
    check(chain.node("Min", np.float32([1.5, 0.25, 3, 100])), by_qonnx, near=0)


def test_what_lies_behind_a_sum_is_the_same_in_every_channel():
    chain = Chain((2, 5, 6)).quant(0.25, 4).node("Conv", np.ones((4, 2, 3, 3), np.float32)).quant(0.5, 4)
    here = chain.here
    chain.node("Conv", np.ones((4, 4, 1, 1), np.float32)).quant(0.5, 4).node("Add", here).node("PRelu", SLOPES)
    with refusal("Add_5 (Add): what lies between a sum and its quantiser must be the same in every channel"):
        import_chain(chain.quant(1.0, 4).node("Conv", np.ones((4, 4, 1, 1), np.float32)))


NOT_QUANTISED = "must be quantised, got sums of weights; quantise before it"
SPREADS = "constants must spread over a tensor of shape (1, 4, 3, 4), got shape"
ROWS_AND_COLUMNS = np.int64([0, 0, 1, 1, 0, 0, 1, 1])


def padded_maximum(chain):
    return chain.quant(0.5, 3).node("Pad", ROWS_AND_COLUMNS).node("Max", LOWEST).node("MaxPool", kernel_shape=[3, 3])


@pytest.mark.parametrize(
    ("chain", "why"),
    [
        (lambda chain: chain.node("PRelu", -SLOPES), f"what PRelu reads {NOT_QUANTISED}"),
        (
            lambda chain: chain.node("PRelu", np.float32([[[0.5, 0.5, 0.25, 1]]])),
            "what it computes must be the same at all places of a channel",
        ),
        (lambda chain: chain.node("PRelu", np.float32([0.5, 0.25, 1])), f"{SPREADS} (3,)"),
        (padded_maximum, "what a map is padded with must stay the same number in every channel"),
        (lambda chain: chain.node("Max", np.float32(np.nan)), "parameters must be finite, got nan"),
        (lambda chain: chain.node("Max", -LOWEST), "the lower end of a clip must leave some numbers, got inf"),
        (
            lambda chain: chain.node("Clip", "", np.float32(-np.inf)),
            "the upper end of a clip must leave some numbers, got -inf",
        ),
        (lambda chain: chain.node("Min", HIGHEST, HIGHEST[1:]), f"{SPREADS} (3, 1, 1)"),
        (lambda chain: chain.node("Max", chain.here), f"what Max reads {NOT_QUANTISED}"),
    ],
)
def test_what_channels_can_not_have(chain, why):
    with pytest.raises(ImportRefused) as refused_import:
        import_chain(network(chain))
    assert str(refused_import.value).split("): ", 1)[1] == why


def test_the_integer_engine_has_it_as_ramps_where_it_is_asked_for():
    imported = check(network(leaky()), by_qonnx, engine="integer", near=0)
    assert "ramps_1" in [layer.name for layer in imported.model.network.layers]


def test_a_leaky_relu_that_falls_must_read_a_quantised_map():
    with pytest.raises(ImportRefused, match="what LeakyRelu reads must be quantised, got sums of weights"):
        import_chain(network(leaky(-0.5)))


def test_a_bend_below_all_levels_is_for_both_engines():
    """Numbers below 0 have level 0 behind a quantiser without a sign: one line, as behind a ReLU."""
    for engine in ("binary", "integer"):
        imported = check(network(leaky(), signed=0), by_qonnx, engine=engine, near=0)
        assert set(imported.choice.engines) == {engine}


def test_channels_that_are_clipped_apart_take_both_engines():
    """The integer engine has one clip for all channels, so thresholds come in front of weights of several bits."""
    apart = np.float32([1, 0.5, 2, 1]).reshape(1, 4, 1, 1)

    def clipped(chain):
        chain.node("Clip", np.float32(-9), np.float32(1)).node("Mul", apart)

    imported = check(network(clipped, 4), by_qonnx, near=0)
    assert imported.choice.engines == ("binary", "integer")
    assert imported.choice.costs["integer"] == (
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
    why = "at a network's ends the host computes lines and clips alone; put a quantiser behind it"
    with refusal(f"{name} (LeakyRelu): {why}"):
        import_chain(chain)


def test_a_message_has_the_name_of_the_bend():
    chain = Chain((2, 5, 6)).quant(0.25, 3).node("LeakyRelu", alpha=0.5)
    rule = "a LeakyRelu behind a quantiser must be followed by a quantiser, or cut nothing"
    why = f"{rule}; quantise what it makes, in onnxruntime by LeakyRelu in op_types_to_quantize"
    with refusal(f"Conv_2 (Conv): {why}"):
        import_chain(chain.node("Conv", np.ones((4, 2, 3, 3), np.float32)))


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


@dataclass(frozen=True)
class Jump(Link):
    """0 below 1, and 1 from 1 on."""

    falls = np.array([False])

    def value(self, x: Fraction, channel: int = 0) -> Fraction:
        return Fraction(x >= 1)

    def run(self, x: np.ndarray) -> np.ndarray:
        return (x >= 1).astype(float)

    def before(self, condition: Condition, channel: int = 0) -> Condition:
        low, high = condition.holds(Fraction(0)), condition.holds(Fraction(1))
        return Condition(None, low) if low == high else Condition(Fraction(1), high)


def test_whether_a_limit_itself_has_the_level_comes_from_the_links():
    """The quantiser's level begins above 1/2, not at it; the jump to 1 is at 1 itself."""
    (row,) = Steps.of([Jump()], Boundaries.of([Fraction(1, 2)], reached=False), 1).rows
    assert (list(row.limits), list(row.reached)) == ([1], [True])
