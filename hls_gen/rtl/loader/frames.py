"""Frames: how many are in flight, which of them end a transfer, and their input words on the way to the first NPU.

accepted FRAME --> count of frames in flight --> a LOAD may begin: none is
          `------> FIFO of flags --> output register (hls_gen/rtl/ports/result_words.py): tlast or not
stream word --> gearbox --> words[KFP]
"""

from dataclasses import dataclass

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.gearbox import gear
from bitloom.hls_gen.design.widths import LAST_PIECE_BITS, bits_for
from bitloom.hls_gen.rtl.primitives.block import Signal, add, all_of, eq, sub
from bitloom.hls_gen.rtl.primitives.chain import chain
from bitloom.hls_gen.rtl.primitives.fifo import fifo
from bitloom.hls_gen.rtl.primitives.gearbox import collected, divider
from bitloom.hls_gen.rtl.primitives.places import Places
from bitloom.hls_gen.rtl.primitives.stream import Stream, connect

from .header import HeaderWords
from .judge import Judgement
from .network_row import NetworkRow
from .state import LoaderContext


@dataclass(frozen=True)
class FramesInFlight:
    """Frames that have begun and whose results have not all left."""

    none: Signal
    """There is none."""
    accept_load: Signal
    """Pulse: the packet at hand is a LOAD and begins."""
    accept_frame: Signal
    """Pulse: the packet at hand is a FRAME and begins."""


def frames_in_flight(
    c: LoaderContext, header: HeaderWords, judgement: Judgement, start: Signal, frame_left: Signal
) -> FramesInFlight:
    """Counts frames, and lets packets begin by the count.

    Parameters
    ----------
    c : LoaderContext
        The loader; it gets the ports ``flag_valid``, ``flag_ready_out`` and ``flag_data`` of the FIFO of flags.
    header : HeaderWords
        The packet at hand.
    judgement : Judgement
        Judgement of the header.
    start : Signal
        Bit START of register CONTROL: frames may begin.
    frame_left : Signal
        Pulse: the last word of a frame's results has left.
    """
    b = c.b
    count = bits_for(timing.FRAMES_IN_FLIGHT + 2)  # the FIFO holds one more in its output register
    b.comment("Frames in flight, and the flag of each: whether its results end a transfer.")
    in_flight = b.reg("in_flight", count)
    # a frame began: known late, so that its flag comes, and it counts, a cycle later, before the next header
    begun = b.reg("begun")
    counted_none = b.wire("none_counted", 1, eq(in_flight, 0))
    none = b.wire("no_frame", 1, counted_none & ~begun)
    flag_ready = b.wire("flag_ready")

    def accept(kind: str, condition: Signal) -> Signal:
        """Whether a packet begins. The condition is known a cycle ahead: no frame began in the cycle before, as its
        header takes longer."""
        may = b.reg(f"may_{kind}", init=None)
        b.on(None, (may, condition))
        return b.wire(f"accept_{kind}", 1, all_of(c.at["JUDGE"], judgement.passed, may))

    # A LOAD resets the NPUs, so it waits for all results. A frame waits for a place for its flag.
    accept_load = accept("load", judgement.is_load & counted_none)
    accept_frame = accept("frame", all_of(judgement.is_frame, start, flag_ready))
    b.on(None, (begun, accept_frame))
    b.on(begun & ~frame_left, (in_flight, add(in_flight, 1, count)))
    b.on(~begun & frame_left, (in_flight, sub(in_flight, 1, count)))
    room = b.wire("flag_room_unused")
    b.instance(
        fifo(c.library, 1, timing.FRAMES_IN_FLIGHT),
        "last_flags",
        in_valid=begun,
        in_ready=flag_ready,
        in_data=header.last,
        out_valid=b.output("flag_valid", means="there is the flag of a frame"),
        out_ready=b.input("flag_ready_out", means="the flag is taken, with its frame's last word"),
        out_data=b.output("flag_data", means="the frame's results end with tlast"),
        room=room,
    )
    return FramesInFlight(none, accept_load, accept_frame)


def frame_words(c: LoaderContext, network: NetworkRow, room: Signal) -> Signal:
    """Input words of a frame, on stream ``words``; whether the stream word at hand would be the frame's last.

    Parameters
    ----------
    c : LoaderContext
        The loader, in state FRAME; it gets the ports of ``words``.
    network : NetworkRow
        Network row of NPU 0.
    room : Signal
        Wire, driven here: the gearbox takes a stream word.
    """
    b = c.b
    width_in = c.design.stream_bits
    word = c.design.npus[0].host_word_bits
    b.comment("Input words of a frame.")
    taken = b.wire("frame_take", 1, all_of(c.at["FRAME"], c.given, room))
    places = Places(b, "frame_place", network.fields["frame_beats"])
    places.advance(taken, c.at["JUDGE"])
    last = places.last
    pieces, together = gear(word, width_in)  # how the host put words into stream words is undone here
    frame = Stream(c.at["FRAME"] & c.given, room, c.data, last)
    unused = ("last",)  # the sequencer counts words, by its layers' rows
    if pieces > 1:  # the last stream word of a frame may hold fewer input words than the others
        block = divider(c.library, width_in, word, pieces, last_piece_bits=LAST_PIECE_BITS)
        last_piece = network.fields["frame_last_piece"]
        words = chain(b, block, "frame_gearbox", frame, unused, rst=b.rst, in_last_piece=last_piece)
    else:
        if "frame_last_piece" in network.fields:  # one input word in each stream word: it is 0
            b.wire("frame_last_piece_unused", LAST_PIECE_BITS, network.fields["frame_last_piece"])
        words = collected(b, c.library, "frame_gearbox", frame, word, together, unused)
    connect(words, Stream.output(b, "words", word))
    return last
