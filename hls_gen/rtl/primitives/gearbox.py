"""Change of word width in a ready/valid stream.

    in[in_width] --> out[out_width]

Wider: floor(out / in) words are collected, element 0 low; a word with ``last`` ends a collection early, the rest is 0.
Narrower: a word leaves in ceil(in / out) pieces, low part first. One word a cycle on the narrow side. Latency 1 cycle.
``last`` and ``side`` bits come out with the last piece that they came in with.
"""

from veriloggen import Cat

from bitloom.hls_gen.design.gearbox import gear
from bitloom.hls_gen.design.widths import bits_for

from .block import Block, Signal, add, any_of, bits, choose, const, eq, resize


def gearbox(in_width: int, out_width: int, side: int = 0) -> Block:
    """Width change of a stream whose words carry ``last`` and ``side`` more bits."""
    together, pieces = gear(in_width, out_width)
    if in_width <= out_width:
        return collector(in_width, out_width, together, side)
    return divider(in_width, out_width, pieces, side)


def _ports(b: Block, in_width: int, out_width: int, side: int) -> tuple[Signal, ...]:
    valid, ready = b.input("in_valid"), b.output("in_ready")
    data, last = b.input("in_data", in_width), b.input("in_last")
    in_side = b.input("in_side", side) if side else None
    out_valid, out_ready = b.output_reg("out_valid"), b.input("out_ready")
    out_side = b.output_reg("out_side", side, init=None) if side else None
    return valid, ready, data, last, in_side, out_valid, out_ready, out_side


def collector(in_width: int, out_width: int, count: int, side: int = 0) -> Block:
    """``count`` words of ``in_width`` side by side in one of ``out_width`` (cut or padded to it)."""
    b = Block(f"collect_{in_width}x{count}_to_{out_width}" + (f"_side_{side}" if side else ""))
    valid, ready, data, last, in_side, out_valid, out_ready, out_side = _ports(b, in_width, out_width, side)
    out_data = b.output("out_data", out_width)
    out_last = b.output_reg("out_last", init=None)

    # # #

    ready.assign(any_of(~out_valid, out_ready))
    take = b.wire("take", 1, valid & ready)
    b.on(out_ready, (out_valid, 0))
    if count > 1:
        place = b.reg("place", bits_for(count - 1))
        complete = b.wire("complete", 1, eq(place, count - 1) | last)
        b.on(take, (place, choose(complete, 0, add(place, 1, bits_for(count - 1)), bits_for(count - 1))))
        b.on(take, (out_valid, complete))
    else:
        b.on(take, (out_valid, 1))
    slots: list[Signal] = []
    room = out_width
    for k in range(count):
        w = min(in_width, room)
        room -= w
        slot = b.reg(f"word_{k}", w, init=None)
        if k:
            b.on(take & eq(place, 0), (slot, 0))
        b.on(take & eq(place, k) if count > 1 else take, (slot, bits(data, 0, w)))
        slots.append(slot)
    used = Cat(*reversed(slots)) if count > 1 else slots[0]
    out_data.assign(resize(used, out_width))
    b.on(take, (out_last, last), *([(out_side, in_side)] if side else []))
    return b


def divider(in_width: int, out_width: int, pieces: int, side: int = 0, tail_bits: int = 0) -> Block:
    """A word of ``in_width`` in ``pieces`` pieces; with ``tail_bits``, a word with ``last`` has only ``in_tail`` +
    1."""
    b = Block(
        f"divide_{in_width}_to_{pieces}x{out_width}"
        + (f"_side_{side}" if side else "")
        + ("_tail" if tail_bits else "")
    )
    valid, ready, data, last, in_side, out_valid, out_ready, out_side = _ports(b, in_width, out_width, side)
    count_width = tail_bits or bits_for(pieces - 1)
    in_tail = b.input("in_tail", tail_bits) if tail_bits else None
    out_data = b.output("out_data", out_width)
    out_last = b.output("out_last")

    # # #

    width = max(pieces * out_width, in_width)
    rest = b.reg("rest", width, init=None)
    left = b.reg("left", count_width)
    is_last = b.reg("is_last", init=None)
    final = b.wire("at_end", 1, eq(left, 0))
    ready.assign(any_of(~out_valid, out_ready & final))
    take = b.wire("take", 1, valid & ready)
    give = b.wire("give", 1, out_valid & out_ready)
    b.on(give & final, (out_valid, 0))
    if pieces == 1 and width > out_width:  # one word in each, and the rest of it means nothing
        b.wire("rest_unused", width - out_width, bits(rest, out_width, width - out_width))
    if pieces > 1:
        b.on(give, (rest, Cat(const(0, out_width), bits(rest, out_width, width - out_width))))
        b.on(give & ~final, (left, left - const(1, count_width)))
    start: Signal | int = pieces - 1
    if in_tail is not None:
        start = choose(last, in_tail, pieces - 1, count_width)
    b.on(take, (out_valid, 1), (rest, data), (left, start), (is_last, last), *([(out_side, in_side)] if side else []))
    out_data.assign(bits(rest, 0, out_width))
    out_last.assign(is_last & final)
    return b
