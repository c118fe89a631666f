"""Requantisation: OL accumulators become OL features of ``feature_bits``.  Golden twin: golden/layers/requantise.py.

    sums[OL] --> + bias --> x multiplier --> half --> + half --> >> shift --> clip to low..high --> features[OL]
                   `--> raw[OL] (the sum itself)

Rounds to nearest, halves away from zero; in an NPU with ``half_even``, to the even one in layers that ask for it; in
one with ``round_twice``, where asked for, first after 31 bits (and those of the bias behind the point), halves upwards.
One step a cycle, a cycle for each stage. Operands and product are registers, as DSP blocks have them, and each
other arrow is a register stage, so that none is deeper than 8 LUT levels. All stages move together, when the last one
is free. Without multipliers, where all are 1, the product is the value. Feature units stand behind the limits
(feature_unit.py), in further stages that move with these.
A wide product comes in parts, which are added in the two stages that follow (hls_gen/design/split_product.py).
Shifts are at most ``Npu.most_shift``, where every result is 0: half of 2^shift and the product then fit their register.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from veriloggen import Cat, Pointer, Repeat
from veriloggen.core.vtypes import Srl

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.split_product import SplitProduct, split_product
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    any_of,
    bits,
    choose,
    const,
    eq,
    nonzero,
    product,
    resize,
    side_by_side,
    sign_extend,
    signed_at_least,
    width,
)
from bitloom.hls_gen.rtl.primitives.pipeline import Pipeline, Ready
from bitloom.hls_gen.rtl.primitives.rows import added, rows_of_product, sum_of_rows
from bitloom.hls_gen.rtl.primitives.stream import Stream

from .feature_unit import PlaceUnit
from .step import Step, marks_of

ADDED_AT_ONCE = 2
"""Levels of adders in the stage in which LUTs multiply; the sums of rows that are left are added in the next one."""


@dataclass(frozen=True)
class _RequantiseSignals:
    """Signals that all lanes of the requantisation read."""

    step: Step
    """The step that enters the first stage."""
    pipe: Pipeline
    """The stages from the product on."""
    low: Signal
    high: Signal
    """low, high: limits of the value in stage "shifted"."""
    half_even: Signal | None
    """Whether halves of the value in stage "product" become even; None in an NPU where none do."""
    round_twice: Signal | None
    """Whether the value in stage "product" is rounded twice, or in stage "value" of a product in parts; None in an NPU
    where none is."""
    split: SplitProduct | None
    """The parts of the product; None where it is whole."""
    in_luts: bool
    """Whether LUTs multiply by the upper half of a multiplier, where the product is split."""


def requantise(
    b: Block,
    npu: Npu,
    step: Step,
    stages: Sequence[str],
    ready: Ready,
    *,
    in_luts: bool = False,
    units: Sequence[PlaceUnit] = (),
) -> Stream:
    """The activation of an NPU that requantises; makes the ports ``raw_*``.

    Parameters
    ----------
    npu : Npu
        Its widths and lanes.
    step : Step
        The step at hand, whose ``free`` and ``free_before`` are assigned.
    stages : sequence of str
        The unit's register stages (hls_gen/design/timing.py).
    ready : Ready
        Whether the stage behind takes the features.
    in_luts : bool
        Whether LUTs multiply by the upper half of a multiplier, where the product is split.
    units : sequence of PlaceUnit
        The feature units behind the limits, in their order, in the last of the stages.

    Returns
    -------
    Stream
        OL features a word, ``last`` at the end of each tuple, and the step's side bits; its ready is ``ready.now``.
    """
    b.comment("Requantisation, a register a stage: whether it has a step, and what goes with the step.")
    valid = b.reg("value_valid")
    pipe = Pipeline(b, stages[1:], b.wire("move_on"))
    taken = pipe.control(ready)
    marks = marks_of(b, npu, step)
    b.on(step.free, (valid, step.busy))
    pipe.enter(marks.go_on(valid))
    goes = pipe.beside("side", side_by_side([marks.tuple_last] + ([] if marks.side is None else [marks.side])))

    given = step.row | step.layer

    def make_field(name: str) -> Signal:
        """A field of the step's row or of the layer's: a register in the first stage."""
        value = b.reg(f"value_{name}", width(given[name]), init=None)
        b.on(step.free, (value, given[name]))
        return value

    def late(name: str, until: str) -> Signal:
        """A field of the layer, as late as the stage ``until``."""
        field = make_field(name)
        return field if until == stages[0] else pipe.late(name, field, until)[until]

    split = split_product(npu)
    limits = [late(name, "shifted") for name in ("low", "high")]
    rounds = "product" if split is None else "value"
    roundings = [late(name, rounds) if name in given else None for name in ("half_even", "round_twice")]
    shared = _RequantiseSignals(step, pipe, *limits, *roundings, split, in_luts)
    lanes = [_lane(b, npu, shared, k) for k in range(npu.results.ol)]
    values = [value for value, _ in lanes]
    features = [feature for _, feature in lanes]
    for place_unit in units:
        features = place_unit(pipe, features, make_field)
    marks.assign_free(b, step, valid, taken, marks.raw_ports(b, npu, valid, values))
    return Stream(
        valid=pipe.valid[stages[-1]],
        ready=ready.now,
        data=side_by_side(features),
        last=bits(goes, 0, 1),
        side=None if marks.side is None else bits(goes, 1, width(marks.side)),
    )


def _lane(b: Block, npu: Npu, shared: _RequantiseSignals, k: int) -> tuple[Signal, Signal]:
    """(value register's whole part, feature register) of lane ``k``."""
    b.comment(f"Lane {k}: bias, product, half, rounding, shift, limits.")
    w = npu.biased_bits
    step = shared.step
    value = b.reg(f"value_{k}", w, init=None)
    shift = b.reg(f"shift_{k}", npu.scale_shift_bits, init=None)
    given = step.row[f"bias_{k}"]
    raw = step.layer.get("raw")
    bias = b.wire(f"bias_{k}", w, given if raw is None else choose(raw, 0, given, w))
    total = step.sums[k]
    if npu.results.bias_fraction_bits:
        total = b.wire(f"total_{k}", w, Cat(total, const(0, npu.results.bias_fraction_bits)))
    b.on(step.free, (value, total + bias), (shift, step.row[f"shift_{k}"]))
    factor = None
    if npu.results.multiplier_bits:
        factor = b.reg(f"multiplier_{k}", npu.results.multiplier_bits, init=None)
        b.on(step.free, (factor, step.row[f"multiplier_{k}"]))

    wide = npu.product_bits
    if factor is not None and shared.split is not None:
        shifted = _shifted(b, npu, shared, k, _half_of_split(b, npu, shared, k, shared.split, (value, factor, shift)))
    else:
        scaled = sign_extend(value, wide) if factor is None else product(value, _signed(factor))
        shifted = _shifted(b, npu, shared, k, _half(b, npu, shared, k, scaled, shift))
    w = npu.value_bits
    low = b.wire(f"low_{k}", wide, sign_extend(shared.low, wide))
    high = b.wire(f"high_{k}", wide, sign_extend(shared.high, wide))
    feature = b.reg(f"feature_{k}", w, init=None)
    above = b.wire(f"above_{k}", 1, signed_at_least(shifted, high))
    below = b.wire(f"below_{k}", 1, signed_at_least(low, shifted))
    clipped = choose(above, shared.high, choose(below, shared.low, bits(shifted, 0, w), w), w)
    b.on(shared.pipe.move, (feature, clipped))
    return bits(value, npu.results.bias_fraction_bits, npu.array.acc_bits), feature


def _half(b: Block, npu: Npu, shared: _RequantiseSignals, k: int, scaled: Signal, shift: Signal) -> tuple[Signal, ...]:
    """(product of lane ``k``, what is added to round it, shift), registers: two stages."""
    wide = npu.product_bits
    narrow = npu.scale_shift_bits
    lane_product = shared.pipe.register(f"product_{k}", wide, scaled)
    product_shift = shared.pipe.register(f"product_shift_{k}", narrow, shift)

    # half = 2^(shift - 1), one less for negative numbers (or above an even one), nothing without a shift
    half = b.reg(f"half_{k}", wide, init=None)
    half_product = b.reg(f"half_product_{k}", wide, init=None)
    half_shift = b.reg(f"half_shift_{k}", narrow, init=None)
    power, above, some = _half_of_power(b, k, product_shift, wide)
    less_half = bits(lane_product, wide - 1, 1)
    if shared.half_even is not None:  # bit ``shift`` of the product is the lowest one that stays
        odd = b.wire(f"odd_{k}", 1, Pointer(lane_product, resize(product_shift, bits_for(wide - 1))))
        less_half = choose(shared.half_even, ~odd, less_half, 1)
    after = lane_product
    if shared.round_twice is not None:
        after = _rounded_first(b, npu, shared.round_twice, k, lane_product, product_shift)
        less_half = less_half & ~shared.round_twice
    b.on(
        shared.pipe.move,
        (half, choose(some, choose(less_half, ~above, power, wide), 0, wide)),
        (half_product, after),
        (half_shift, product_shift),
    )
    return half_product, half, half_shift


def _half_of_split(
    b: Block, npu: Npu, shared: _RequantiseSignals, k: int, split: SplitProduct, given: tuple[Signal, Signal, Signal]
) -> tuple[Signal, ...]:
    """As ``_half`` for a product in parts, of a value, a factor and a shift. The first stage has the parts. What is
    added to round the product depends on the product's sign, which is the value's, and so is known in the first stage.
    A DSP block's product comes late: in the second stage one other part is added to it, and the rest to what rounds the
    product."""
    value, factor, shift = given
    wide = npu.product_bits
    narrow = npu.scale_shift_bits
    pipe = shared.pipe
    top = width(value) - split.apart
    high = b.wire(f"value_high_{k}", top, bits(value, split.apart, top))
    low_factor = b.wire(f"factor_low_{k}", split.cut + 1, _signed(bits(factor, 0, split.cut)))
    lower = pipe.register(f"product_low_{k}", top + split.cut + 1, product(high, low_factor))
    lower = _placed(lower, split.apart, wide)
    parts = list[Signal]()
    if split.rest:
        rest = split.rest + 1  # with the sign
        high_factor = b.wire(f"factor_high_{k}", rest, _signed(bits(factor, split.cut, split.rest)))
        place = split.apart + split.cut  # the product has as many bits as ``wide`` has from here on
        multiplied = [product(high, high_factor)]
        if shared.in_luts:
            multiplied = added(rows_of_product(b, f"upper_{k}", high_factor, high), ADDED_AT_ONCE)
        for i, part in enumerate(multiplied):
            upper = pipe.register(f"product_high_{k}" + f"_{i}" * (len(multiplied) > 1), top + rest, part)
            parts.append(_placed(upper, place, wide))
    if split.apart:
        low = b.wire(f"value_low_{k}", split.apart, bits(value, 0, split.apart))
        rows = pipe.register(f"product_rows_{k}", split.apart + width(factor), sum_of_rows(low, factor))
        parts.append(resize(rows, wide))
    product_shift = pipe.register(f"product_shift_{k}", narrow, shift)
    negative = b.wire(f"negative_{k}", 1, bits(value, width(value) - 1, 1))
    power, above, some = _half_of_power(b, k, shift, wide)
    rounding = choose(negative, ~above, power, wide)
    if shared.round_twice is not None:
        rounding = _half_of_two(b, npu, k, (shared.round_twice, negative, shift), power, above)
    rounding = pipe.register(f"product_rounding_{k}", wide, choose(some, rounding, 0, wide))

    half_product = b.reg(f"half_product_{k}", wide, init=None)
    half = b.reg(f"half_{k}", wide, init=None)
    half_shift = b.reg(f"half_shift_{k}", narrow, init=None)
    b.on(pipe.move, (half_product, added([*parts[:1], lower])[0]), (half_shift, product_shift))
    b.on(pipe.move, (half, added([*parts[1:], rounding])[0]))
    return half_product, half, half_shift


def _half_of_power(b: Block, k: int, shift: Signal, wide: int) -> tuple[Signal, Signal, Signal]:
    """(2^(shift - 1), all bits from that one up, whether there is a shift) of lane ``k``. Each bit is a function of the
    shift alone, without a carry chain: ~above is 2^(shift - 1) - 1."""
    from_shift = b.wire(f"from_shift_{k}", wide + 1, Repeat(const(1, 1), wide + 1) << shift)  # bits from ``shift`` up
    b.wire(f"from_shift_unused_{k}", 1, bits(from_shift, 0, 1))
    above = b.wire(f"above_half_{k}", wide, bits(from_shift, 1, wide))
    power = b.wire(f"power_{k}", wide, above & ~Cat(bits(above, 0, wide - 1), const(0, 1)))
    return power, above, b.wire(f"some_{k}", 1, nonzero(shift))


def _half_of_two(
    b: Block, npu: Npu, k: int, given: tuple[Signal, Signal, Signal], power: Signal, above: Signal
) -> Signal:
    """Number that is added to a product to round it. ``given``: whether the product is rounded twice, whether it is
    negative, and its shift.

    ``power`` is 2^(shift - 1), ``above`` has all bits from there up. Rounded once it is power, or one less. Rounded
    twice (``_rounded_first``) power and 2^(f - 1), or power less that: all bits between the two.
    """
    twice, negative, shift = given
    place = npu.results.first_shift - 1
    wide = npu.product_bits
    second = b.wire(
        f"second_{k}", 1, twice & ~eq(shift, b.localparam("FIRST_SHIFT", npu.results.first_shift, width(shift)))
    )
    below = b.wire(f"below_half_{k}", wide, ~above)
    low_ones = b.wire(f"low_ones_{k}", 1, negative & ~twice)
    high_ones = b.wire(f"high_ones_{k}", 1, negative & any_of(~twice, second))
    high_power = bits(power, place, wide - place) | resize(b.wire(f"first_half_{k}", 1, second), wide - place)
    high = choose(high_ones, bits(below, place, wide - place), high_power, wide - place)
    return Cat(high, choose(low_ones, bits(below, 0, place), bits(power, 0, place), place))


def _signed(factor: Signal) -> Signal:
    """A multiplier, or bits of it, with a sign: it is never negative."""
    return Cat(const(0, 1), factor)


def _placed(part: Signal, place: int, w: int) -> Signal:
    """A part of a product, with its sign, from bit ``place`` on, in ``w`` bits."""
    extended = sign_extend(part, w - place)
    return Cat(extended, const(0, place)) if place else extended


def _shifted(b: Block, npu: Npu, shared: _RequantiseSignals, k: int, given: tuple[Signal, ...]) -> Signal:
    """The product of lane ``k``, rounded and shifted: two register stages. ``given`` is what ``_half`` gives."""
    wide = npu.product_bits
    half_product, half, half_shift = given
    rounded = shared.pipe.register(f"rounded_{k}", wide, half_product + half)
    rounded_shift = shared.pipe.register(f"rounded_shift_{k}", npu.scale_shift_bits, half_shift)

    shifted = b.reg(f"shifted_{k}", wide, init=None)
    sign = bits(rounded, wide - 1, 1)
    turned = b.wire(f"turned_{k}", wide, rounded ^ Repeat(sign, wide))  # ~x >> s = ~(x >>> s): one unsigned shifter
    b.on(shared.pipe.move, (shifted, Srl(turned, rounded_shift) ^ Repeat(sign, wide)))
    return shifted


def _rounded_first(b: Block, npu: Npu, twice: Signal, k: int, lane_product: Signal, shift: Signal) -> Signal:
    """The product of lane ``k`` with what the first of two roundings adds to it.

    Of p rounded after f bits, halves upwards, to h, h / 2^r is (p + 2^(f + r - 1) + 2^(f - 1) - [p < 0] * 2^f) >> f + r
    with r >= 1: half of the second rounding, which every layer has, and 2^(f - 1) up, or down where p is negative. (To
    be exact, down where h is negative. Where p is negative and h is not, h is 0, and the result is 0 either way.)
    Without a second rounding (r = 0) there is nothing to add.
    """
    wide = npu.product_bits
    place = npu.results.first_shift - 1
    high = b.wire(f"high_part_{k}", wide - place, bits(lane_product, place, wide - place))
    negative = bits(lane_product, wide - 1, 1)
    first = b.localparam("FIRST_SHIFT", npu.results.first_shift, width(shift))
    adds = b.wire(f"adds_{k}", 1, twice & ~eq(shift, first))
    falls = b.wire(f"falls_{k}", 1, adds & negative)
    away = b.wire(f"away_{k}", wide - place, Cat(Repeat(falls, wide - place - 1), adds))
    moved = b.wire(f"moved_{k}", wide - place, high + away)
    return Cat(moved, bits(lane_product, 0, place))
