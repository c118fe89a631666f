"""Issuer: turns taps into beats, as words arrive and room allows (part of hls_gen/rtl/sequencer/sequencer.py).

    tap --> tap at work --> beat: a word, a cycle, if the word has arrived and the result's unit has room
    writes, claims --> arrived: words written and not claimed yet
    writes, words given back --> free: words that may be overwritten

Writer and reader meet in these two counts alone. A tuple is given back when a new one is claimed so much later that no
window reads it any more (B6, claims.py).

With several accumulators a PE, a word may be used by all kernel groups one after another before the next word comes
(dataflow input_stationary, spec A10): the inner groups. Each pass then takes as many accumulators, in a ring, from its
first beats on; ``slot`` is the one at work, and ``room`` says whether one is free.
"""

from dataclasses import dataclass, fields

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import COUNT_BITS
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

from .claims import by_tuples, by_words
from .spec import SequencerSpec
from .tap import Tap
from .weights import weights_done
from .writer import Writer


@dataclass(frozen=True)
class TapAtWork:
    """What registers keep of the tap that is being turned into beats; fields as in Tap, but for ``address``.

    Attributes
    ----------
    address : Signal
        Place of the word of the present beat.
    """

    skip: Signal
    claim: Signal
    last: Signal
    layer_end: Signal
    address: Signal
    words_minus_1: Signal
    hold_words: Signal

    @classmethod
    def registers(cls, b: Block, tap: Tap) -> "TapAtWork":
        """Registers ``at_...`` in ``b``, which take ``tap`` with its step."""
        names = ("skip", "claim", "last", "layer_end", "address", "words_minus_1", "hold_words")
        return cls(**{name: b.reg(f"at_{name}", width(getattr(tap, name)), init=None) for name in names})


@dataclass(frozen=True)
class InnerGroups:
    """Kernel groups that use a word one after another (dataflow input_stationary).

    Attributes
    ----------
    group : Signal
        The one at work.
    limit : Signal
        The last one.
    base : Signal
        First accumulator of the pass.
    last : Signal
        The one at work is the last one, so that the next beat takes the next word.
    """

    group: Signal
    limit: Signal
    base: Signal
    last: Signal

    @classmethod
    def registers(cls, b: Block, npu: Npu) -> "InnerGroups":
        """The registers in ``b``."""
        group, limit = b.reg("inner_group", npu.slot_bits, init=None), b.reg("inner_limit", npu.slot_bits, init=None)
        return cls(group, limit, b.reg("slot_base", npu.slot_bits), b.reg("inner_last", init=None))


@dataclass(frozen=True)
class Issue:
    """The tap at work and what happens to it in this cycle.

    Attributes
    ----------
    busy : Signal
        There is a tap at work.
    at : TapAtWork
        That tap.
    first_tap : Signal
        It is the first one with beats of its pass.
    word_first, word_last : Signal
        The word at hand is the tuple's first, its last. ``word_first`` is None in the pool's sequencer.
    starting : Signal
        The next tap with beats will be the first of its pass.
    beat : Signal
        A word is read and used in this cycle.
    used : Signal
        It is used for the last time: the next beat takes the next word.
    done : Signal
        The tap's last beat, or its only cycle if it is a skip.
    inner : InnerGroups or None
        Groups that share a word. None with one accumulator a PE and in the pool's sequencer.
    """

    busy: Signal
    at: TapAtWork
    first_tap: Signal
    word_first: Signal | None
    word_last: Signal
    starting: Signal
    beat: Signal
    used: Signal
    done: Signal
    inner: InnerGroups | None


@dataclass(frozen=True)
class Counts:
    """The two counts of words in which writer and reader meet, in two's complement.

    Attributes
    ----------
    arrived : Signal
        Words written and not claimed. Below 0 while words are claimed that are not there.
    arrived_minus_1 : Signal
        Less 1: the two signs say whether a word is there, without a comparison.
    free : Signal
        Words that may be overwritten.
    """

    arrived: Signal
    arrived_minus_1: Signal
    free: Signal

    @classmethod
    def registers(cls, b: Block, spec: SequencerSpec) -> "Counts":
        """The registers in ``b``; the ring is empty after reset."""
        w = spec.count_bits
        arrived, free = b.reg("arrived", w), b.reg("free", w, init=spec.ring_words)
        return cls(arrived, b.reg("arrived_minus_1", w, init=-1), free)


def issuer(b: Block, library: Library, spec: SequencerSpec, tap: Tap, source: Writer, room: Signal) -> None:
    """The issuer and the tuple memory inside ``b``; ``room``: the unit that takes results has room for another."""
    busy = b.reg("busy")
    at = TapAtWork.registers(b, tap)
    left = b.reg("left", spec.address_bits, init=None)  # words of the tuple after this one
    counts = Counts.registers(b, spec)
    issue, there, clear = _issue(b, spec, tap, (busy, at, left, counts), room)
    _take(b, tap, issue, left)
    _count(b, spec, tap, issue, source.write, counts)
    free_sign = bits(counts.free, spec.count_bits - 1, 1)
    source.has_free.assign(all_of(~free_sign, nonzero(counts.free)))
    _tuple_memory(b, library, spec, issue, source)
    b.output("last", 1, at.last & issue.word_last if not spec.pool else at.last)
    if spec.pool:
        _pool_beat(b, spec, tap, issue)
        return
    _array_beat(b, spec.npu, tap, issue)
    # where cycles go: every cycle is one of beat and these
    waiting = b.wire("waiting", 1, busy & ~at.skip)
    b.output("wait_input", 1, waiting & ~there)
    b.output("wait_room", 1, all_of(waiting, there, ~clear))
    no_tap = ~waiting
    if spec.npu.stream_weights:
        no_tap = weights_done(b, tap, issue.done & at.layer_end, busy, waiting)
    b.output("wait_table", 1, no_tap)


def _issue(
    b: Block, spec: SequencerSpec, tap: Tap, work: tuple[Signal, TapAtWork, Signal, Counts], room: Signal
) -> tuple[Issue, Signal, Signal]:
    """(what happens in this cycle, has the word at hand arrived, is there room for what it ends)."""
    busy, at, left, counts = work
    sign = spec.count_bits - 1
    first_tap = b.reg("first_tap", init=None)
    inner = None if spec.pool or spec.npu.accumulators == 1 else InnerGroups.registers(b, spec.npu)
    word_last = b.reg("word_last", init=None)  # left is 0: a register, since the longest path begins here
    # a tap that claims uses a word that is not claimed yet; any other needs all claimed words to be there
    missing = choose(at.claim, bits(counts.arrived_minus_1, sign, 1), bits(counts.arrived, sign, 1), 1)
    there = b.wire("there", 1, ~missing)
    word_first = None if spec.pool else b.reg("word_first", init=None)
    if spec.pool:
        needs_room = at.last
    elif inner is None:
        needs_room = at.last & word_last
    else:
        needs_room = first_tap & word_first
    clear = b.wire("clear", 1, any_of(room, ~needs_room))
    beat = b.output("beat", 1, all_of(busy, ~at.skip, there, clear))
    used = beat if inner is None else b.wire("word_used", 1, beat & inner.last)
    done = b.wire("tap_done", 1, all_of(busy, any_of(at.skip, used & word_last)))
    may_step = tap.valid & any_of(~busy, done)
    tap.step.assign(may_step if tap.held is None else may_step & ~tap.held)
    b.on(used, (left, sub(left, 1, width(left))), (word_last, eq(left, 1)))
    b.on(used, (at.address, add(at.address, 1, width(at.address))))
    b.on(done, (busy, 0))
    starting = b.reg("starting", init=1)
    return Issue(busy, at, first_tap, word_first, word_last, starting, beat, used, done, inner), there, clear


def _take(b: Block, tap: Tap, issue: Issue, left: Signal) -> None:
    """What the registers become as the tap at hand is taken to work."""
    at = issue.at
    kept = [(getattr(at, f.name), getattr(tap, f.name)) for f in fields(at)]
    b.on(tap.step, (issue.busy, 1), (left, tap.words_minus_1), (issue.word_last, eq(tap.words_minus_1, 0)), *kept)
    starting = choose(tap.last, 1, issue.starting & tap.skip, 1)
    b.on(tap.step, (issue.starting, starting), (issue.first_tap, issue.starting))


def _count(b: Block, spec: SequencerSpec, tap: Tap, issue: Issue, write: Signal, counts: Counts) -> None:
    """Keep ``counts``: words written, claimed and given back."""
    at, count = issue.at, spec.count_bits
    skips = all_of(issue.busy, at.skip, at.claim)  # a skip claims its tuple at once
    skipped = b.wire("skipped", count, choose(skips, add(at.words_minus_1, 1, count), 0, count))
    claimed = resize(issue.used & at.claim, count) + skipped
    claims = by_words(b, tap, count) if spec.npu.raster else by_tuples(b, tap, count)
    if claims.ahead is not None:
        claimed = claimed + claims.ahead
    for value in (counts.arrived, counts.arrived_minus_1):
        b.on(None, (value, add(value, write, count) - claimed))
    ended = b.wire("ended", count, choose(issue.done & at.layer_end, at.hold_words, 0, count))
    returned = b.reg("returned", count)  # a cycle late, so that no path leads from the beat's conditions to the sum
    free = counts.free
    b.on(None, (returned, claims.given + ended), (free, free - resize(write, count) + returned))


def _tuple_memory(b: Block, library: Library, spec: SequencerSpec, issue: Issue, source: Writer) -> None:
    """The ring of words: written as they come, read with each beat (output ``word``, a cycle later)."""
    write_row = b.reg("write_row", spec.address_bits)
    b.on(source.write, (write_row, add(write_row, 1, spec.address_bits)))
    word = b.output("word", spec.word_bits)
    b.instance(
        library.get(ram, spec.word_bits, spec.ring_words, latency=1),
        "tuple_memory",
        write=source.write,
        write_row=write_row,
        write_data=source.word,
        read=issue.beat,
        read_row=issue.at.address,
        read_data=word,
    )


def _pool_beat(b: Block, spec: SequencerSpec, tap: Tap, issue: Issue) -> None:
    """What the pool unit is told with a beat."""
    step = tap.step
    b.output("first", 1, issue.first_tap)
    b.output("tuple_last", 1, issue.word_last)
    b.output("map_last", 1, issue.at.layer_end)
    for name, value in (("target", tap.target), ("average", tap.average)):
        if value is not None:
            flag = b.reg(f"at_{name}", width(value), init=None)
            b.on(step, (flag, value))
            b.output(name, width(value), flag)
    if spec.npu.engine == "integer":
        taps = b.output_reg("taps", COUNT_BITS, init=None)  # of this window so far, this one included
        counted = b.wire("counted", COUNT_BITS, add(choose(issue.starting, 0, taps, COUNT_BITS), 1, COUNT_BITS))
        b.on(step & ~tap.skip, (taps, counted))
    index = b.output_reg("index", spec.address_bits, init=None)  # word of the tuple
    b.on(issue.beat, (index, add(index, 1, width(index))))
    b.on(step, (index, 0))


def _array_beat(b: Block, npu: Npu, tap: Tap, issue: Issue) -> None:
    """What the array is told with a beat: first of its pass, kernel row, offset, accumulator."""
    step, beat, used, inner, word_first = tap.step, issue.beat, issue.used, issue.inner, issue.word_first
    b.on(used, (word_first, 0))
    b.on(step, (word_first, 1))
    b.output("first", 1, issue.first_tap & word_first)
    row = b.reg("at_row", width(tap.row), init=None)
    b.on(beat, (row, add(row, 1, width(row))))
    b.on(step, (row, tap.row))
    b.output("kernel_row", width(row), row)
    if tap.offset is not None:
        once = beat if inner is None else b.wire("offset_beat", 1, used & word_first)
        _offsets(b, npu.acc_bits, tap, once, issue)
    if inner is not None:
        onward = b.wire("inner_onward", npu.slot_bits, add(inner.group, 1, npu.slot_bits))
        ends = choose(inner.last, eq(inner.limit, 0), eq(onward, inner.limit), 1)
        last = tap.inner_groups_minus_1
        b.on(step, (inner.limit, last), (inner.group, 0), (inner.last, eq(last, 0)))
        b.on(beat & ~issue.done, (inner.group, choose(inner.last, 0, onward, npu.slot_bits)), (inner.last, ends))
        passed = b.wire("pass_done", 1, issue.done & issue.at.last)
        b.on(passed, (inner.base, inner.base + inner.limit + const(1, npu.slot_bits)))
        b.output("slot", npu.slot_bits, inner.base + inner.group)


def _offsets(b: Block, w: int, tap: Tap, beat: Signal, issue: Issue) -> None:
    """Output ``offset``: the taps' offsets of this pass so far, added up once a tap."""
    held, total = b.reg("at_offset", w, init=None), b.reg("offset_total", w, init=None)
    b.on(tap.step, (held, tap.offset))
    begun = choose(issue.first_tap, 0, total, w) + held
    now = b.wire("offset_now", w, choose(issue.word_first, begun, total, w))
    b.on(beat, (total, now))
    b.output("offset", w, now)
