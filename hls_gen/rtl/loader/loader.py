"""Loader: takes the packets of the stream apart (docs/reference/device.md, "Packets"; spec B8).

    s_axis --> header --> judge --+--> LOAD: load bus to the memories of the NPUs
                                  +--> FRAME: input words to the first NPU, a flag to the output
                                  `--> malformed: error, then everything is dropped until reset

Order of arrival is kept: a LOAD waits until no frame is in flight, then holds the NPUs in reset (``restart``); a FRAME
lets them go. One stream word a cycle; a header costs two cycles in which none is taken, a wait apart.

Parts: state.py, header.py, load.py, network_row.py, order.py, judge.py, frames.py in hls_gen/rtl/loader.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.headers import ERROR_BITS
from bitloom.hls_gen.design.loader import STATE_BITS, STATES
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, all_of, any_of, choose, width
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.states import StateMachine
from bitloom.hls_gen.rtl.primitives.stream import Stream
from bitloom.hls_gen.rtl.primitives.text import Header

from .frames import FramesInFlight, frame_words, frames_in_flight
from .header import HeaderWords, header_words
from .judge import HeaderFacts, Judgement, error_code, judge
from .load import LoadPort, RowCursor, addressed_memory, load_rows
from .network_row import network_row
from .order import Order
from .state import LoaderContext
from .weights import accept_weights, last_row_of_layer

STREAMED = """
Weights of streamed layers come between frames (weights.py in hls_gen/rtl/loader):

    judge --> WEIGHTS: load bus to the kernel memory of an NPU, while the NPUs compute
"""
"""Added to the header where weights are streamed."""


@dataclass(frozen=True)
class PacketProgress:
    """Events of a packet that move the loader from state to state."""

    taken: Signal
    """A stream word is taken in this cycle."""
    early_last: Signal
    """Register: tlast came before the end of a packet. It is seen a cycle late, in which nothing is taken."""
    payload_ends: Signal
    """Wire: the stream word at hand would be the packet's last."""
    frame_room: Signal
    """Wire: the gearbox of frames takes a stream word."""


@dataclass(frozen=True)
class Fault:
    """A malformed packet."""

    error: Signal
    code: Signal
    """error, code: registers, shown by STATUS and ERROR_CODE: there was a malformed packet, and which rule the packet
    broke."""
    now: Signal
    code_now: Signal
    """now, code_now: wires: a malformed packet is found in this cycle, and which rule the packet breaks."""

    @classmethod
    def make(cls, b: Block) -> "Fault":
        """Signals in ``b``, which gets the ports ``error`` and ``error_code``."""
        error = b.output_reg("error")
        code = b.output_reg("error_code", ERROR_BITS)
        return cls(error, code, b.wire("fault"), b.wire("fault_code", ERROR_BITS))


def loader(library: Library, design: Design) -> Block:
    """The loader of a design.

    Module ``loader``. Streams: ``s_axis`` in, ``words`` (input words of frames) and ``flag`` (one a frame, whether it
    ends a transfer) out. Beside them: load bus, settings of the NPUs, ``restart``, and what the registers show.
    """
    b = Block("loader", _module_header(design))
    port = LoadPort.of(design)
    words = _packets(b, design.stream_bits)
    start = b.input("start")
    frame_left = b.input("frame_left")

    # # #

    states = StateMachine.of(b, STATES)
    at = states.at
    taken = b.wire("take", 1, words.taken)
    early = b.reg("early_last")
    c = LoaderContext(b, library, design, at, b.wire("given", 1, words.valid & ~early), words.data)
    header = header_words(c, port.row_bits + 2)  # a sum of two such numbers as a depth, which can't wrap
    progress = PacketProgress(taken, early, b.wire("payload_final"), b.wire("gearbox_ready"))
    fault = Fault.make(b)

    target = addressed_memory(c, header, port)
    cursor = RowCursor.make(c, header, port, target)
    word = load_rows(c, target, cursor, port)
    networks = [network_row(c, n, target, cursor, word) for n in range(len(design.npus))]
    loaded = b.output("loaded", 1, all_of(*[row.loaded for row in networks]))
    if design.npus[0].loader.outputs > 1:
        last_output = networks[0].fields["last_output"]
        b.output("last_output", width(last_output), last_output, means="number of the last map that leaves for a frame")
    order = Order.make(c)
    judgement = judge(c, header, HeaderFacts(target, networks[0], loaded, order))
    _find_faults(c, progress, fault, judgement, words.last)

    frames = frames_in_flight(c, header, judgement, start, frame_left)
    # reset of the NPUs: a register that all of them read, without logic between it and their hundreds of registers
    restart = b.output_reg("restart", init=1)
    b.on(frames.accept_frame, (restart, 0))
    b.on(frames.accept_load, (restart, 1))
    begins = {"LOAD": [frames.accept_load], "FRAME": [frames.accept_frame]}
    if target.is_weights is not None:
        whole = last_row_of_layer(header, target, cursor, word)
        begins["LOAD"].append(accept_weights(c, header, judgement, target, whole, frames.accept_load))
        order.count_layers(b, frames.accept_load, whole, networks[0])
    order.count(b, frames.accept_load, [frames.accept_frame, *begins["LOAD"][1:]])
    order.sign(c, header.fields["CHECK"], word.taken & judgement.is_load, frames.accept_load)
    beat_last = frame_words(c, networks[0], progress.frame_room)
    progress.payload_ends.assign(any_of(at["LOAD"] & word.row_ends & cursor.is_last, at["FRAME"] & beat_last))
    _take_words(c, progress, words)
    _move(states, progress, header, begins)
    for state in ("HEADER", "RANGE", "LOAD", "FRAME"):
        states.go(early, "DRAIN", state)
    states.go(~judgement.passed, "DRAIN", "JUDGE")
    states.close()
    b.on(fault.now, (fault.error, 1), (fault.code, fault.code_now), (restart, 1))
    _show(c, states, progress, header, frames)
    return b


def _module_header(design: Design) -> Header:
    """First comment of the module."""
    judging = f"{timing.JUDGING} cycles from a header's last word until the packet may begin"
    return Header(
        __doc__ + STREAMED * design.npus[0].loader.stream_weights,
        rate=f"one stream word a cycle inside a packet, none for {timing.JUDGING} cycles behind a header",
        latency=f"{judging}; 1 cycle from a word of rows to the load bus, and from a frame's word to stream words",
        parameters={"stream_bits": design.stream_bits, "npus": len(design.npus)},
    )


def _packets(b: Block, stream_bits: int) -> Stream:
    """The ports by which packets come in, AXI4-Stream."""
    valid = b.input("s_axis_tvalid")
    ready = b.output("s_axis_tready")
    return Stream(valid, ready, b.input("s_axis_tdata", stream_bits), b.input("s_axis_tlast"))


def _find_faults(c: LoaderContext, progress: PacketProgress, fault: Fault, judgement: Judgement, tlast: Signal) -> None:
    """Drives ``fault.now`` and ``fault.code_now``. A packet's tlast is looked at wherever a word is taken, but not in
    state DRAIN, whose fault has been told. Nothing is taken while judging, so there are never two faults at once."""
    c.b.comment("Faults.")
    not_its_end = all_of(progress.taken, tlast, ~progress.payload_ends, ~c.at["DRAIN"])
    c.b.on(None, (progress.early_last, not_its_end))
    truncated = choose(progress.early_last, error_code(c.b, "TRUNCATED"), 0, ERROR_BITS)
    fault.code_now.assign(choose(c.at["JUDGE"], judgement.verdict, truncated, ERROR_BITS))
    fault.now.assign(choose(c.at["JUDGE"], ~judgement.passed, progress.early_last, 1))


def _take_words(c: LoaderContext, progress: PacketProgress, words: Stream) -> None:
    """Drives the stream's ready: all states but those of the judge take words, FRAME as far as the gearbox does."""
    at = c.at
    takes = any_of(at["HEADER"], at["LOAD"], at["FRAME"] & progress.frame_room, at["DRAIN"])
    words.ready.assign(c.b.wire("can_take", 1, takes) & ~progress.early_last)


def _move(
    states: StateMachine, progress: PacketProgress, header: HeaderWords, begins: dict[str, Sequence[Signal]]
) -> None:
    """The state's way from packet to packet; ``begins`` has the pulses on which a payload begins, by its state."""
    states.go(header.complete, "RANGE", "HEADER")
    states.go(~progress.early_last, "JUDGE", "RANGE")
    for name, pulses in begins.items():
        for pulse in pulses:
            states.go(pulse, name, "JUDGE")
        states.go(progress.taken & progress.payload_ends, "HEADER", name)


def _show(
    c: LoaderContext, states: StateMachine, progress: PacketProgress, header: HeaderWords, frames: FramesInFlight
) -> None:
    """Outputs that the registers show and count. In DRAIN the header stays, so it needs no copy; at other times nobody
    shows it."""
    c.b.comment("What the registers show and count.")
    for k, name in enumerate(("header", "address", "length")):
        c.b.output(f"error_{name}", 32, header.words[k])
    c.b.output("idle", 1, all_of(frames.none, c.at["HEADER"]))
    c.b.output("computing", 1, ~frames.none)
    c.b.output("loader_state", STATE_BITS, states.number)
    c.b.output("word_taken", 1, progress.taken)
    c.b.output("load_begins", 1, frames.accept_load)
