"""Proof of the counters: hls_gen/rtl/primitives/counters.py."""

from bitloom.hls_gen.rtl.primitives.block import Block
from bitloom.hls_gen.rtl.primitives.counters import counters
from bitloom.hls_gen.rtl.primitives.memory import Library
from tests.proofs.engine import Broken, Proof, Row

FIRST_ADDRESS, COUNTERS = 0x50, 5


def five_counters() -> Block:
    """Counters of five pulses in a module of their own."""
    b = Block("five_counters")
    pulses = b.input("pulses", COUNTERS)
    clear, read_address, reading = b.input("clear"), b.input("read_address", 8), b.input("reading")
    value, done = b.output("value", 32), b.output("done")
    counted = [(b.localparam(f"ADDRESS_{k}", FIRST_ADDRESS + 4 * k, 7, base=16), pulses[k]) for k in range(COUNTERS)]
    done.assign(counters(b, Library(32), counted, clear, read_address, reading))
    value.assign(b.m.variable["counter_value"])
    return b


PROOFS = (
    Proof(
        name="five counters",
        source="hls_gen/rtl/primitives/counters.py",
        block=five_counters,
        rules="counters",
        sizes={"COUNTERS": COUNTERS},
        hidden={"FIRST_ADDRESS": FIRST_ADDRESS},
        steps=10,
        reach=24,
        rows=(Row("dut.counts.mem", "in_memory", "memory_row", "word"),),
        breaks=(
            Broken("(turn_of_0 ? 4'd0 : small_0) +", "turn_of_0 ? 4'd0 : small_0 +", "every_pulse_once"),
            Broken("        fresh_turns <= COUNTERS;", "        fresh_turns <= 4'd7;", "every_pulse_once"),
            Broken("counter_done = reading & waited &", "counter_done = reading &", "asked_before"),
        ),
    ),
)
