"""Makes a FRAME packet of each frame of a raw stream, and lets other packets pass between frames.

    s_axis ----------------------------------------------------+--> m_axis
    raw --> beat: its values --> group of beats --> wires -->  |
                                 stream words, one by one -----|
            header of a packet --------------------------------'

A packet begins when the first beat of a frame is offered and no transfer of s_axis is under way. It always has all of
its words: where the raw stream begins another frame too early, the missing beats are 0. Beats are dropped until a frame
begins, unless a frame has just ended: then the frame was too long. Data is checked for its length alone.
"""

from bitloom.hls_gen.design.frame_layout import ONE
from bitloom.hls_gen.design.headers import FIELDS, FRAME, HEADER_WORDS, MAGIC, NUMBER_BITS
from bitloom.hls_gen.design.packetizer import Packetizer
from bitloom.hls_gen.design.widths import ROW_BITS, bits_for
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    add,
    all_of,
    any_of,
    bits,
    choose,
    const,
    eq,
    side_by_side,
)
from bitloom.hls_gen.rtl.primitives.chain import chain
from bitloom.hls_gen.rtl.primitives.gearbox import collected, divider
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.register_word import word_of
from bitloom.hls_gen.rtl.primitives.stream import Stream
from bitloom.hls_gen.rtl.primitives.text import Header


def raw_frames(library: Library, p: Packetizer) -> Block:
    """The module ``raw_frames``."""
    header = Header(
        __doc__,
        rate=f"a beat a cycle, or {p.group_beats} beats in {p.group_words} cycles, whichever is slower",
        latency="1 cycle from a frame's first beat to its header, 1 from the header's end until the beat is taken, "
        "2 from a group's last beat to its first stream word",
        parameters={
            "stream_bits": p.stream_bits,
            "values": f"{p.beat_values} of {p.value_bits} bits",
            "beats": p.beats,
            "payload_words": p.payload_words,
        },
    )
    b = Block("raw_frames", header)
    run = b.input("run", means="frames may begin")
    signature = b.input("signature", 32, means="signature of the parameters that frames are for")
    number = b.input("number", NUMBER_BITS, means="number of the frame at hand, or of the next one")
    last = b.input("last", means="the results of that frame end a transfer")
    begins = b.input("begins", means="the beat that is offered is the first one of a frame")
    program = Stream(
        valid=b.input("s_axis_tvalid"),
        ready=b.output("s_axis_tready"),
        data=b.input("s_axis_tdata", p.stream_bits),
        last=b.input("s_axis_tlast"),
    )
    raw = Stream(b.input("raw_valid"), b.output("raw_ready"), b.input("raw_data", p.raw_bits))
    out = Stream(
        valid=b.output("m_axis_tvalid"),
        ready=b.input("m_axis_tready"),
        data=b.output("m_axis_tdata", p.stream_bits),
        last=b.output("m_axis_tlast"),
    )
    busy = b.output("busy", means="a frame is under way")
    ended = b.output("ended", means="pulse: the last word of a frame is taken")
    short = b.output("short", means="pulse: the frame at hand ends too early")
    long = b.output("long", means="pulse: the frame before goes on behind its last beat")

    # # #

    b.comment("Between frames: words of s_axis pass, and a frame begins where no transfer is under way.")
    in_header, in_payload = b.reg("in_header"), b.reg("in_payload")
    idle = b.wire("idle", 1, ~any_of(in_header, in_payload))
    in_transfer = b.reg("in_transfer")
    aligned = b.reg("aligned")  # a frame has just ended, so that another one must begin
    program.ready.assign(idle & out.ready)
    b.on(idle & program.taken, (in_transfer, ~program.last))
    looks = b.wire("looks", 1, all_of(idle, run))
    may_begin = b.wire("may_begin", 1, all_of(looks, raw.valid, ~program.valid, ~in_transfer))
    b.on(may_begin & begins, (in_header, 1))
    long.assign(all_of(may_begin, ~begins, aligned))
    b.on(long, (aligned, 0))
    drops = b.wire("drops", 1, all_of(looks, ~begins, ~aligned))
    busy.assign(~idle)

    b.comment("Header.")
    words = side_by_side(_header(b, p, signature, number, last))
    beats = HEADER_WORDS * 32 // p.stream_bits
    place = b.reg("header_place", bits_for(beats - 1))
    header_words = b.wire("header_words", HEADER_WORDS * 32, words)
    word: Signal = bits(header_words, 0, p.stream_bits)
    for k in range(1, beats):
        word = choose(eq(place, k), bits(header_words, k * p.stream_bits, p.stream_bits), word, p.stream_bits)
    header_taken = b.wire("header_taken", 1, in_header & out.ready)
    header_ends = b.wire("header_ends", 1, header_taken & eq(place, beats - 1))
    b.on(header_taken, (place, add(place, 1, bits_for(beats - 1))))  # beats is a power of two: wraps
    b.on(header_ends, (in_header, 0), (in_payload, 1))

    b.comment("Beats: those of the raw stream, or 0 once another frame has begun.")
    count = bits_for(p.beats)
    taken = b.reg("beats_taken", count)
    filling = b.reg("filling")
    more = b.wire("more", 1, in_payload & ~eq(taken, b.localparam("BEATS", p.beats, count)))
    expected = b.wire("expected", 1, ~begins | eq(taken, 0))
    short.assign(all_of(more, raw.valid, ~expected, ~filling))
    b.on(short, (filling, 1))
    beat_bits = p.beat_values * p.value_bits
    values = b.wire("values", beat_bits, side_by_side(_values(b, p, raw.data)))
    beat = Stream(
        valid=b.wire("beat_valid", 1, more & any_of(filling, raw.valid & expected)),
        ready=b.wire("beat_ready"),
        data=b.wire("beat_data", beat_bits, choose(filling, 0, values, beat_bits)),
        last=b.wire("beat_last", 1, eq(taken, b.localparam("LAST_BEAT", p.beats - 1, count))),
    )
    b.on(beat.taken, (taken, add(taken, 1, count)))
    raw.ready.assign(any_of(drops, all_of(more, expected, ~filling, beat.ready)))

    b.comment("Groups of beats, and the stream words of each: wires alone.")
    group_bits = p.group_beats * beat_bits
    group = collected(b, library, "group", beat, group_bits, p.group_beats)
    if unused := sorted({*range(group_bits)} - {*p.group_source}):
        b.wire("group_unused", len(unused), side_by_side([bits(group.data, k, 1) for k in unused]))
    wired = b.wire("group_words", p.group_words * p.stream_bits, side_by_side(_wires(p, group.data)))
    block = divider(
        library, p.group_words * p.stream_bits, p.stream_bits, p.group_words, last_piece_bits=p.last_piece_bits
    )
    last_piece = const(p.last_group_words - 1, p.last_piece_bits)
    payload = chain(b, block, "payload", group.replace(data=wired), rst=b.rst, in_last_piece=last_piece)
    payload.ready.assign(in_payload & out.ready)
    ended.assign(all_of(payload.taken, payload.last))
    b.on(ended, (in_payload, 0), (filling, 0), (taken, 0), (aligned, 1))

    b.comment("What leaves.")
    out.valid.assign(any_of(in_header, payload.valid, idle & program.valid))
    out.data.assign(choose(in_header, word, choose(idle, program.data, payload.data, p.stream_bits), p.stream_bits))
    out.last.assign(choose(idle, program.last, in_payload & payload.last, 1))
    return b


def _header(b: Block, p: Packetizer, signature: Signal, number: Signal, last: Signal) -> list[Signal]:
    """The four words of a frame's header."""
    word_0 = {field.name: const(0, field.width) for field in FIELDS[0]}
    word_0 |= {"KIND": b.localparam("KIND_FRAME", FRAME, word_0["KIND"].width), "LAST": last}
    word_0 |= {"MAGIC": b.localparam("MAGIC", MAGIC, word_0["MAGIC"].width, base=16)}
    words = [b.wire("header_0", 32, word_of(FIELDS[0], word_0)), signature]
    length = b.localparam("FRAME_WORDS", p.frame_words, ROW_BITS)
    words.append(b.wire("header_2", 32, side_by_side([length, number])))
    return [*words, b.wire("header_3", 32, ~(words[0] ^ words[1] ^ words[2]))]


def _values(b: Block, p: Packetizer, data: Signal) -> list[Signal]:
    """The values of a beat, from their lanes."""
    spare = p.lane_bits - p.value_bits
    lanes = range(0, p.raw_bits, p.lane_bits)
    if spare:
        unused = side_by_side([bits(data, lane + p.value_bits, spare) for lane in lanes])
        b.wire("lanes_unused", spare * p.beat_values, unused)
    return [bits(data, lane, p.value_bits) for lane in lanes]


def _wires(p: Packetizer, group: Signal) -> list[Signal]:
    """Bits of a group's stream words: neighbours together."""
    parts: list[Signal] = []
    k = 0
    while k < len(p.group_source):
        first, end = p.group_source[k], k + 1
        step = first >= 0
        while end < len(p.group_source) and p.group_source[end] == first + step * (end - k):
            end += 1
        ones = (1 << end - k) - 1 if first == ONE else 0
        parts.append(bits(group, first, end - k) if step else const(ones, end - k))
        k = end
    return parts
