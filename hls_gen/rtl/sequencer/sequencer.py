"""Sequencer: tuple memory, tables and the order of work (spec B9, B10, B13).  Golden twin: hls_gen/compiler/schedule.

    words in --> tuple memory (ring) ---------------------> word, a cycle after its beat
                    ^ address
    layer rows --> tap source <-- flags, olds, jumps
                    | one tap a cycle
                   issuer --> beat (first, last, kernel row, ...)

Order ``output`` (B9): for each window, each kernel group, each valid tap, each word of its tuple. One beat a cycle;
the next window, layer or frame starts in the cycle after the last beat of this one, if its words are there and there
is room.

The ring holds words of several layers at once: a layer's tuples follow those of the layer before, so that words for
the next layer come in while this one is computed. Tables hold addresses relative to the first word of the layer.

Parts: hls_gen/rtl/sequencer/writer.py, hls_gen/rtl/sequencer/taps.py, hls_gen/rtl/sequencer/issuer.py.
"""

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import Block
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus

from .issuer import issuer
from .kind import Kind
from .taps import tap_source
from .writer import writer

__all__ = ["Kind", "sequencer"]


def sequencer(library: Library, npu: Npu, kind: Kind) -> Block:
    """The convolution's or the pool's sequencer of ``npu``."""
    b = Block(library.name("pool_sequencer" if kind.pool else "conv_sequencer", npu))
    bus = LoadBus.ports(b, library.stream_bits, kind.memories(npu))
    last_layer = b.input("last_layer", 8)
    room = b.input("room")
    ring = bits_for(kind.words(npu) - 1)

    # # #

    source = writer(b, library, npu, kind, bus, last_layer)
    tap = tap_source(b, library, npu, kind, bus, last_layer, ring)
    issuer(b, library, npu, kind, tap, source, room, ring)
    return b
