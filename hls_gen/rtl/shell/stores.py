"""Skip store of an NPU: where a map waits for an addition or for its second reader (part of hls_gen/rtl/shell/npu.py).

    words of maps --> FIFO --> register --+--> addition
                                          `--> inlet "skip" of the array's sequencer

A FIFO: words leave in the order in which they came. A mark beside each word says who takes the word; nobody else is
offered it, since the sequencer takes words of the next layer while results of the layer at work are still added to.
The word at hand waits in a register behind the FIFO: much follows from its mark, which block RAM gives late.
"""

from dataclasses import dataclass

from veriloggen import Cat

from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.rtl.primitives.block import bits, choose, const
from bitloom.hls_gen.rtl.primitives.fifo import fifo
from bitloom.hls_gen.rtl.primitives.gearbox import collected
from bitloom.hls_gen.rtl.primitives.stream import Stream

from .context import NpuContext


@dataclass(frozen=True)
class SkipStreams:
    """The streams of the skip store."""

    words: Stream
    """Words that go into the store; side: the word is for the addition. All but its ready is to be assigned."""
    to_addition: Stream
    to_inlet: Stream | None
    """to_addition, to_inlet: what comes out; their readys are to be assigned. In a binary NPU all words are for the
    addition: there is no side, and ``to_inlet`` is None."""


def skip_store(c: NpuContext) -> SkipStreams:
    """The store, in an NPU that has one."""
    if c.npu.keeps_steps:
        return _store_of_steps(c)
    b = c.b
    w = c.npu.array.map_bits
    b.comment("Skip store: words of maps that wait for the addition or for their second reader.")
    words = Stream.wires(b, "skipped", w, side_bits=1)
    out = _stored(c, words.replace(data=Cat(words.side, words.data), side=None))
    word = bits(out.data, 0, w)
    for_addition = bits(out.data, w, 1)
    to_addition, to_inlet = (
        Stream(b.wire(f"skip_to_{name}_valid", 1, out.valid & wanted), b.wire(f"skip_to_{name}_ready"), word)
        for name, wanted in (("addition", for_addition), ("inlet", ~for_addition))
    )
    out.ready.assign(choose(for_addition, to_addition.ready, to_inlet.ready, 1))
    return SkipStreams(words, to_addition, to_inlet)


def _store_of_steps(c: NpuContext) -> SkipStreams:
    """The store of a binary NPU: steps of integers, all of which are for the addition."""
    b = c.b
    b.comment("Skip store: steps of integers that wait for the addition.")
    words = Stream.wires(b, "skipped", c.npu.skip_word_bits)
    return SkipStreams(words, _stored(c, words), None)


def _stored(c: NpuContext, words: Stream) -> Stream:
    """The words of a stream, behind the FIFO and its register."""
    b = c.b
    w = words.data_bits
    out = Stream.wires(b, "skip_out", w)
    b.instance(
        fifo(c.library, w, present(c.npu.stores.skip).words),
        "skip_store",
        **words.ports("in"),
        room=b.wire("skip_room_unused"),
        **out.ports("out"),
    )
    return collected(b, c.library, "skip_word", out.replace(last=const(0, 1)), w, 1, ("last",))
