"""Counters: how often each of many pulses came, 32 bits each, in one small memory.

    pulses --> a small counter each --in turn, one a cycle--> memory[counter] += small counter

A small counter holds what comes in one round. A read waits until its counter's turn, so that what is read has all
pulses up to then in it; ``clear`` takes effect at once.
"""

from collections.abc import Mapping

from bitloom.hls_gen.design.registers import COUNTER_BITS as WIDTH
from bitloom.hls_gen.design.widths import bits_for

from .block import Block, Signal, add, all_of, bits, choose, const, eq, nonzero, resize, sub, width
from .memory import Library, ram


def counters(
    b: Block, library: Library, pulses: Mapping[int, Signal], clear: Signal, read_address: Signal, reading: Signal
) -> Signal:
    """Inside ``b``: counters of ``pulses`` (register offset -> pulse). Returns ``done``.

    reading : somebody wants the register at ``read_address``, which is one of the offsets, and holds both until
        ``done``, a pulse; then the wire ``counter_value`` has the count.
    """
    count = 1 << max(2, (len(pulses) - 1).bit_length())
    turn_bits, small_bits = bits_for(count - 1), bits_for(count + 1)
    turn = b.reg("turn", turn_bits)
    b.on(None, (turn, add(turn, 1, turn_bits)))
    offset_bits = max(offset.bit_length() for offset in pulses)

    # first: the small counter whose turn it is, and the register that it belongs to
    picked, owner = b.reg("picked", small_bits), b.reg("owner", offset_bits)
    row = b.reg("count_row", turn_bits)
    parts, offsets = [], []
    for k, (place, pulse) in enumerate(pulses.items()):
        mine = b.wire(f"turn_of_{k}", 1, eq(turn, k))
        value = b.reg(f"small_{k}", small_bits)
        one = b.wire(f"pulse_{k}", 1, pulse)
        b.on(None, (value, choose(mine, 0, value, small_bits) + resize(one, small_bits)))
        b.on(clear, (value, 0))
        parts.append(value)
        offsets.append(place)
    chosen = _select(turn, parts, small_bits)
    offset = _select(turn, [const(place, offset_bits) for place in offsets], offset_bits)
    b.on(None, (picked, chosen), (owner, offset), (row, turn))
    b.on(clear, (picked, 0))

    # then: add it to its count
    old, new = b.wire("count_old", WIDTH), b.wire("counter_value", WIDTH)
    fresh = b.reg("fresh_turns", turn_bits + 1, init=count + 1)  # turns that begin at 0
    b.on(nonzero(fresh), (fresh, sub(fresh, 1, turn_bits + 1)))
    b.on(clear, (fresh, count))
    new.assign(add(choose(nonzero(fresh), 0, old, WIDTH), picked, WIDTH))
    store = library.get(ram, WIDTH, count, latency=0)
    rows = {"write_row": row, "read_row": row}
    b.instance(store, "counts", write=const(1, 1), write_data=new, read_data=old, **rows)
    waited = b.reg("waited")  # the pick was made after the read had begun
    b.on(None, (waited, reading))
    return b.wire("counter_done", 1, all_of(reading, waited, eq(owner, read_address)))


def _select(index: Signal, values: list[Signal], w: int) -> Signal:
    """values[index], 0 where there is none, by halves: as deep as the index is wide."""
    level = values + [const(0, w)] * ((1 << width(index)) - len(values))
    for k in range(width(index)):
        level = [choose(bits(index, k, 1), odd, even, w) for even, odd in zip(level[::2], level[1::2])]
    return level[0]
