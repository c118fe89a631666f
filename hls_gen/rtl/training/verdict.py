"""Which rule is broken, as a fault's code."""

from collections.abc import Sequence

from bitloom.golden.discrete.machine.faults import FaultRule
from bitloom.hls_gen.design.training import FAULT_BITS
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, choose, const


def first_broken(b: Block, rules: Sequence[tuple[Signal, FaultRule]]) -> Signal:
    """Wire ``verdict``: the code of the first rule of which the condition, that it is broken, holds."""
    verdict: Signal = const(0, FAULT_BITS)
    for broken, fault in reversed(rules):
        verdict = choose(broken, b.localparam(fault.name, fault.code, FAULT_BITS), verdict, FAULT_BITS)
    return b.wire("verdict", FAULT_BITS, verdict)
