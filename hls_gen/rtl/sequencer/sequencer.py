"""Sequencer: tuple memory, tables and dataflows (spec B9, B10, B13).  Golden twin: hls_gen/compiler/schedule.

    words in --> tuple memory (ring) ---------------------> word, a cycle after its beat
                    ^ address
    layer rows --> tap source <-- flags, olds, jumps
                    | one tap a cycle
                   issuer --> beat (first, last, kernel row, ...)

Dataflow output_stationary (B9): for each window, each kernel group, each valid tap, each word of its tuple. One beat a
cycle; the next window, layer or frame starts in the cycle after the last beat of this one, if its words are there and
there is room.

The ring holds words of several layers at once: a layer's tuples follow those of the layer before, so that words for
the next layer come in while this one is computed. Tables hold addresses relative to the first word of the layer.

Parts: hls_gen/rtl/sequencer/writer.py, hls_gen/rtl/sequencer/tap_source.py, hls_gen/rtl/sequencer/issuer.py.
"""

from bitloom.hls_gen.rtl.primitives.block import Block
from bitloom.hls_gen.rtl.primitives.layer_counter import LAYER_BITS
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus
from bitloom.hls_gen.rtl.primitives.text import Header

from .issuer import issuer
from .spec import SequencerSpec
from .tap_source import tap_source
from .writer import writer

__all__ = ["SequencerSpec", "sequencer"]


def sequencer(library: Library, spec: SequencerSpec) -> Block:
    """The sequencer module that ``spec`` describes."""
    header = Header(
        __doc__ or "",
        rate="one beat a cycle",
        latency="1 cycle from a beat to its word",
        parameters={"word_bits": spec.word_bits, "words": spec.ring_words},
    )
    b = Block(library.name(spec.module, spec.npu), header)
    bus = LoadBus.ports(b, library.stream_bits, spec.memories)
    last_layer = b.input("last_layer", LAYER_BITS)
    room = b.input("room")

    # # #

    source = writer(b, library, spec, bus, last_layer)
    tap = tap_source(b, library, spec, bus, last_layer)
    issuer(b, library, spec, tap, source, room)
    return b
