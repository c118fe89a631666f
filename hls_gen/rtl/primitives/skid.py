"""Skid register: a ready/valid stream goes on, and a word that isn't taken at once waits aside.

    in[WIDTH] --+-------------> out[WIDTH]
                `--> aside --'

The register cuts the path from out_ready to in_ready, where a ready comes through several modules; `stream_register`
(gearbox.py) cuts the other way, from in_valid and in_data to out.
"""

from collections.abc import Sequence

from veriloggen import Mux

from .block import Block, Signal, any_of
from .chain import chain
from .memory import Library
from .stream import Stream
from .text import Header


def skidded(
    b: Block, library: Library, name: str, source: Stream, unused: Sequence[str] = (), rst: Signal | None = None
) -> Stream:
    """``source`` behind a skid register: its ready is a register.

    Parameters
    ----------
    name : str
        Name of the instance, with which the names of the wires of its output begin.
    source : Stream
        The words, with ``last``; its side bits go with each word.
    unused : sequence of str
        Parts of the output that nobody will look at.
    rst : Signal or None
        Reset of the instance; None: that of ``b``.

    Returns
    -------
    Stream
        The same words in the same cycles, as long as they are taken at once.
    """
    block = skid(library, source.data_bits, source.side_bits)
    return chain(b, block, name, source, unused, rst=b.rst if rst is None else rst)


def skid(library: Library, width: int, side: int = 0) -> Block:
    """Module ``skid``, in this size.

    Parameters
    ----------
    width : int
        Bits of a word.
    side : int
        Bits that go with a word. Without any, the module has a bit that means nothing.
    """
    return library.get(_skid).sized(WIDTH=width, SIDE_WIDTH=max(side, 1))


def _skid() -> Block:
    """The module."""
    contract = __doc__.partition("\nThe register cuts")[0]
    b = Block("skid", Header(contract, rate="one word a cycle", latency="0 cycles from in to out"))
    width = b.parameter("WIDTH", 8, "bits of a word")
    side_width = b.parameter("SIDE_WIDTH", 1, "bits that go with a word unchanged")
    source = Stream.input(b, "in", width, last=True, side_bits=side_width)
    out = Stream.output(b, "out", width, last=True, side_bits=side_width)

    # # #

    full = b.reg("full")  # a word waits aside
    source.ready.assign(~full)
    out.valid.assign(any_of(full, source.valid))
    b.on(None, (full, out.valid & ~out.ready))
    for name, w in (("data", width), ("last", 1), ("side", side_width)):
        came = getattr(source, name)
        aside = b.reg(f"aside_{name}", w, init=None)
        b.on(~full, (aside, came))
        getattr(out, name).assign(Mux(full, aside, came))
    return b
