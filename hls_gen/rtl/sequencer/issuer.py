"""Issuer: turns taps into beats, as words arrive and room allows (part of hls_gen/rtl/sequencer/sequencer.py).

Writer and reader meet in two counts: ``arrived`` (words written and not yet claimed by a new tap) and ``free`` (words
that may be overwritten). A tuple is given back when the reader arrives at the new tuple ``hold`` further on (B6).

With several accumulators a PE, a word may be used by all kernel groups in turn before the next one (order ``input``,
spec A10): ``inner`` groups. Each pass takes as many accumulators, in a ring, from its first beats on; ``slot`` is the
one at work, and ``room`` says whether one is free.
"""

from dataclasses import dataclass

from bitloom.hls_gen.design.npu import COUNT_BITS, Npu
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
    nonzero,
    resize,
    sub,
    width,
)
from bitloom.hls_gen.rtl.primitives.memory import Library, ram
from bitloom.hls_gen.rtl.shell.streamed_weights import layer_ends

from .kind import Kind
from .raster import claims
from .writer import Writer


def issuer(
    b: Block, library: Library, npu: Npu, kind: Kind, tap: dict[str, Signal], writer: Writer, room: Signal, ring: int
) -> None:
    """Turns the tap at hand into beats, one a word, as words arrive and room allows."""
    count = ring + 2
    busy = b.reg("busy")
    held = {
        name: b.reg(f"at_{name}", width(tap[name]), init=None)
        for name in ("skip", "claim", "last", "layer_end", "address", "words_minus_1", "tail")
    }
    left = b.reg("left", ring, init=None)
    arrived, free = b.reg("arrived", count), b.reg("free", count, init=kind.words(npu))
    less = b.reg("arrived_minus_1", count, init=-1)  # its sign says whether a word is there, without a wide comparison
    first_tap = b.reg("first_tap", init=None)  # of its pass
    inner = None if kind.pool or npu.accumulators == 1 else _inner_groups(b, npu, tap)
    word_last = b.wire("word_last", 1, eq(left, 0))
    there = b.wire("there", 1, ~choose(held["claim"], bits(less, count - 1, 1), bits(arrived, count - 1, 1), 1))
    word_first = None if kind.pool else b.reg("word_first", init=None)
    needs_room = held["last"] if kind.pool else held["last"] & word_last if inner is None else first_tap & word_first
    clear = b.wire("clear", 1, any_of(room, ~needs_room))
    beat = b.output("beat", 1)
    beat.assign(all_of(busy, ~held["skip"], there, clear))
    used = beat if inner is None else b.wire("word_used", 1, beat & inner.last)  # the next beat takes the next word
    done = b.wire("tap_done", 1, all_of(busy, any_of(held["skip"], used & word_last)))
    may_step = tap["have"] & any_of(~busy, done)
    tap["step"].assign(may_step & ~tap["held"] if "held" in tap else may_step)
    step = tap["step"]
    b.on(used, (left, sub(left, 1, ring)), (held["address"], add(held["address"], 1, ring)))
    b.on(done, (busy, 0))
    b.on(step, (busy, 1), (left, tap["words_minus_1"]), *[(held[name], tap[name]) for name in held])
    starting = b.reg("starting", init=1)  # the next tap with beats is the first of its pass
    b.on(step, (starting, choose(tap["last"], 1, starting & tap["skip"], 1)), (first_tap, starting))

    issue = Issue(busy, held, first_tap, word_first, word_last, starting, beat, used, done, inner)
    _counts(b, npu, tap, issue, writer.write, (arrived, less), free, ring)
    writer.has_free.assign(all_of(~bits(free, count - 1, 1), nonzero(free)))
    _tuple_memory(b, library, npu, kind, issue, writer, ring)
    b.output("last", 1, held["last"] & word_last if not kind.pool else held["last"])
    if kind.pool:
        _with_pool_beat(b, npu, tap, issue, ring)
        return
    _with_array_beat(b, npu, tap, issue)

    # where cycles go: every cycle is one of beat and these
    waiting = b.wire("waiting", 1, busy & ~held["skip"])
    b.output("wait_input", 1, waiting & ~there)
    b.output("wait_room", 1, all_of(waiting, there, ~clear))
    no_tap = ~waiting
    if npu.stream_weights:
        no_tap = layer_ends(b, tap, done & held["layer_end"], busy, waiting)
    b.output("wait_table", 1, no_tap)


@dataclass(frozen=True)
class Inner:
    """Kernel groups that use a word in turn: the one at work, the number of the last, the pass's first accumulator."""

    group: Signal
    limit: Signal
    base: Signal
    last: Signal


@dataclass(frozen=True)
class Issue:
    """The tap at work and what happens to it in this cycle."""

    busy: Signal
    held: dict[str, Signal]
    """What is kept of the tap."""
    first_tap: Signal
    word_first: Signal | None
    word_last: Signal
    starting: Signal
    beat: Signal
    used: Signal
    """The beat is the word's last one."""
    done: Signal
    """The tap's last beat, or its only cycle."""
    inner: Inner | None


def _counts(
    b: Block, npu: Npu, tap: dict[str, Signal], issue: Issue, write: Signal,
    arrived: tuple[Signal, Signal], free: Signal, ring: int,
) -> None:  # fmt: skip
    """Keeps ``arrived`` (and what is one less) and ``free``, in words."""
    held, done, count = issue.held, issue.done, ring + 2
    skipped = b.wire(
        "skipped",
        count,
        choose(all_of(issue.busy, held["skip"], held["claim"]), add(held["words_minus_1"], 1, count), 0, count),
    )
    claimed = resize(issue.used & held["claim"], count) + skipped
    if npu.raster:
        given, ahead = claims(b, tap, ring)
        claimed = claimed + ahead
    else:
        given = _given(b, tap, ring)
    for value in arrived:
        b.on(None, (value, add(value, write, count) - claimed))
    ended = b.wire("ended", count, choose(done & held["layer_end"], held["tail"], 0, count))
    returned = b.reg("returned", count)  # a cycle late, so that no path leads from the beat's conditions to the sum
    b.on(None, (returned, given + ended), (free, free - resize(write, count) + returned))


def _tuple_memory(b: Block, library: Library, npu: Npu, kind: Kind, issue: Issue, writer: Writer, ring: int) -> None:
    """The ring of words: written as they come, read with each beat (output ``word``, a cycle later)."""
    write, w = writer.write, kind.width(npu)
    write_row = b.reg("write_row", ring)
    b.on(write, (write_row, add(write_row, 1, ring)))
    word = b.output("word", w)
    b.instance(
        library.get(ram, w, kind.words(npu), latency=1),
        "tuple_memory",
        write=write,
        write_row=write_row,
        write_data=writer.word,
        read=issue.beat,
        read_row=issue.held["address"],
        read_data=word,
    )


def _with_pool_beat(b: Block, npu: Npu, tap: dict[str, Signal], issue: Issue, ring: int) -> None:
    """What the pool unit is told with a beat."""
    step = tap["step"]
    b.output("first", 1, issue.first_tap)
    b.output("tuple_last", 1, issue.word_last)
    b.output("map_last", 1, issue.held["layer_end"])
    for name in ("target", "average"):
        if name in tap:
            flag = b.reg(f"at_{name}", width(tap[name]), init=None)
            b.on(step, (flag, tap[name]))
            b.output(name, width(tap[name]), flag)
    if npu.engine == "integer":
        taps = b.output_reg("taps", COUNT_BITS, init=None)  # of this window so far, this one included
        counted = b.wire("counted", COUNT_BITS, add(choose(issue.starting, 0, taps, COUNT_BITS), 1, COUNT_BITS))
        b.on(step & ~tap["skip"], (taps, counted))
    index = b.output_reg("index", ring, init=None)  # word of the tuple
    b.on(issue.beat, (index, add(index, 1, ring)))
    b.on(step, (index, 0))


def _with_array_beat(b: Block, npu: Npu, tap: dict[str, Signal], issue: Issue) -> None:
    """What the array is told with a beat: first of its pass, kernel row, offset, accumulator."""
    step, beat, used, inner, word_first = tap["step"], issue.beat, issue.used, issue.inner, issue.word_first
    b.on(used, (word_first, 0))
    b.on(step, (word_first, 1))
    b.output("first", 1, issue.first_tap & word_first)
    row = b.reg("at_row", width(tap["row"]), init=None)
    b.on(beat, (row, add(row, 1, width(row))))
    b.on(step, (row, tap["row"]))
    b.output("kernel_row", width(row), row)
    if npu.engine == "binary":
        once = beat if inner is None else b.wire("offset_beat", 1, used & word_first)
        _offsets(b, npu.acc_bits, tap["offset"], step, once, issue.first_tap, word_first)
    if inner is not None:
        onward = b.wire("inner_onward", npu.slot_bits, add(inner.group, 1, npu.slot_bits))
        ends = choose(inner.last, eq(inner.limit, 0), eq(onward, inner.limit), 1)
        b.on(step, (inner.limit, tap["inner"]), (inner.group, 0), (inner.last, eq(tap["inner"], 0)))
        b.on(beat & ~issue.done, (inner.group, choose(inner.last, 0, onward, npu.slot_bits)), (inner.last, ends))
        passed = b.wire("pass_done", 1, issue.done & issue.held["last"])
        b.on(passed, (inner.base, inner.base + inner.limit + const(1, npu.slot_bits)))
        b.output("slot", npu.slot_bits, inner.base + inner.group)


def _given(b: Block, tap: dict[str, Signal], ring: int) -> Signal:
    """Words given back as a tap is taken."""
    count, step = ring + 2, tap["step"]
    hold = b.reg("hold", ring + 1)  # new tuples still to come before the first is given back
    holding = b.reg("holding")  # hold is not 0
    b.on(all_of(step, tap["claim"], holding), (hold, sub(hold, 1, ring + 1)), (holding, ~eq(hold, 1)))
    b.on(tap["begin"], (hold, tap["next_hold"]), (holding, nonzero(tap["next_hold"])))
    return b.wire(
        "given", count, choose(all_of(step, tap["claim"], ~holding), add(tap["words_minus_1"], 1, count), 0, count)
    )


def _inner_groups(b: Block, npu: Npu, tap: dict[str, Signal]) -> Inner:
    group, limit = b.reg("inner_group", npu.slot_bits, init=None), b.reg("inner_limit", npu.slot_bits, init=None)
    return Inner(group, limit, b.reg("slot_base", npu.slot_bits), b.reg("inner_last", init=None))


def _offsets(
    b: Block, w: int, offset: Signal, step: Signal, beat: Signal, first_tap: Signal, word_first: Signal
) -> None:
    """Output ``offset``: the taps' offsets of this pass so far, added up once a tap."""
    held, total = b.reg("at_offset", w, init=None), b.reg("offset_total", w, init=None)
    b.on(step, (held, offset))
    begun = choose(first_tap, 0, total, w) + held
    now = b.wire("offset_now", w, choose(word_first, begun, total, w))
    b.on(beat, (total, now))
    b.output("offset", w, now)
