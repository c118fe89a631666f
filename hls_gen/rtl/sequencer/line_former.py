"""Line former, in front of a tuple memory; the module's text, `CONTRACT`, says what it does."""

from functools import reduce
from itertools import groupby, product
from operator import or_
from typing import NamedTuple

from veriloggen import Cat, Repeat

from bitloom.hls_gen.design.memories.line_former import held_words, line_fields
from bitloom.hls_gen.design.npu import NpuSequencer
from bitloom.hls_gen.design.widths import LAYER_BITS, bits_for
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
    width,
)
from bitloom.hls_gen.rtl.primitives.countdown import Countdown
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus, ram
from bitloom.hls_gen.rtl.primitives.stream import Stream
from bitloom.hls_gen.rtl.primitives.text import Header
from bitloom.hls_gen.rtl.results.layer_at_work import LayerAtWork

from .spec import SequencerSpec

CONTRACT = """Line former: the taps of a line of the kernel side by side, in front of a tuple memory (part of
hls_gen/rtl/sequencer/writer.py).

    in[word] --+--> position at hand --------------+--> out[taps x word], the newest position in the highest lanes
               `--> positions before: a row a word --+
                    0{values} where there is no tap

A line of the map goes through the former position by position, word by word of a position. With each position that
completes a window of the line its words leave, beside those of the positions before. Behind the map's last column the
former goes on by itself, as far as windows reach. Words of a tuple are put side by side in the same way: the tuple is
the line then. Where neither is done, each word is a line of its own, with one window of one tap. Golden twin:
Window.positions (golden/window.py); hls_gen/design/formed_lines.py.
"""
"""The header's text; ``values``: values beside the map other than 0."""
KEPT = """
Taps are also those of the lines before, whose words are kept. Words leave with each line that is the last one of
windows.

    in[word] --+--> line at hand
               `--> lines before: a row a word of a line
"""
"""Added to the header where taps are those of several lines."""
SHARED = """
With shares_lanes the words have values in their lower lanes alone, and {lines} lines share the lanes of a tap:

    tap[word] = {{..., line above, line at hand}}
"""
"""Added to the header where lines may share lanes."""
WHOLE = """
Words from the host come as wide as they leave, and pass.
"""
"""Added to the header in front of the array, where words come from the host."""


def line_former(library: Library, spec: SequencerSpec) -> Block:
    """The line former of a sequencer whose unit takes several taps in a cycle.

    Module ``array_line_former`` or ``pool_line_former``. Streams ``in`` of words of maps, and ``out`` of words of the
    tuple memory.
    """
    sequencer = spec.sequencer
    memory = spec.memory("lines")
    beat = sequencer.beat
    lines = {"lines": beat.rows} if beat.rows > 1 else {}
    lines |= {"lane_lines": beat.lane_lines} if beat.lane_lines > 1 else {}
    sizes = {"word_bits": sequencer.map_bits, "line_taps": beat.columns, **lines}
    shared = SHARED.format(lines=beat.lane_lines) * (beat.lane_lines > 1)
    values = "".join(f", or the {beside.flag} value," for beside in spec.sequencer.besides)
    text = CONTRACT.format(values=values) + KEPT * (beat.most_rows > 1) + shared + WHOLE * ("whole" in memory.widths)
    header = Header(text, rate="a word a cycle", latency="0 cycles from in to out", parameters=sizes)
    b = Block(library.name(spec.module("line_former"), spec.npu), header)
    bus = LoadBus.ports(b, library.stream_bits, [memory])
    last_layer = b.input("last_layer", LAYER_BITS, means="number of the network's last layer")
    source = Stream.input(b, "in", sequencer.widest_inlet)
    out = Stream.output(b, "out", sequencer.word_bits)

    # # #

    b.comment("The layer at work, and where in a line of its map the word at hand is.")
    lines = Countdown(b, "lines", memory.widths["lines_minus_1"])
    begins = [field.name for field in line_fields(sequencer) if field.begins]
    ends = _Ends(*(b.reg(f"{name}_ends") for name in ("tuple", "line", "layer")))
    moves = b.wire("moves")
    layer = LayerAtWork.of(b, library, bus, memory, last_layer, moves, ends.of_layer, begins=begins)
    line_done = b.wire("line_done", 1, moves & ends.of_line)
    line_begins = b.wire("line_begins", 1, any_of(layer.starts, line_done))
    lines_end = lines.advance(line_begins, layer.change, layer.next["lines_minus_1"])
    now = layer.now
    inside = b.reg("on_map")  # the position at hand is on the map
    beside_map = b.reg("beside_map", init=1)  # it is not: a register of its own for the many bits of a word
    hit = Countdown(b, "hit", memory.widths["first"])  # its last item: a window is complete with the position
    keeps = beat.most_rows > 1
    if keeps:
        line_hit = Countdown(b, "line_hit", memory.widths["first_line"])  # its last item: windows end with the line
        again = now["line_stride_minus_1"]
        line_hit.advance(line_begins, layer.change, layer.next["first_line"], again)
    complete = b.wire("complete", 1, hit.last & line_hit.last) if keeps else hit.last
    blocked = b.wire("blocked", 1, complete & ~out.ready)
    waits = b.wire("waits", 1, inside & ~source.valid)
    moves.assign(all_of(layer.loaded, ~waits, ~blocked))
    out.valid.assign(all_of(layer.loaded, ~waits, complete))
    source.ready.assign(all_of(layer.loaded, inside, ~blocked))
    word = b.reg("word", memory.widths["words_minus_1"])  # number of the word in its tuple
    onward = b.wire("word_onward", width(word), add(word, 1, width(word)))
    b.on(moves, (word, choose(ends.of_tuple, 0, onward, width(word))))
    step = b.wire("step", 1, moves & ends.of_tuple)
    last_position, steps_end = _place(b, layer, step, (inside, beside_map), hit)
    _follow(b, layer, ends, moves, onward, (last_position, steps_end), (lines.last, lines_end))
    b.comment("The positions before: whether they are on the map, and the words of each.")
    rows, columns, shares = beat
    before = [b.reg(f"before_{k}") for k in range(1, columns)]
    # with the line's last step they become 0: no line's end behind ``step``, which comes late
    b.on(step, *[(flag, all_of(after, ~last_position)) for flag, after in zip(before, [inside, *before])])
    w = sequencer.map_bits
    words = [bits(source.data, 0, w)]
    above = []
    if keeps:
        kept = [now["shares_lanes"]] if rows == 1 else []
        line = line_done, ends.of_line, lines.last
        above, words = _lines_before(b, library, sequencer, moves, all_of(inside, *kept), line, words[0], now)
    places = [words]  # of each position, the one at hand first, the words of its lines, the line at hand first
    if columns > 1:
        places += _positions_before(b, library, sequencer, moves, word, words)
    used = [~beside_map, *(flag & bits(now["taps_before"], k, 1) for k, flag in enumerate(before))]
    there = [flag & bits(now["lines_before"], i, 1) for i, flag in enumerate(above)]  # of each line before
    if shares > 1:
        of_lines = [const(1, 1), *there]
        there = [
            b.wire(f"part_{n}_there", 1, choose(now["shares_lanes"], flag, of_lines[n // shares], 1))
            for n, flag in enumerate(there, 1)
        ]
    taps = []
    part = w // shares
    beside = _beside(spec, now, part)
    for i, k in product(range(rows), range(columns)):
        flags = [all_of(used[k], *there[max(0, n - 1) : n]) for n in range(i * shares, (i + 1) * shares)]
        tap = [choose(flag, bits(places[k][i], n * part, part), beside, part) for n, flag in enumerate(flags)]
        taps.append(b.wire(f"tap_{len(taps)}", w, side_by_side(tap)))
    formed = side_by_side(taps[::-1])
    out.data.assign(choose(now["whole"], source.data, formed, sequencer.word_bits) if "whole" in now else formed)
    return b


class _Ends(NamedTuple):
    """Registers: whether the tuple, the line and the layer end with the word at hand. Whether the former moves comes
    last."""

    of_tuple: Signal
    of_line: Signal
    of_layer: Signal


def _follow(
    b: Block,
    layer: LayerAtWork,
    ends: _Ends,
    moves: Signal,
    onward: Signal,
    position: tuple[Signal, Signal],
    line: tuple[Signal, Signal],
) -> None:
    """Let ``ends`` follow as the former ``moves``, or a layer starts. ``onward``: number of the word after the word at
    hand, in its tuple. ``position``, ``line``: whether that at hand is the last one, and whether the next one is."""
    starts = layer.starts
    last_word = layer.now["words_minus_1"]
    words_end = choose(ends.of_tuple, eq(last_word, 0), eq(onward, last_word), 1)
    words_end = b.wire("tuple_ends_next", 1, choose(layer.change, eq(layer.next["words_minus_1"], 0), words_end, 1))
    line_ends = words_end & choose(any_of(starts, ends.of_tuple), *position[::-1], 1)
    line_ends = b.wire("line_ends_next", 1, line_ends)
    layer_ends = line_ends & choose(any_of(starts, ends.of_line), *line[::-1], 1)
    b.on(b.wire("begins_word", 1, any_of(starts, moves)), *zip(ends, (words_end, line_ends, layer_ends)))


def _place(
    b: Block, layer: LayerAtWork, step: Signal, at: tuple[Signal, Signal], hit: Countdown
) -> tuple[Signal, Signal]:
    """Where in its line the position at hand is; returns a register that says whether it is the last one, and what this
    register becomes as the position is done, or a layer begins. ``step``: a position is done. ``at``: registers that
    say whether the position is on the map, and whether it is not."""
    inside, beside_map = at

    def first(name: str) -> Signal:
        """A field of the layer of the line that begins."""
        w = width(layer.now[name])
        return b.wire(f"{name}_begin", w, choose(layer.change, layer.next[name], layer.now[name], w))

    steps = Countdown(b, "steps", width(layer.now["steps_minus_1"]))
    moves = any_of(layer.starts, step)
    change = any_of(~layer.loaded, steps.last)
    last = steps.advance(moves, change, first("steps_minus_1"))
    positions = Countdown(b, "positions", width(layer.now["positions_minus_1"]))
    positions.advance(moves, change, first("positions_minus_1"))
    hit.advance(moves, change, first("first"), layer.now["stride_minus_1"])
    on_map = b.wire("next_on_map", 1, any_of(change, inside & ~positions.last))
    b.on(moves, (inside, on_map), (beside_map, ~on_map))
    return steps.last, last


def _lines_before(
    b: Block,
    library: Library,
    sequencer: NpuSequencer,
    moves: Signal,
    kept: Signal,
    line: tuple[Signal, Signal, Signal],
    word: Signal,
    now: dict[str, Signal],
) -> tuple[list[Signal], list[Signal]]:
    """The lines before, the latest first: whether they are on the map; and the words at the place of the word at hand,
    this word first: of each line, or of several lines that share lanes.

    The former goes on behind the word as it ``moves``. Words that are ``kept`` are stored for the lines below.
    ``line``: the line is done now; the word is the line's last one; the line is the map's last one. The layer's row is
    ``now``."""
    b.comment("The lines before: whether they are on the map, and the words of each.")
    rows, _, shares = sequencer.beat
    count = rows * shares - 1
    w = sequencer.map_bits
    line_done, line_ends, last_line = line
    above = [b.reg(f"above_{i + 1}") for i in range(count)]
    b.on(
        line_done,
        *[(flag, all_of(*before, ~last_line)) for flag, before in zip(above, [[], *([flag] for flag in above)])],
    )
    bits_of_row, depth = held_words(sequencer)["lines_before"]
    place = b.reg("place", bits_for(depth - 1))  # number of the word in its line
    onward = choose(line_ends, 0, add(place, 1, width(place)), width(place))
    b.on(moves & any_of(kept, line_ends), (place, onward))
    taken = b.wire("taken", 1, moves & kept)
    held = b.wire("held_lines", bits_of_row)
    size = rows * w
    lines = Cat(bits(held, 0, size - w), word) if rows > 1 else word
    if shares > 1:
        lines = choose(now["shares_lanes"], Cat(held, bits(word, 0, w // shares)), lines, size)
    lines = b.wire("lines_at_place", size, lines)
    b.instance(
        ram(library, bits_of_row, depth, latency=0),
        "lines_before",
        write=taken,
        write_row=place,
        write_data=bits(lines, 0, bits_of_row),
        read_row=place,
        read_data=held,
    )
    return above, [bits(lines, i * w, w) for i in range(rows)]


def _positions_before(
    b: Block, library: Library, sequencer: NpuSequencer, moves: Signal, word: Signal, words: list[Signal]
) -> list[list[Signal]]:
    """The words of the positions before, the latest first, those of each position as those of the one at hand."""
    count = sequencer.beat.columns - 1
    w = sequencer.map_bits
    held = b.wire("held", count * len(words) * w)
    names = [f"word_before_{k + 1}" + f"_{i}" * (i > 0) for k in range(count) for i in range(len(words))]
    flat = [b.wire(name, w, bits(held, k * w, w)) for k, name in enumerate(names)]
    b.instance(
        ram(library, *held_words(sequencer)["words_before"], latency=0),
        "words_before",
        write=moves,
        write_row=word,
        write_data=side_by_side([*words, *flat][: len(flat)]),
        read_row=word,
        read_data=held,
    )
    return [flat[k : k + len(words)] for k in range(0, len(flat), len(words))]


def _beside(spec: SequencerSpec, now: dict[str, Signal], w: int) -> Signal:
    """Lanes of ``w`` bits of a position beside the map: in each lane the value whose flag is 1, else 0."""
    feature = spec.npu.array.feature_bits
    values = [_where(now[beside.flag], beside.value(feature), feature) for beside in spec.sequencer.besides]
    return Repeat(reduce(or_, values), w // feature) if values else const(0, w)


def _where(flag: Signal, value: int, w: int) -> Signal:
    """The value in w bits where the flag is 1, else 0."""
    runs = [(bit, len(list(run))) for bit, run in groupby(value >> k & 1 for k in reversed(range(w)))]
    return Cat(*(Repeat(flag, count) if bit and count > 1 else flag if bit else const(0, count) for bit, count in runs))
