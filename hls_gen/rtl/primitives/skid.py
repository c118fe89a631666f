"""Skid register: a ready/valid stream goes on, and a word that isn't taken at once waits aside.

    in[WIDTH] --+-------------> out[WIDTH]
                `--> aside --'

in_ready is a register; in_ready_next says what it will be in the next cycle, for what must know that ahead.

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
    b: Block,
    library: Library,
    name: str,
    source: Stream,
    unused: Sequence[str] = (),
    rst: Signal | None = None,
    ready_next: Signal | None = None,
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
    ready_next : Signal or None
        A wire, which is driven: the source's ready in the next cycle. None: nobody looks at it.

    Returns
    -------
    Stream
        The same words in the same cycles, as long as they are taken at once.
    """
    block = skid(library, source.data_bits, source.side_bits)
    ahead = b.wire(f"{name}_in_ready_next_unused") if ready_next is None else ready_next
    return chain(b, block, name, source, unused, rst=b.rst if rst is None else rst, in_ready_next=ahead)


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
    source = Stream(
        valid=b.input("in_valid"),
        ready=b.output_reg("in_ready", init=1),
        data=b.input("in_data", width),
        last=b.input("in_last"),
        side=b.input("in_side", side_width),
    )
    ready_next = b.output("in_ready_next", means="in_ready in the next cycle")
    out = Stream.output(b, "out", width, last=True, side_bits=side_width)

    # # #

    full = b.reg("full")  # a word waits aside: no in_ready, and a register of its own for the many bits of a word
    out.valid.assign(any_of(full, source.valid))
    ready_next.assign(any_of(~out.valid, out.ready))
    b.on(None, (full, ~ready_next), (source.ready, ready_next))
    for name, w in (("data", width), ("last", 1), ("side", side_width)):
        came = getattr(source, name)
        aside = b.reg(f"aside_{name}", w, init=None)
        b.on(~full, (aside, came))
        getattr(out, name).assign(Mux(full, aside, came))
    return b
