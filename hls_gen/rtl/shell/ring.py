"""Ring of NPUs: what leaves one by outlet "ring" enters the next one (part of hls_gen/rtl/shell/top.py).

    NPU 0 -> NPU 1 -> ... -> NPU N-1 -> spill store -> NPU 0

The spill store is a FIFO at the edge that closes the ring, so that a whole map can wait for NPU 0 (spec D8). A design
without one, such as a cascade, has a plain edge there or none. Integers that a binary NPU keeps for the next one go
past it, into that NPU's skip store.
"""

from collections.abc import Mapping, Sequence

from veriloggen import Cat

from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, bits
from bitloom.hls_gen.rtl.primitives.fifo import fifo
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.stream import Stream, connect


def ring(b: Block, library: Library, design: Design, npus: Sequence[Mapping[str, Signal]], restart: Signal) -> None:
    """Connect each NPU's outlet "ring" with the inlet of the NPU after.

    Parameters
    ----------
    design : Design
        All NPUs and the spill store.
    npus : sequence of mapping of str to Signal
        Signals at the ports of each NPU.
    restart : Signal
        Empties the spill store.
    """
    if len(design.npus) > 1 or design.spill_words:
        b.comment("Ring: what leaves an NPU enters the next one.")
    for n, params in enumerate(design.npus):
        if "ring" not in params.ports.outlets:
            continue
        after = (n + 1) % len(design.npus)
        words = Stream.of(npus[n], "to_ring")
        if after == 0 and design.spill_words:
            words = _stored(b, library, design.spill_words, words, restart)
        connect(words, Stream.of(npus[after], "ring"))
        if params.skips_onward:
            connect(Stream.of(npus[n], "kept"), Stream.of(npus[after], "kept_before"))


def _stored(b: Block, library: Library, depth: int, words: Stream, restart: Signal) -> Stream:
    """``words`` behind the spill store of ``depth`` words, each stored with its ``last`` above it."""
    w = words.data_bits
    out = Stream(b.wire("spilt_valid"), b.wire("spilt_ready"), b.wire("spilt", w + 1))
    b.instance(
        fifo(library, w + 1, depth),
        "spill_store",
        rst=restart,
        **words.replace(data=Cat(words.last, words.data), last=None).ports("in"),
        room=b.wire("spill_room_unused"),
        **out.ports("out"),
    )
    return out.replace(data=bits(out.data, 0, w), last=bits(out.data, w, 1))
