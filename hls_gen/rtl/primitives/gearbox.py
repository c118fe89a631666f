"""Change of word width in a ready/valid stream.

    collector   in[WIDTH]    --> word 0, word 1, ... side by side --> out[N * WIDTH]     wider
    divider     in[IN_WIDTH] --> piece 0, piece 1, ...            --> out[OUT_WIDTH]     narrower

The narrow side moves one word a cycle. ``last`` and the ``side`` bits come out with the last piece of the word that
they came in with.

A divider is one module with parameters, since all its pieces leave one shift register. A collector is a module for each
number of words: each word has a register with a condition of its own, and a module that holds as many registers as a
parameter says needs a loop, which our Verilog does without.
"""

from collections.abc import Sequence

from veriloggen import Cat, Mux
from veriloggen.core import vtypes as vt

from bitloom.hls_gen.design.gearbox import gear

from .block import Block, Signal, any_of, bits, const, side_by_side
from .chain import chain
from .memory import Library
from .parameters import clog2
from .stream import Stream
from .text import Header


def gearbox(
    b: Block,
    library: Library,
    name: str,
    source: Stream,
    out_width: int,
    unused: Sequence[str] = (),
    rst: Signal | None = None,
) -> Stream:
    """Words of one width as words of another, with as many words or pieces as fit (`gear`).

    Parameters
    ----------
    name : str
        Name of the instance, with which the names of the wires of its output begin.
    source : Stream
        The words, with ``last``; its side bits go with each word.
    out_width : int
        Bits of a word that comes out.
    unused : sequence of str
        Parts of the output that nobody will look at.
    rst : Signal or None
        Reset of the instance; None: that of ``b``.

    Returns
    -------
    Stream
        Words of ``out_width`` bits, the parts of ``source`` beside them.
    """
    together, pieces = gear(source.data_bits, out_width)
    if pieces == 1:
        return collected(b, library, name, source, out_width, together, unused, rst)
    block = divider(library, source.data_bits, out_width, pieces, side=source.side_bits)
    return chain(b, block, name, source, unused, rst=b.rst if rst is None else rst)


def collected(
    b: Block,
    library: Library,
    name: str,
    source: Stream,
    out_width: int,
    count: int,
    unused: Sequence[str] = (),
    rst: Signal | None = None,
) -> Stream:
    """``count`` words of a stream side by side in one, cut or padded with zeros to ``out_width`` bits.

    The other parameters and the result are those of `gearbox`.
    """
    block = collector(library, source.data_bits, count, source.side_bits)
    out = chain(b, block, name, source, unused, rst=b.rst if rst is None else rst)
    filled = count * source.data_bits
    if filled > out_width:
        b.wire(f"{name}_unused", filled - out_width, bits(out.data, out_width, filled - out_width))
        return out.replace(data=bits(out.data, 0, out_width))
    return out.replace(data=Cat(const(0, out_width - filled), out.data)) if filled < out_width else out


def collector(library: Library, width: int, count: int, side: int = 0) -> Block:
    """Module ``collector_of_<count>``, for one word ``stream_register``, in this size.

    Parameters
    ----------
    width : int
        Bits of a word.
    count : int
        Words that are collected.
    side : int
        Bits that go with a word unchanged; those of a collection's last word come out. Without any, the module has a
        bit that means nothing.
    """
    return library.get(_collector, count).sized(WIDTH=width, SIDE_WIDTH=max(side, 1))


def divider(
    library: Library, in_width: int, out_width: int, pieces: int, *, side: int = 0, last_piece_bits: int = 0
) -> Block:
    """Module ``divider``, ``frame_divider`` (with ``last_piece_bits``) or ``tuple_divider`` (with both), in this size.

    Parameters
    ----------
    in_width, out_width : int
        Bits of a word at the input and of a piece, which isn't wider.
    pieces : int
        Pieces of a word; what they hold beyond the word is 0, and bits of a word beyond its pieces are dropped.
    side : int
        Bits that go with a word unchanged, all the time that its pieces leave. Module ``divider`` has a bit at least,
        which may mean nothing.
    last_piece_bits : int
        Width of port ``in_last_piece``, enough for ``pieces`` - 1: the number of the last piece of a word with
        ``last``, from 0 on. 0: every word has ``pieces``, and there is no such port.
    """
    beside = side > 0 or not last_piece_bits
    name = ("tuple_divider" if beside else "frame_divider") if last_piece_bits else "divider"
    sizes = {"IN_WIDTH": in_width, "OUT_WIDTH": out_width, "LAST_PIECE": pieces - 1}
    sizes |= {"SIDE_WIDTH": max(side, 1)} if beside else {}
    sizes |= {"LAST_PIECE_WIDTH": last_piece_bits} if last_piece_bits else {}
    return library.get(_divider, name, shortens=last_piece_bits > 0, beside=beside).sized(**sizes)


_REGISTER = """One word of a ready/valid stream waits in a register.

    in[WIDTH] --> register --> out[WIDTH]

The register cuts the paths from in_valid and in_data to out; in_ready still depends on out_ready.
"""
_COLLECTOR = """Collector: {count} words of a ready/valid stream side by side in one.

    in[WIDTH] --> word 0 (low bits), ... word {last} --> out[{count} * WIDTH]

A word with in_last ends a collection early; what is missing is 0. The side bits are those of the last word.
"""
_DIVIDER = """Divider: one word of a ready/valid stream leaves in several pieces.

    in[IN_WIDTH] --> piece 0 (low bits), piece 1, ... piece LAST_PIECE --> out[OUT_WIDTH]

out_last comes with the last piece of a word that came with in_last.{more}
"""


def _collector(count: int) -> Block:
    """The module that collects ``count`` words."""
    contract = _COLLECTOR.format(count=count, last=count - 1) if count > 1 else _REGISTER
    latency = "1 cycle from a collection's last word to out" if count > 1 else "1 cycle from in to out"
    b = Block(
        f"collector_of_{count}" if count > 1 else "stream_register",
        Header(contract, rate="one word a cycle in", latency=latency),
    )
    width = b.parameter("WIDTH", 8, "bits of a word at in")
    side_width = b.parameter("SIDE_WIDTH", 1, "bits that go with a word unchanged")
    source = Stream.input(b, "in", width, last=True, side_bits=side_width)
    out_valid = b.output_reg("out_valid")
    out_ready = b.input("out_ready")
    out_data = b.output("out_data", vt.Times(count, width)) if count > 1 else b.output_reg("out_data", width, init=None)
    out_last = b.output_reg("out_last", init=None)
    out_side = b.output_reg("out_side", side_width, init=None)

    # # #

    source.ready.assign(any_of(~out_valid, out_ready))
    take = b.wire("take", 1, source.taken)
    b.on(out_ready, (out_valid, 0))
    if count == 1:
        b.on(take, (out_valid, 1), (out_data, source.data), (out_last, source.last), (out_side, source.side))
        return b
    b.comment("A collection is complete when all places are filled, or with in_last; then it waits at out.")
    begins = b.reg("begins", init=1)  # the next word begins a collection; where it doesn't, none waits at out
    goes_on = b.wire("goes_on", 1, ~begins)
    places = _later_places(b, source, goes_on, count - 1)
    complete = b.wire("complete", 1, source.last | places[-1])
    b.on(take, (begins, complete), (out_valid, complete))
    # what a word's place takes without a word means nothing: in_valid, which comes late, isn't asked for many bits
    words = [b.reg(f"word_{k}", width, init=None) for k in range(count)]
    first = b.wire("at_0", 1, source.ready & begins)
    b.on(first, (words[0], source.data))
    for word, place in zip(words[1:], places):
        b.on(first, (word, 0))  # an old word must not be left where this collection ends early
        b.on(place, (word, source.data))
    out_data.assign(side_by_side(words))
    b.on(source.ready, (out_last, source.last), (out_side, source.side))
    return b


def _later_places(b: Block, source: Stream, goes_on: Signal, count: int) -> list[Signal]:
    """Whether a word that goes on with a collection (``goes_on``) goes to each of ``count`` places behind the first."""
    if count == 1:
        return [goes_on]
    second = b.localparam("SECOND_PLACE", 1, count)
    at = b.reg("at_place", count, init=second)  # a bit a place; out_ready, which comes late, isn't asked
    moves = b.wire("moves", 1, source.valid & goes_on)
    b.on(moves, (at, Cat(bits(at, 0, count - 1), bits(at, count - 1, 1))))
    b.on(moves & source.last, (at, second))
    return [b.wire(f"at_{k}", 1, goes_on & bits(at, k - 1, 1)) for k in range(1, count + 1)]


def _divider(name: str, *, shortens: bool, beside: bool) -> Block:
    """A module that divides words: whether the last ones may have fewer pieces than the others (``shortens``), and
    whether side bits go with each word (``beside``)."""
    contract = _DIVIDER.format(more=" A word\nwith in_last ends with piece in_last_piece." if shortens else "")
    b = Block(name, Header(contract, rate="one piece a cycle out", latency="1 cycle from a word to its first piece"))
    in_width = b.parameter("IN_WIDTH", 32, "bits of a word at in")
    out_width = b.parameter("OUT_WIDTH", 8, "bits of a piece")
    last_piece = b.parameter("LAST_PIECE", 3, "number of a word's last piece, from 0 on")
    side_width = b.parameter("SIDE_WIDTH", 1, "bits that go with a word unchanged") if beside else None
    number_width = None
    if shortens:
        number_width = b.parameter("LAST_PIECE_WIDTH", 2, "bits of in_last_piece, enough for LAST_PIECE")
    source = Stream.input(b, "in", in_width, last=True, side_bits=0 if side_width is None else side_width)
    means = "number of the last piece of a word with in_last, from 0 on"
    ends = None if number_width is None else b.input("in_last_piece", number_width, means=means)
    out = Stream(
        valid=b.output_reg("out_valid"),
        ready=b.input("out_ready"),
        data=b.output("out_data", out_width),
        last=b.output("out_last"),
        side=None if side_width is None else b.output_reg("out_side", side_width, init=None),
    )

    # # #

    left_width = number_width
    if left_width is None:
        left_width = b.localparam("LEFT_WIDTH", Mux(last_piece > 0, clog2(last_piece + 1), 1))
    left = b.reg("left", left_width)
    take = _pieces(b, source, out, left, last_piece if ends is None else Mux(source.last, ends, last_piece))
    if out.side is not None:
        b.on(take, (out.side, source.side))
    return b


def _pieces(b: Block, source: Stream, out: Stream, left: Signal, pieces_minus_1: Signal) -> Signal:
    """Words of ``source`` leave piece by piece; ``left`` counts those after the one at the output. Returns whether a
    word is taken."""
    rest = b.reg("rest", source.data.width, init=None)  # the pieces that have not left, the next one low
    is_last = b.reg("is_last", init=None)
    at_end = b.reg("at_end", init=None)  # none comes after it: a register, since ready looks at it
    source.ready.assign(any_of(~out.valid, out.ready & at_end))
    take = b.wire("take", 1, source.taken)
    give = b.wire("give", 1, out.taken)
    b.on(give & at_end, (out.valid, 0))
    b.on(give, (rest, rest >> out.data.width))
    b.on(give & ~at_end, (left, left - 1), (at_end, left == 1))
    # what it takes without a word means nothing: in_valid, which comes late, isn't asked for many bits
    b.on(source.ready, (rest, source.data))
    b.on(take, (out.valid, 1), (is_last, source.last))
    b.on(take, (left, pieces_minus_1), (at_end, pieces_minus_1 == 0))
    out.data.assign(rest[0 : out.data.width])
    out.last.assign(is_last & at_end)
    return take
