"""Thresholds: OL accumulators become OL bits.  Golden twins: golden/layers/threshold.py,
hls_gen/compiler/lowered_layers.py.

    sums[OL] --> (sum << double) - offset --> value --> >= limit --> features[OL] bits
                                                `--> raw[OL]

With bipolar lanes a sum counts matches, and the value is matches minus mismatches. One step a cycle, latency 1 cycle.
"""

from veriloggen import Cat

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    bits,
    choose,
    const,
    side_by_side,
    signed_at_least,
    width,
)
from bitloom.hls_gen.rtl.primitives.pipeline import Ready
from bitloom.hls_gen.rtl.primitives.stream import Stream

from .step import Step, marks_of


def threshold(b: Block, npu: Npu, step: Step, offset: Signal, ready: Ready) -> Stream:
    """The binary activation; makes the ports ``raw_*``.

    Parameters
    ----------
    npu : Npu
        Its widths and lanes.
    step : Step
        The step at hand, whose ``free`` and ``free_before`` are assigned.
    offset : Signal
        Number that is taken from each sum.
    ready : Ready
        Whether the stage behind takes the features.

    Returns
    -------
    Stream
        OL features a word, ``last`` at the end of each tuple, and the step's side bits; its ready is ``ready.now``.
    """
    acc = npu.array.acc_bits
    b.comment("The values of a step, and whether each reaches its threshold.")
    valid = b.reg("value_valid")
    b.on(step.free, (valid, step.busy))
    marks = marks_of(b, npu, step)
    values = []
    verdicts = []
    for k, total in enumerate(step.sums):
        value = b.reg(f"value_{k}", acc, init=None)
        limit = b.reg(f"limit_{k}", acc, init=None)
        limits = bits(step.row["thresholds"], k * acc, acc)
        b.on(step.free, (value, matches_value(step, total, offset)), (limit, limits))
        values.append(value)
        verdicts.append(b.wire(f"bit_{k}", 1, signed_at_least(value, limit)))
    marks.assign_free(b, step, valid, ready, marks.raw_ports(b, npu, valid, values))
    return Stream(marks.go_on(valid), ready.now, side_by_side(verdicts), marks.tuple_last, marks.side)


def matches_value(step: Step, total: Signal, offset: Signal) -> Signal:
    """The value of a sum of matches: the sum, or twice that, less the window's offset."""
    acc = width(total)
    twice = Cat(bits(total, 0, acc - 1), const(0, 1))
    return choose(step.layer["double"], twice, total, acc) - offset
