"""Line former: the taps of a line of the kernel side by side, in front of the pool unit's tuple memory.

    in[PFP] --+--> position at hand --------------+--> out[taps x PFP], the newest position in the highest lanes
              `--> positions before: a row a word --+
                   0, or the lowest value, where there is no tap

A line of the map goes through the former position by position, word by word of a tuple. With each position that
completes a window of the line its words leave, beside those of the positions before. Behind the map's last column the
former goes on by itself, as far as windows reach. Where a layer's taps are not formed, each tuple is a line of its own,
with one window of one tap. Golden twin: Window.positions (golden/window.py); hls_gen/design/formed_lines.py.
"""

from veriloggen import Cat, Repeat

from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.widths import LAYER_BITS
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


def line_former(library: Library, npu: Npu) -> Block:
    """The line former of an NPU whose pool unit takes several taps in a cycle.

    Module ``line_former``. Streams ``in`` of words of the pool unit, and ``out`` of words of its tuple memory.
    """
    sizes = npu.values("pfp", "pool_line_taps")
    header = Header(__doc__ or "", rate="a word a cycle", latency="0 cycles from in to out", parameters=sizes)
    b = Block(library.name("line_former", npu), header)
    memory = memory_of(npu, "pool_lines")
    bus = LoadBus.ports(b, library.stream_bits, [memory])
    last_layer = b.input("last_layer", LAYER_BITS, means="number of the network's last layer")
    source = Stream.input(b, "in", npu.pool_word_bits)
    out = Stream.output(b, "out", npu.pool_line_bits)

    # # #

    b.comment("The layer at work, and where in a line of its map the word at hand is.")
    line_done = b.wire("line_done")
    lines = Countdown(b, "lines", memory.widths["lines_minus_1"])
    layer = LayerAtWork.of(b, library, bus, memory, last_layer, b.wire("layer_end", 1, line_done & lines.last))
    lines.advance(line_done, layer.begin, layer.next["lines_minus_1"])
    now = layer.now
    inside = b.reg("on_map")  # the position at hand is on the map
    hit = Countdown(b, "hit", memory.widths["first"])  # its last item: a window is complete with the position
    blocked = b.wire("blocked", 1, hit.last & ~out.ready)
    waits = b.wire("waits", 1, inside & ~source.valid)
    moves = b.wire("moves", 1, all_of(layer.loaded, ~waits, ~blocked))
    out.valid.assign(all_of(layer.loaded, ~waits, hit.last))
    source.ready.assign(all_of(layer.loaded, inside, ~blocked))
    word = b.reg("word", memory.widths["words_minus_1"])  # number of the word in its tuple
    tuple_last = b.wire("tuple_last", 1, eq(word, now["words_minus_1"]))
    b.on(moves, (word, choose(tuple_last, 0, add(word, 1, width(word)), width(word))))
    step = b.wire("step", 1, moves & tuple_last)
    _place(b, layer, (step, line_done), inside, hit)
    b.comment("The positions before: whether they are on the map, and the words of each.")
    count = present(npu.pool_unit).line_taps - 1
    before = [b.reg(f"before_{k + 1}") for k in range(count)]
    b.on(step, *zip(before, [inside, *before]))
    b.on(line_done, *[(flag, 0) for flag in before])
    w = npu.pool_word_bits
    held = b.wire("held", count * w)
    words = [source.data, *(b.wire(f"word_before_{k + 1}", w, bits(held, k * w, w)) for k in range(count))]
    b.instance(
        ram(library, count * w, 1 << width(word), latency=0),
        "words_before",
        write=moves,
        write_row=word,
        write_data=side_by_side(words[:count]),
        read_row=word,
        read_data=held,
    )
    beside = _beside(npu, now)
    used = [inside, *(flag & bits(now["taps_before"], k, 1) for k, flag in enumerate(before))]
    taps = [b.wire(f"tap_{k}", w, choose(flag, data, beside, w)) for k, (data, flag) in enumerate(zip(words, used))]
    out.data.assign(side_by_side(taps[::-1]))
    return b


def _place(b: Block, layer: LayerAtWork, moves: tuple[Signal, Signal], inside: Signal, hit: Countdown) -> None:
    """Where in its line the position at hand is. ``moves``: a position is done; the line is, which is assigned here."""
    step, line_done = moves
    line_begins = b.wire("line_begins", 1, any_of(layer.begin, line_done))

    def first(name: str) -> Signal:
        """A field of the layer of the line that begins."""
        w = width(layer.now[name])
        return b.wire(f"{name}_begin", w, choose(layer.begin, layer.next[name], layer.now[name], w))

    steps = Countdown(b, "steps", width(layer.now["steps_minus_1"]))
    steps.advance(step, line_begins, first("steps_minus_1"))
    positions = Countdown(b, "positions", width(layer.now["positions_minus_1"]))
    positions.advance(step, line_begins, first("positions_minus_1"))
    hit.advance(step, line_begins, first("first"), layer.now["stride_minus_1"])
    line_done.assign(step & steps.last)
    b.on(step & positions.last, (inside, 0))
    b.on(line_begins, (inside, 1))


def _beside(npu: Npu, now: dict[str, Signal]) -> Signal:
    """The word of a position beside the map: 0 where values are added, and of bits, for which 0 is the lower one."""
    if "lowest" not in now:
        return const(0, npu.pool_word_bits)
    lane = Cat(now["lowest"], const(0, npu.array.feature_bits - 1))
    return Repeat(lane, present(npu.pool_unit).pfp)
