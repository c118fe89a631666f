"""Change of word width in a ready/valid stream.

    collector   in[in_width] --> word 0, word 1, ... side by side --> out[out_width]     wider
    divider     in[in_width] --> piece 0, piece 1, ...            --> out[out_width]     narrower

The narrow side moves one word a cycle. ``last`` and the ``side`` bits come out with the last piece of the word that
they came in with.
"""

from veriloggen import Cat

from bitloom.hls_gen.design.gearbox import gear
from bitloom.hls_gen.design.widths import bits_for

from .block import Block, Signal, add, any_of, bits, choose, const, eq, resize
from .stream import Stream
from .text import Header


def gearbox(in_width: int, out_width: int, side: int = 0) -> Block:
    """The module that changes words of one width into words of another, with as many words or pieces as fit.

    Parameters
    ----------
    in_width, out_width : int
        Bits of a word at the input and at the output.
    side : int
        Bits that go with a word unchanged, beside ``last``.

    Returns
    -------
    Block
        A collector of floor(out_width / in_width) words, or a divider into ceil(in_width / out_width) pieces.
    """
    together, pieces = gear(in_width, out_width)
    if in_width <= out_width:
        return collector(in_width, out_width, together, side)
    return divider(in_width, out_width, pieces, side)


def _ports(b: Block, in_width: int, side: int) -> tuple[Stream, Stream]:
    """Stream in, and stream out without its data and last, which differ between the two modules."""
    source = Stream.input(b, "in", in_width, last=True, side_bits=side)
    out_valid = b.output_reg("out_valid")
    out_ready = b.input("out_ready")
    out_side = b.output_reg("out_side", side, init=None) if side else None
    return source, Stream(out_valid, out_ready, None, None, out_side)


def collector(in_width: int, out_width: int, count: int, side: int = 0) -> Block:
    """Collector: several words of a ready/valid stream side by side in one.

        in[in_width] --> word 0 (low bits), word 1, ... --> out[out_width]

    A word with ``last`` ends a collection early; what is missing is 0.

    Parameters
    ----------
    in_width, out_width : int
        Bits of a word at the input and at the output; what is collected is cut or padded with zeros to the latter.
    count : int
        Words that are collected.
    side : int
        Bits that go with a word unchanged; those of a collection's last word come out.

    Returns
    -------
    Block
        Module ``collect_<in_width>x<count>_to_<out_width>``.
    """
    name = f"collect_{in_width}x{count}_to_{out_width}" + (f"_side_{side}" if side else "")
    sizes = {"in_width": in_width, "count": count, "out_width": out_width, "side": side}
    latency = "1 cycle from a collection's last word to out"
    b = Block(name, Header(collector.__doc__ or "", rate="one word a cycle in", latency=latency, parameters=sizes))
    source, out = _ports(b, in_width, side)
    out_data = b.output("out_data", out_width)
    out_last = b.output_reg("out_last", init=None)

    # # #

    source.ready.assign(any_of(~out.valid, out.ready))
    take = b.wire("take", 1, source.taken)
    b.on(out.ready, (out.valid, 0))
    b.comment("A collection is complete when all places are filled, or with in_last; then it waits at out.")
    place_bits = bits_for(count - 1)
    if count > 1:
        place = b.reg("place", place_bits)  # where the next word goes
        complete = b.wire("complete", 1, eq(place, b.localparam("LAST_PLACE", count - 1, place_bits)) | source.last)
        b.on(take, (place, choose(complete, 0, add(place, 1, place_bits), place_bits)))
        b.on(take, (out.valid, complete))
    else:
        b.on(take, (out.valid, 1))
    slots: list[Signal] = []
    room = out_width
    for k in range(count):
        w = min(in_width, room)
        room -= w
        slot = b.reg(f"word_{k}", w, init=None)
        if k:  # a new collection: an old word must not be left where this one ends early
            b.on(take & eq(place, 0), (slot, 0))
        b.on(take & eq(place, k) if count > 1 else take, (slot, bits(source.data, 0, w)))
        slots.append(slot)
    used = Cat(*reversed(slots)) if count > 1 else slots[0]
    out_data.assign(resize(used, out_width))
    b.on(take, (out_last, source.last), *([(out.side, source.side)] if side else []))
    return b


def divider(in_width: int, out_width: int, pieces: int, side: int = 0, tail_bits: int = 0) -> Block:
    """Divider: one word of a ready/valid stream leaves in several pieces.

        in[in_width] --> piece 0 (low bits), piece 1, ... --> out[out_width]

    ``out_last`` comes with the last piece of a word that came with ``in_last``. Where there is a port ``in_tail``, a
    word with ``in_last`` has only ``in_tail`` + 1 pieces.

    Parameters
    ----------
    in_width, out_width : int
        Bits of a word at the input and of a piece.
    pieces : int
        Pieces of a word.
    side : int
        Bits that go with a word unchanged, all the time that its pieces leave.
    tail_bits : int
        Width of ``in_tail``; 0 for no such port.

    Returns
    -------
    Block
        Module ``divide_<in_width>_to_<pieces>x<out_width>``.
    """
    name = f"divide_{in_width}_to_{pieces}x{out_width}" + (f"_side_{side}" if side else "") + "_tail" * bool(tail_bits)
    sizes = {"in_width": in_width, "pieces": pieces, "out_width": out_width, "side": side}
    latency = "1 cycle from a word to its first piece"
    b = Block(name, Header(divider.__doc__ or "", rate="one piece a cycle out", latency=latency, parameters=sizes))
    source, out = _ports(b, in_width, side)
    count_width = tail_bits or bits_for(pieces - 1)
    in_tail = b.input("in_tail", tail_bits, means="pieces - 1 of a word with in_last") if tail_bits else None
    out_data = b.output("out_data", out_width)
    out_last = b.output("out_last")

    # # #

    width = max(pieces * out_width, in_width)
    rest = b.reg("rest", width, init=None)  # the pieces that have not left, the next one low
    left = b.reg("left", count_width)  # pieces after the one at the output
    is_last = b.reg("is_last", init=None)
    final = b.wire("at_end", 1, eq(left, 0))
    source.ready.assign(any_of(~out.valid, out.ready & final))
    take = b.wire("take", 1, source.taken)
    give = b.wire("give", 1, out.taken)
    b.on(give & final, (out.valid, 0))
    if pieces == 1 and width > out_width:  # one word in each, and the rest of it means nothing
        b.wire("rest_unused", width - out_width, bits(rest, out_width, width - out_width))
    if pieces > 1:
        b.on(give, (rest, Cat(const(0, out_width), bits(rest, out_width, width - out_width))))
        b.on(give & ~final, (left, left - const(1, count_width)))
    start = b.localparam("PIECES_MINUS_1", pieces - 1, count_width)
    if in_tail is not None:
        start = choose(source.last, in_tail, start, count_width)
    taken = [(out.valid, 1), (rest, source.data), (left, start), (is_last, source.last)]
    b.on(take, *taken, *([(out.side, source.side)] if side else []))
    out_data.assign(bits(rest, 0, out_width))
    out_last.assign(is_last & final)
    return b
