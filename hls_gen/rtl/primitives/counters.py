"""Counters: how often each of many pulses came, 32 bits each, in one small memory.

    pulses --> a small counter each --in turn, one a cycle--> memory[counter] += small counter

A register and an adder of 32 bits for each pulse would take too many LUTs. Instead each pulse has a small counter for
the pulses of one round. In each cycle it is the turn of one small counter: its value is added to its row of the memory.
A read waits for the turn of its counter, so that the count has all pulses up to then. ``clear`` takes effect at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.registers import COUNTER_BITS as WIDTH
from bitloom.hls_gen.design.widths import bits_for

from .block import Block, Signal, add, all_of, by_number, choose, const, eq, resize, sub, width
from .memory import Library, ram


@dataclass(frozen=True)
class _CounterTurn:
    """The small counter whose turn it was in the cycle before: registers."""

    row: Signal
    """Number of the counter."""
    next_row: Signal
    """That of the counter whose turn comes next."""
    value: Signal
    """The pulses that the small counter had counted."""
    is_read: Signal
    """Its count is the one that is read: a comparison of addresses."""


def counters(
    b: Block,
    library: Library,
    pulses: Sequence[tuple[Signal, Signal]],
    clear: Signal,
    read_address: Signal,
    reading: Signal,
) -> Signal:
    """Counters of pulses, inside ``b``.

    Parameters
    ----------
    b : Block
        Module that the counters become part of; it gets a wire ``counter_value``.
    pulses : sequence of (Signal, Signal)
        Address of the register that shows the count, a constant, and the pulse that is counted.
    clear : Signal
        All counts become 0.
    read_address : Signal
        One of the addresses of ``pulses``, held while ``reading``.
    reading : Signal
        A reader waits for that count, until the pulse that is returned.

    Returns
    -------
    Signal
        A pulse: ``counter_value`` is the count.
    """
    count = timing.counter_rows(len(pulses))
    turn = _turn(b, pulses, count, clear, read_address)
    stored = b.wire("count_stored", WIDTH)
    old = b.reg("count_old", WIDTH, init=None)  # read a cycle ahead: the row was written some turns ago
    b.on(None, (old, stored))
    new = b.wire("counter_value", WIDTH)
    turn_bits = width(turn.row)
    rows = b.localparam("COUNTERS", count, turn_bits + 1)
    fresh = b.reg("fresh_turns", turn_bits + 1, init=count + 1)  # turns whose row is not yet cleared: begin at 0
    is_fresh = b.reg("is_fresh", init=1)  # there are some
    b.on(is_fresh, (fresh, sub(fresh, 1, turn_bits + 1)), (is_fresh, ~eq(fresh, 1)))
    b.on(clear, (fresh, rows), (is_fresh, 1))
    new.assign(add(choose(is_fresh, 0, old, WIDTH), turn.value, WIDTH))
    store = ram(library, WIDTH, count, latency=0)
    places = {"write_row": turn.row, "read_row": turn.next_row}
    b.instance(store, "counts", write=const(1, 1), write_data=new, read_data=stored, **places)
    waited = b.reg("waited")  # the pick was made after the read had begun
    b.on(None, (waited, reading))
    return b.wire("counter_done", 1, all_of(reading, waited, turn.is_read))


def _turn(
    b: Block, pulses: Sequence[tuple[Signal, Signal]], count: int, clear: Signal, read_address: Signal
) -> _CounterTurn:
    """The small counters, and the one whose turn it was a cycle ago."""
    turn_bits = bits_for(count - 1)
    small_bits = bits_for(count + 1)
    address_bits = width(pulses[0][0])
    turn = b.reg("turn", turn_bits)
    b.on(None, (turn, add(turn, 1, turn_bits)))
    picked = b.reg("picked", small_bits)
    is_read = b.reg("is_read")
    row = b.reg("count_row", turn_bits)
    values = []
    for k, (_, pulse) in enumerate(pulses):
        has_turn = b.wire(f"turn_of_{k}", 1, eq(turn, k))
        value = b.reg(f"small_{k}", small_bits)
        came = b.reg(f"pulse_{k}")  # some pulses come late
        b.on(None, (came, pulse), (value, choose(has_turn, 0, value, small_bits) + resize(came, small_bits)))
        b.on(clear, (came, 0), (value, 0))
        values.append(value)
    b.on(None, (row, turn), (picked, by_number(turn, values, small_bits)))
    owner = b.wire("owner", address_bits, by_number(turn, [address for address, _ in pulses], address_bits))
    b.on(None, (is_read, eq(owner, read_address)))
    b.on(clear, (picked, 0))
    return _CounterTurn(row, turn, picked, is_read)
