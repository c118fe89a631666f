"""Pool unit: maximum of bipolar bits over a window's valid taps, which is OR (spec B13, B14).

    word[PFP] --> OR <-> queue (a word of the tuple each) --last tap--> output FIFO --> out[PFP and side bits]

Golden twin: golden/layers/pool.py. The sequencer gives words tap after tap, all words of a tap's tuple in turn; the
queue holds what the taps of this window gave so far. Nothing stalls inside: ``room`` tells the sequencer in time.
"""

from dataclasses import dataclass

from veriloggen import Cat

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.memories.ports import way
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, choose, width
from bitloom.hls_gen.rtl.primitives.fifo import fifo
from bitloom.hls_gen.rtl.primitives.memory import Library, ram
from bitloom.hls_gen.rtl.primitives.stream import Stream
from bitloom.hls_gen.rtl.primitives.text import Header
from bitloom.hls_gen.rtl.sequencer.beat import Beat
from bitloom.hls_gen.rtl.sequencer.spec import SequencerSpec


@dataclass(frozen=True)
class PoolPorts:
    """Ports that all pool units have, and registers of what comes with a beat.

    Attributes
    ----------
    beat : Beat
        What the sequencer tells with a beat.
    word : Signal
        The beat's word; comes a cycle after the beat.
    room : Signal
        Another beat may be issued.
    out : Stream
        What leaves: a word, and above it ``Npu.pool_side_bits`` side bits; more in a pool unit with weights.
    valid, first, last, index, side : Signal
        Registers, in time with ``word``: there is a beat; the first, the last tap of its window; which word of the
        tuple; side bits.
    """

    beat: Beat
    word: Signal
    room: Signal
    out: Stream
    valid: Signal
    first: Signal
    last: Signal
    index: Signal
    side: Signal

    @classmethod
    def of(cls, b: Block, npu: Npu, out_bits: int = 0) -> "PoolPorts":
        """The ports and registers of the pool unit ``b``; ``out_bits``, where not 0, is the width of what leaves."""
        spec = SequencerSpec(npu, present(npu.pool_sequencer))
        beat = Beat.input(b, spec)
        flags = [beat.tuple_last, beat.map_last, *(getattr(beat.marks, name) for name, _ in way(npu))]
        word = b.input("word", spec.sequencer.beat_bits, means="word of the beat of the cycle before, lane 0 low")
        room = b.output("room", means="another beat may be issued")
        out = Stream.output(b, "out", out_bits or npu.pool_word_bits + npu.pool_side_bits)
        valid = b.reg("valid")
        b.on(None, (valid, beat.beat))
        at_first = b.reg("at_first", init=None)
        at_last = b.reg("at_last", init=None)
        side = b.reg("side", npu.pool_side_bits, init=None)
        place = b.reg("place", width(beat.index), init=None)
        b.on(None, (at_first, beat.first), (at_last, beat.last), (side, Cat(*reversed(flags))), (place, beat.index))
        return cls(beat, word, room, out, valid, at_first, at_last, place, side)

    def emit(self, b: Block, library: Library, npu: Npu, emit: Signal, word: Signal) -> None:
        """The output FIFO: it takes ``word`` where ``emit`` is 1, and has room since ``room`` is kept."""
        depth = timing.pool_fifo_words(npu)
        margin = timing.pool_fifo_margin(npu)
        ready = b.wire("fifo_ready_unused")
        b.instance(
            fifo(library, self.out.data_bits, depth, margin),
            "out_fifo",
            in_valid=emit,
            in_ready=ready,
            in_data=word,
            **self.out.ports("out"),
            room=self.room,
        )


def queue(b: Block, library: Library, npu: Npu, ports: PoolPorts, merged: Signal, so_far: Signal) -> None:
    """The queue: ``so_far`` is the row of the word at hand, which becomes ``merged``."""
    b.instance(
        ram(library, width(so_far), 1 << present(npu.pool_unit).index_bits, latency=0),
        "queue",
        write=ports.valid,
        write_row=ports.index,
        write_data=merged,
        read_row=ports.index,
        read_data=so_far,
    )


def pool_unit(library: Library, npu: Npu) -> Block:
    """The pool unit of a binary NPU.

    Parameters
    ----------
    library : Library
        Where further modules come from.
    npu : Npu
        The NPU that it is part of.

    Returns
    -------
    Block
        Module ``pool_unit``.
    """
    pool_unit = present(npu.pool_unit)
    header = Header(
        __doc__,
        rate="one word a cycle",
        latency=f"{timing.latencies(npu).pool} cycle from a beat to the output FIFO",
        parameters={"pfp": pool_unit.pfp, "fifo_words": timing.pool_fifo_words(npu)},
    )
    b = Block(library.name("pool_unit", npu), header)
    ports = PoolPorts.of(b, npu)

    # # #

    so_far = b.wire("so_far", pool_unit.pfp)
    merged = b.wire("merged", pool_unit.pfp, ports.word | choose(ports.first, 0, so_far, pool_unit.pfp))
    queue(b, library, npu, ports, merged, so_far)
    ports.emit(b, library, npu, b.wire("emit", 1, ports.valid & ports.last), Cat(ports.side, merged))
    return b
