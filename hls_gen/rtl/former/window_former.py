"""Window former: the taps of a window side by side, so that a layer of few channels fills the lanes.

    in[words: positions side by side] --> word register --+--> column of taps --> columns of the window --> out
                         0 for positions beside the map --------'      ^  |
                                                              line memory, a column for each position of a row

A position goes into the window in a cycle: its column, the one that was there a row ago moved on by a position, takes
the place of the newest column, and of its own in the line memory. So all taps of a window are of this frame: rows and
columns beside the map come as 0, which adds nothing to a sum. A window that is complete leaves word by word; the next
position comes with its last word, or where the former goes ahead with the first one, as a copy has the others. While
``former_on`` is 0, words pass as they are. Lanes are counted in granules: as many as stay together in every map. Golden
twin: Window.positions (golden/window.py); lanes: hls_gen/design/formed_windows.py.
"""

from collections.abc import Callable
from dataclasses import dataclass

from veriloggen import Cat, Mux, Repeat

from bitloom.hls_gen.design.lanes import plane_order
from bitloom.hls_gen.design.memories.window_former import former_fields
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.widths import PLACE_BITS, bits_for
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
    last_repeated,
    resize,
    side_by_side,
    sub,
    width,
)
from bitloom.hls_gen.rtl.primitives.fifo import registered_read
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.stream import Stream
from bitloom.hls_gen.rtl.primitives.text import Header

MEANS = {
    "on": "windows are formed; 0: words pass as they are",
    "channels_minus_1": "granules of a position, less 1",
    "positions_minus_1": "positions in a word of stream in, less 1",
    "words_minus_1": "words of a window, less 1",
    "lanes_used": "granules of a column that have taps",
    "columns_used": "columns of a window",
}
"""Meanings of fields of the network's row for the former, by the ends of the ports' names; other fields are of an
axis."""

Fields = dict[str, Signal]
"""Fields of the network's row, by their names behind ``former_``."""


@dataclass(frozen=True)
class _AxisCounter:
    """A counter of positions along an axis. Positions in front of the map are negative, that is large numbers. The
    signals of the position at hand are worked out a step ahead and stand in registers, since whether the former takes a
    word is on a long path."""

    following: Signal
    """The next position; the first one at the beginning."""
    moves: Signal
    """The next position is at hand from the next cycle on."""
    last: Signal
    """The position at hand is the last one."""
    hit: Signal
    """A window ends at this position."""
    inside: Signal
    ends: Signal | None
    """The position is the last one on the map; None where a word has one position."""


@dataclass(frozen=True)
class _Position:
    """The position at hand."""

    channels: Signal
    """Its channels, where it comes; more may follow above them."""
    inside: Signal
    """It lies on the map."""
    free: Signal
    """It may go into the window, as far as words go that leave. This is known last: so what is done with it alone,
    whether the position's word is there or not, has fewer gates behind it."""
    step: Signal
    """It goes into the window in this cycle."""


@dataclass(frozen=True)
class _OfferedWord:
    """The words of windows at the outlet."""

    window: Signal
    """The columns have a window whose words are to leave, or the first of them where a copy has the others."""
    valid: Signal
    """A word is offered."""
    free: Signal
    """A position may come."""
    number: Signal | None
    """Number of the word that is offered, where a window may have several."""
    first: Signal | None
    """That word is a window's first one, where the former goes ahead."""


def window_former(library: Library, npu: Npu) -> Block:
    """The window former of an NPU.

    Module ``window_former``. Streams ``in`` and ``out``; the fields of the network's row by their names.
    """
    sizes = npu.values("former_channels", "former_column", "former_columns", "former_line")
    latency = "1 cycle from a word in to its first position, 1 from a window's last position to its first word"
    header = Header(__doc__, rate="a position or a word a cycle", latency=latency, parameters=sizes)
    b = Block(library.name("window_former", npu), header)
    source = Stream.input(b, "in", npu.array.word_bits)
    out = Stream.output(b, "out", npu.array.word_bits)
    f = {name.removeprefix("former_"): b.input(name, w, _meaning(name)) for name, w in former_fields(npu)}

    # # #

    begun = b.reg("begun")  # the first position is known a cycle after the network
    b.on(None, (begun, f["on"]))
    fresh = b.wire("fresh", 1, ~begun)
    ahead = present(npu.former_sizes).ahead > 0
    offer = _offer(b, f, out, fresh, ahead=ahead)
    b.comment("Where the position at hand lies: beside the map, or on it, and whether it completes a window.")
    may = b.wire("may_step")
    moves = b.wire("moves", 1, any_of(fresh, offer.free & may))
    x = _axis(b, f, "x", fresh, moves)
    y = _axis(b, f, "y", fresh, any_of(fresh, offer.free & (may & x.last)))
    inside = b.wire("on_map", 1, x.inside & y.inside)
    step = b.wire("step", 1, offer.free & (begun & may))
    begins = b.reg("begins", init=1)  # at the first position of a frame; it waits for the frame, wherever it lies
    b.on(step, (begins, x.last & y.last))
    b.on(step, (offer.window, x.hit & y.hit))
    there = b.reg("there")
    may.assign(any_of(there, ~any_of(inside, begins)))
    come = b.wire("come", 1, offer.free & (begun & there & inside))
    word = _word_register(b, npu, f, (source, out), there, come, (x, y))
    position = _Position(word, inside, offer.free, step)
    words = _words(b, npu, f, _columns(b, library, npu, f, x, position))
    if ahead and offer.first is not None:
        copies = [b.reg(f"copy_{m}", width(word), init=None) for m, word in enumerate(words[1:], 1)]
        b.on(offer.first, *zip(copies, words[1:]))
        words[1:] = copies
    formed = words[0] if offer.number is None else last_repeated(offer.number, words)
    out.valid.assign(choose(f["on"], offer.valid, source.valid, 1))
    out.data.assign(choose(f["on"], formed, source.data, npu.array.word_bits))
    return b


def _offer(b: Block, f: Fields, out: Stream, fresh: Signal, *, ahead: bool) -> _OfferedWord:
    """The word that is offered. The next position comes with a window's last word, or with the first one where the
    former goes ``ahead``. ``fresh``: there was none yet."""
    b.comment("A window gives its words.")
    window = b.reg("offering")
    if "words_minus_1" not in f:
        free = b.wire("free", 1, any_of(~window, out.ready))
        b.on(free, (window, 0))  # the next position may have to wait for its word
        return _OfferedWord(window, window, free, None, None)
    last = f["words_minus_1"]
    w = width(last)
    number = b.reg("number", w)
    last_word = b.reg("last_word", init=None)
    first = b.reg("first_word", init=1) if ahead else None
    valid = window if first is None else b.wire("has_word", 1, any_of(window, ~first))
    onward = b.wire("number_next", w, choose(any_of(fresh, last_word), 0, add(number, 1, w), w))
    given = any_of(fresh, valid & out.ready)
    b.on(given, (number, onward), (last_word, eq(onward, last)))
    if first is not None:
        b.on(given, (first, eq(onward, 0)))
    free = b.wire("free", 1, any_of(~window, out.ready & (last_word if first is None else first)))
    b.on(free, (window, 0))
    return _OfferedWord(window, valid, free, number, first)


def _columns(b: Block, library: Library, npu: Npu, f: Fields, x: _AxisCounter, at: _Position) -> list[Signal]:
    """The columns of the window, the newest first."""
    sizes = present(npu.former_sizes)
    b.comment("Columns: that of the position at hand has the taps of the rows before from the line memory.")
    kept = (sizes.column - sizes.granule) * npu.former_lane_bits  # the oldest lanes have nowhere to go
    before = b.wire("row_before", kept) if kept else None
    column = _column(b, npu, f, at, before)
    if before is not None:
        address = bits_for(sizes.line - 1)
        place = b.reg("place", address, init=None)
        b.on(x.moves, (place, bits(x.following, 0, address)))
        registered_read(
            b,
            library,
            "line_memory",
            sizes.line,
            write=b.wire("keep", 1, at.free & x.inside),  # also before its word came: it is written again then
            write_row=place,
            write_data=bits(column, 0, kept),
            read=at.step,
            read_row=bits(x.following, 0, address),
            read_data=before,
        )
    # Beside the map no row of a column is on it, whatever the line memory has there. The newest column is cleared where
    # it may go on, whether it does or not: it is at hand then, or a frame begins, which needs no columns before.
    lane = npu.former_granule_bits
    newest = [b.reg(f"column_0_{k}", lane, init=None) for k in range(width(column) // lane)]
    for k, register in enumerate(newest):
        b.on(at.step, (register, bits(column, k * lane, lane)))
        b.on(at.free & any_of(~x.inside, *(~used for used in _used(npu, f, "lanes", k))), (register, 0))
    columns = [b.wire("column_0", width(column), side_by_side(newest))]
    for k in range(1, sizes.columns):
        register = b.reg(f"column_{k}", width(column), init=None)
        b.on(at.step, (register, columns[-1]))
        for used in _used(npu, f, "columns", k):
            b.on(~used, (register, 0))
        columns.append(register)
    return columns


def _meaning(name: str) -> str:
    """Meaning of a field of the network's row."""
    end = name.removeprefix("former_")
    if end in MEANS:
        return MEANS[end]
    axis, what = end.split("_", 1)
    along = "rows" if axis == "y" else "columns"
    told = {
        "first": "first position, negative beside the map",
        "end": "end of those that come",
        "last": "last position",
        "kernel_minus_1": "size of the kernel, less 1",
        "stride_minus_1": "positions between windows, less 1",
    }
    return f"{along}: {told[what]}"


def _axis(b: Block, f: Fields, axis: str, fresh: Signal, moves: Signal) -> _AxisCounter:
    """The counter along an axis. ``moves``: go on, from the last position to the first; to the first one where it is
    ``fresh``, too."""
    first = f[f"{axis}_first"]
    kernel = f[f"{axis}_kernel_minus_1"]
    end = f[f"{axis}_end"]
    w = width(first)
    ends = None
    wait = b.reg(f"{axis}_wait", PLACE_BITS, init=None)  # positions until a window ends
    last = b.reg(f"{axis}_is_last", init=None)
    inside = b.reg(f"{axis}_inside", init=None)
    hit = b.wire(f"{axis}_hit", 1, eq(wait, 0))
    after = b.reg(f"{axis}_after", w, init=None)
    following = b.wire(f"{axis}_next", w, choose(any_of(last, fresh), first, after, w))
    behind = b.wire(f"{axis}_behind", w, add(following, 1, w))
    again = choose(hit, f[f"{axis}_stride_minus_1"], sub(wait, 1, PLACE_BITS), PLACE_BITS)
    on_map = following < end
    b.on(moves, (wait, choose(any_of(last, fresh), kernel, again, PLACE_BITS)))
    b.on(moves, (after, behind), (last, eq(following, f[f"{axis}_last"])), (inside, on_map))
    if "positions_minus_1" in f:
        ends = b.reg(f"{axis}_ends", init=None)
        b.on(moves, (ends, on_map & ~(behind < end)))
    return _AxisCounter(following, moves, last, hit, inside, ends)


def _word_register(
    b: Block,
    npu: Npu,
    f: Fields,
    streams: tuple[Stream, Stream],
    there: Signal,
    come: Signal,
    axes: tuple[_AxisCounter, _AxisCounter],
) -> Signal:
    """The word whose positions come: the position at its low end. Drives the register ``there``: there is a word.

    A frame begins with a word: what is left of the last one when the frame's positions have all come is dropped.
    """
    b.comment("Word register: positions leave it at its low end.")
    source, out = streams
    word = b.reg("frame_word", npu.array.word_bits, init=None)
    moves = b.wire("word_moves", 1, any_of(~there, come))
    room = moves
    if "positions_minus_1" not in f:
        b.on(moves, (word, source.data))
    else:
        left = b.reg("left", width(f["positions_minus_1"]), init=None)
        last = b.wire("last_position", 1, any_of(eq(left, 0), all_of(*(axis.ends for axis in axes))))
        fills = b.wire("fills", 1, any_of(~there, last))  # ``room`` would do, and comes late: many bits choose by it
        rest = _by_channels(npu, f, lambda c: _less_a_position(word, source.data, c, npu))
        b.on(moves, (word, choose(fills, source.data, rest, width(word))))
        b.on(moves, (left, choose(fills, f["positions_minus_1"], sub(left, 1, width(left)), width(left))))
        room = b.wire("room", 1, any_of(~there, come & last))
    source.ready.assign(choose(f["on"], room, out.ready, 1))
    b.on(room, (there, all_of(f["on"], source.valid)))
    return bits(word, 0, present(npu.former_sizes).channels * npu.former_lane_bits)


def _by_channels(npu: Npu, f: Fields, make: Callable[[int], Signal]) -> Signal:
    """The signal that ``make`` returns for the number of granules of a position, which a field says: a choice among all
    numbers."""
    sizes = present(npu.former_sizes)
    granules = sizes.channels // sizes.granule
    chosen = make(granules)
    for channels in range(granules - 1, 0, -1):
        chosen = Mux(eq(f["channels_minus_1"], channels - 1), make(channels), chosen)
    return chosen


def _less_a_position(word: Signal, came: Signal, channels: int, npu: Npu) -> Signal:
    """``word`` without its lowest position. Nobody looks at what fills it up from above: it is that of the word that
    ``came``, so that these bits needn't ask whether a word or a position goes."""
    by = channels * npu.former_granule_bits
    w = width(word)
    return came if by >= w else Cat(bits(came, w - by, by), bits(word, by, w - by))


def _column(b: Block, npu: Npu, f: Fields, at: _Position, before: Signal | None) -> Signal:
    """The column of the position at hand: its channels, 0 beside the map, and above them those of the rows before."""
    sizes = present(npu.former_sizes)
    lane = npu.former_granule_bits
    lanes = sizes.column // sizes.granule
    channels = [
        b.wire(f"channel_{k}", lane, bits(at.channels, k * lane, lane) & _all(at.inside, lane))
        for k in range(sizes.channels // sizes.granule)
    ]
    taps = []
    for k in range(lanes):
        value = _by_channels(npu, f, lambda c, k=k: channels[k] if k < c else bits(before, (k - c) * lane, lane))
        taps.append(b.wire(f"tap_{k}", lane, value))
    return b.wire("column", lanes * lane, side_by_side(taps))


def _used(npu: Npu, f: Fields, what: str, k: int) -> list[Signal]:
    """Whether lane or column ``k`` of a window has taps; nothing where weights are 0 that meet none. Else an NPU clears
    the registers of the others: 0 adds nothing, and clearing a register is no logic."""
    return [] if npu.array.zero_weights else [f[f"{what}_used"] > const(k, width(f[f"{what}_used"]))]


def _all(flag: Signal, w: int) -> Signal:
    """``flag`` in each of ``w`` bits."""
    return flag if w == 1 else Repeat(flag, w)


def _words(b: Block, npu: Npu, f: Fields, columns: list[Signal]) -> list[Signal]:
    """The words of a window."""
    b.comment("Words of the window.")
    sizes = present(npu.former_sizes)
    lane = npu.former_granule_bits
    each = npu.array.plane_lanes
    taps = list[Signal]()
    marks = list[Signal]()
    for k, column in enumerate(columns):
        for i in range(sizes.column // sizes.granule):
            taps.append(bits(column, i * lane, lane))
            if npu.array.planes:
                marks.append(
                    b.wire(f"used_{k}_{i}", 1, all_of(*_used(npu, f, "columns", k), *_used(npu, f, "lanes", i)))
                )
    if not npu.array.planes:
        w = len(taps) * lane
        window = b.wire("window", w, side_by_side(taps))
        size = npu.array.word_bits
        parts = [bits(window, m * size, min(size, w - m * size)) for m in range(npu.former_words)]
        return [b.wire(f"word_{m}", size, resize(part, size)) for m, part in enumerate(parts)]
    words = []
    for m in range(npu.former_words):
        padded = taps[m * each : (m + 1) * each]
        padded += [const(0, lane)] * (each - len(padded))
        has_tap = marks[m * each : (m + 1) * each]
        lanes = [_plane(padded, has_tap, j, plane, npu) for plane in plane_order(npu.array.planes) for j in range(each)]
        words.append(b.wire(f"word_{m}", npu.array.word_bits, resize(side_by_side(lanes), npu.array.word_bits)))
    return words


def _plane(taps: list[Signal], marks: list[Signal], j: int, plane: int, npu: Npu) -> Signal:
    """The bit of a plane of lane ``j`` of a word; of the constant plane, which is 1 where a tap is."""
    if j >= len(marks):
        return const(0, 1)
    return marks[j] if plane == npu.array.planes else bits(taps[j], plane, 1)
