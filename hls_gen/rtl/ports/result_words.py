"""Results on their way out: raw values and map words become stream words (part of hls_gen/rtl/shell/top.py).

    raw values[OL] --> one value --> skid register, 32 bits --> stream words --+
                                                                               +--> output register --> m_axis
    map words --> FIFO ---------------------------------------> stream words --'

A raw value is sent as a 32-bit number, whatever the width of the accumulators is. Of all NPUs of a design one sends
results, in one of the two forms; of a network with several outputs one map after another, each from a new stream word
on. ``tlast`` comes with the last word of a frame's results if the frame's packet asked
for it: its flag waits in the loader (hls_gen/rtl/loader) until the results leave.
"""

from collections.abc import Mapping, Sequence

from veriloggen import Cat, Repeat

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    add,
    any_of,
    bits,
    choose,
    const,
    eq,
    sign_extend,
    width,
)
from bitloom.hls_gen.rtl.primitives.fifo import fifo
from bitloom.hls_gen.rtl.primitives.gearbox import collected, gearbox
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.skid import skidded
from bitloom.hls_gen.rtl.primitives.stream import Stream


def result_words(
    b: Block, library: Library, design: Design, npus: Sequence[Mapping[str, Signal]], reset: Signal
) -> list[Stream]:
    """Stream words of the results of every NPU with outlet "host".

    Parameters
    ----------
    design : Design
        All NPUs and the stream's width.
    npus : sequence of mapping of str to Signal
        Signals at the ports of each NPU.
    reset : Signal
        Reset of all of the design but the registers.

    Returns
    -------
    list of Stream
        Two for each such NPU: of its raw values, and of its map words. ``last`` is 1 with the last word of a map.
    """
    b.comment("Results: raw values and map words become stream words.")
    streams = []
    for n, params in enumerate(design.npus):
        if params.ports.sends_results:
            raw = Stream.of(npus[n], "raw")
            maps = Stream.of(npus[n], "to_host")
            streams.append(_raw_words(b, library, params, f"npu{n}", raw, reset))
            streams.append(_map_words(b, library, f"npu{n}", maps, reset))
    return streams


def _raw_words(b: Block, library: Library, npu: Npu, name: str, raw: Stream, reset: Signal) -> Stream:
    """Stream words of an NPU's raw values, OL at a time."""
    values = gearbox(b, library, f"{name}_raw_values", raw, npu.array.acc_bits, rst=reset)
    values = skidded(b, library, f"{name}_raw_skid", values, rst=reset)  # the host's ready comes late
    wide = values.replace(data=sign_extend(values.data, 32))
    return gearbox(b, library, f"{name}_raw_words", wide, library.stream_bits, rst=reset)


def _map_words(b: Block, library: Library, name: str, maps: Stream, reset: Signal) -> Stream:
    """Stream words of an NPU's map words, each stored with its ``last`` above it."""
    w = maps.data_bits
    name = f"{name}_map"
    held = Stream(b.wire(f"{name}_held_valid"), b.wire(f"{name}_held_ready"), b.wire(f"{name}_held", w + 1))
    b.instance(
        fifo(library, w + 1, timing.MAP_HELD),
        f"{name}_held_words",
        rst=reset,
        **maps.replace(data=Cat(maps.last, maps.data), last=None).ports("in"),
        room=b.wire(f"{name}_held_room_unused"),
        **held.ports("out"),
    )
    words = held.replace(data=bits(held.data, 0, w), last=bits(held.data, w, 1))
    return gearbox(b, library, f"{name}_words", words, library.stream_bits, rst=reset)


def output_register(
    b: Block,
    library: Library,
    results: Sequence[Stream],
    flags: Stream,
    m_axis: Stream,
    reset: Signal,
    last_output: Signal | None,
) -> dict[str, Signal]:
    """Stream words to ``m_axis``, through a register that keeps the host's ready apart from everything before it.

    Parameters
    ----------
    results : sequence of Stream
        Result of `result_words`; at most one has a word at a time: in a network one NPU sends results, in one form.
    flags : Stream
        A bit for each frame in flight, in order: whether its last word has tlast. One is taken with that word.
    m_axis : Stream
        Ports of the top module.
    reset : Signal
        Reset of all of the design but the registers.
    last_output : Signal or None
        Number of the last map that leaves for a frame, from 0 on; None where each frame has one.

    Returns
    -------
    dict of str to Signal
        Pulses for the registers and the loader: ``word_given``, ``result_left`` (that word has tlast) and
        ``frame_left`` (it is a frame's last).
    """
    b.comment("Output register: a frame's last word takes its flag, which says whether it has tlast.")
    ready = b.wire("result_ready")
    # nothing leaves before the frame's flag is there, for it decides tlast
    gate = b.wire("result_gate", 1, ready & flags.valid)
    either = b.wire("result_valid", 1, any_of(*[words.valid for words in results]))
    # never two at a time, so that none waits for another: an order among them would be a long path
    data = any_of(*[words.data & Repeat(words.valid, library.stream_bits) for words in results])
    last = any_of(*[words.last & words.valid for words in results])
    for words in results:
        words.ready.assign(gate)
    if last_output is not None:
        map_end = b.wire("map_end", 1, gate & last)
        last = last & _is_last_output(b, last_output, map_end, reset)
    end = b.wire("result_end", 1, last)
    # a frame's end goes along beside tlast, which the frame may not have asked for
    given = Stream(
        valid=b.wire("result_given", 1, either & flags.valid),
        ready=ready,
        data=data,
        last=b.wire("result_tlast", 1, end & flags.data),
        side=end,
    )
    out = collected(b, library, "output_register", given, library.stream_bits, 1, rst=reset)
    flags.ready.assign(b.wire("frame_end", 1, gate & end))
    m_axis.data.assign(out.data)
    m_axis.valid.assign(out.valid)
    m_axis.last.assign(out.last)
    out.ready.assign(m_axis.ready)
    word_given = b.wire("word_given", 1, out.valid & m_axis.ready)
    result_left = b.wire("result_left", 1, word_given & out.last)
    return {"word_given": word_given, "result_left": result_left, "frame_left": word_given & bits(out.side, 0, 1)}


def _is_last_output(b: Block, last_output: Signal, map_end: Signal, reset: Signal) -> Signal:
    """Whether the map that leaves is the last one of its frame; ``map_end`` is 1 as the last word of a map goes."""
    w = width(last_output)
    number = b.reg("output_number", w)
    is_last = b.wire("is_last_output", 1, eq(number, last_output))
    b.on(map_end, (number, choose(is_last, const(0, w), add(number, 1, w), w)))
    b.on(reset, (number, 0))
    return is_last
