"""Requantisation: OL accumulators become OL features of ``feature_bits``.  Golden twin: golden/layers/requantise.py.

    sums[OL] --> + bias --> x multiplier --> half --> + half --> >> shift --> clip to low..high --> features[OL]
                   `--> raw[OL] (the sum itself)

Rounds to nearest, halves away from zero. One step a cycle, latency 6 cycles; operands and product are registers, as DSP
blocks have them, and each other step is a register stage, so that none is deeper than 8 LUT levels. All stages move
together, when the last one is free. Shifts are at most acc_bits + 16, where every result is 0: half of 2^shift and the
product then fit their register.
"""

from itertools import pairwise

from veriloggen import Repeat
from veriloggen.core.vtypes import Srl

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import MULTIPLIER_BITS, SHIFT_BITS
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    all_of,
    any_of,
    bits,
    choose,
    const,
    nonzero,
    product,
    resize,
    sign_extend,
    signed_at_least,
    sub,
    width,
)

from .step import Step, join, values_of

STAGES = timing.REQUANTISE_STAGES


def requantise(b: Block, npu: Npu, step: Step) -> None:
    """The integer activation inside the results unit ``b``; makes the ports ``raw_*`` and ``features_*``."""
    features_ready = b.input("features_ready")
    valid = {stage: b.reg(f"{stage}_valid") for stage in STAGES}
    move = b.wire("move_on", 1, any_of(~valid["feature"], features_ready))
    side = values_of(b, npu, step)
    value_ready, featured = b.wire("value_ready"), valid["value"]
    step.go.assign(all_of(step.busy, any_of(~valid["value"], value_ready)))
    b.on(value_ready, (valid["value"], 0))
    b.on(step.go, (valid["value"], 1))
    b.on(
        move,
        (valid["product"], featured if side.raw is None else featured & ~side.raw),
        *[(valid[after], valid[before]) for before, after in pairwise(STAGES[1:])],
    )
    goes = join([side.tuple_last] + ([] if side.side is None else [side.side]))
    for stage in STAGES[1:]:
        late = b.reg(f"{stage}_side", width(goes), init=None)
        b.on(move, (late, goes))
        goes = late
    limits = _limits(b, npu, step, move)
    values, features = [], []
    for k, one in enumerate(step.sums):
        value, feature = _lane(b, npu, step, k, one, move, limits)
        values.append(value)
        features.append(feature)
    raw_ready = side.leave(b, npu, valid["value"], values)
    value_ready.assign(move if side.raw is None else choose(side.raw, raw_ready, move, 1))
    b.output("features_valid", 1, valid["feature"])
    b.output("features_data", npu.ol * npu.feature_bits, join(features))
    b.output("features_last", 1, bits(goes, 0, 1))
    if side.side is not None:
        b.output("features_side", width(side.side), bits(goes, 1, width(side.side)))


def _limits(b: Block, npu: Npu, step: Step, move: Signal) -> tuple[Signal, Signal]:
    """The layer's (low, high), as late as the shifted value that they belong to."""
    out = []
    for name in ("low", "high"):
        late = b.reg(f"value_{name}", npu.feature_bits, init=None)
        b.on(step.go, (late, step.layer[name]))
        for stage in STAGES[1:-1]:
            later = b.reg(f"{stage}_{name}", npu.feature_bits, init=None)
            b.on(move, (later, late))
            late = later
        out.append(late)
    return out[0], out[1]


def _lane(
    b: Block, npu: Npu, step: Step, k: int, one: Signal, move: Signal, limits: tuple[Signal, Signal]
) -> tuple[Signal, Signal]:
    """(value register, feature register) of lane ``k``."""
    acc, wide = npu.acc_bits, npu.acc_bits + MULTIPLIER_BITS + 1
    value, multiplier = b.reg(f"value_{k}", acc, init=None), b.reg(f"multiplier_{k}", MULTIPLIER_BITS + 1, init=None)
    shift = b.reg(f"shift_{k}", SHIFT_BITS, init=None)
    given = step.row[f"bias_{k}"]
    bias = b.wire(f"bias_{k}", acc, choose(step.layer["raw"], 0, given, acc) if "raw" in step.layer else given)
    b.on(step.go, (value, one + bias), (multiplier, step.row[f"multiplier_{k}"]), (shift, step.row[f"shift_{k}"]))

    made, made_shift = b.reg(f"product_{k}", wide, init=None), b.reg(f"product_shift_{k}", SHIFT_BITS, init=None)
    b.on(move, (made, product(value, multiplier)), (made_shift, shift))

    # half = 2^(shift - 1), one less for negative numbers, nothing without a shift
    half, half_made = b.reg(f"half_{k}", wide, init=None), b.reg(f"half_product_{k}", wide, init=None)
    half_shift = b.reg(f"half_shift_{k}", SHIFT_BITS, init=None)
    less = b.wire(f"shift_less_{k}", SHIFT_BITS, sub(made_shift, 1, SHIFT_BITS))
    power = b.wire(f"power_{k}", wide, const(1, wide) << less)
    down = b.wire(f"down_{k}", wide, resize(bits(made, wide - 1, 1), wide))
    b.on(move, (half, choose(nonzero(made_shift), power - down, 0, wide)), (half_made, made), (half_shift, made_shift))

    rounded, rounded_shift = b.reg(f"rounded_{k}", wide, init=None), b.reg(f"rounded_shift_{k}", SHIFT_BITS, init=None)
    b.on(move, (rounded, half_made + half), (rounded_shift, half_shift))

    shifted, sign = b.reg(f"shifted_{k}", wide, init=None), bits(rounded, wide - 1, 1)
    turned = b.wire(f"turned_{k}", wide, rounded ^ Repeat(sign, wide))  # ~x >> s = ~(x >>> s)
    b.on(move, (shifted, Srl(turned, rounded_shift) ^ Repeat(sign, wide)))

    low, high = (b.wire(f"{name}_{k}", wide, sign_extend(v, wide)) for name, v in zip(("low", "high"), limits))
    feature = b.reg(f"feature_{k}", npu.feature_bits, init=None)
    above = b.wire(f"above_{k}", 1, signed_at_least(shifted, high))
    below = b.wire(f"below_{k}", 1, signed_at_least(low, shifted))
    w = npu.feature_bits
    b.on(move, (feature, choose(above, limits[1], choose(below, limits[0], bits(shifted, 0, w), w), w)))
    return value, feature
