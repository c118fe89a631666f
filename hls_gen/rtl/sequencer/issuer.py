"""Issuer: turns taps into beats, as words arrive and room allows (part of hls_gen/rtl/sequencer/sequencer.py).

    tap --> tap at work --> beat: a word, a cycle, if the word has arrived and the result's unit has room
                       +--> words claimed and given back --> counts.py --> has_free

A tap with n words takes n beats, times the kernel groups that share a word; a skip takes one cycle and none. The next
tap follows the last beat of this one without a gap. A beat that ends a pass needs room for the pass's result; where a
PE has several accumulators (inner_groups.py), it is the first beat of a pass that needs room, for the accumulators.
"""

from dataclasses import dataclass

from veriloggen import Repeat

from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    add,
    all_of,
    any_of,
    choose,
    eq,
    resize,
    sub,
    width,
)
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header

from .beat import Beat, WaitPulses
from .counts import Claimed, Counts
from .fetch import fetched_word
from .inner_groups import InnerGroups
from .spec import SequencerSpec
from .tap import Tap


@dataclass(frozen=True, kw_only=True)
class TapAtWork:
    """Registers with the tap that is being turned into beats."""

    busy: Signal
    """There is such a tap, with beats."""
    idle: Signal
    """There is none: a register of its own for ``goes``, as many bits of a tap look at ``busy``."""
    skips: Signal
    """There is such a tap, a skip. The others mean nothing if it is neither."""
    claims_word: Signal
    """There is such a tap, with beats, and each word is claimed with its beat."""
    claims_tuple: Signal
    """There is such a tap, a skip, and it claims its tuple."""
    layer_end: Signal
    hold_words: Signal
    """layer_end, hold_words: as in tap.Tap."""
    last: Signal | None
    """The tap is the last one of its pass. None in front of the pool unit, where ``pass_last`` says so."""
    address: Signal
    """Place of the word of the next beat."""
    ends: Signal
    """The next beat is the tap's last one, or there is no tap with beats: a register of its own, since it chooses for
    many registers between the tap that follows and the next word of this tap."""
    left: Signal
    """Words of the tuple after that one."""
    word_last: Signal
    """``left`` is 0: a register of its own, since the longest path begins here."""
    pass_last: Signal
    """The word of the next beat is the last one of its pass: a register, for the same reason, and 0 where there is no
    tap with beats, so that the place of a result doesn't ask for one. In front of the pool unit it is any word of the
    pass's last tap."""
    first: Signal
    """It is the first tap with beats of its pass; in front of the array, and the word of the next beat is its first: a
    register of its own, too, where beats ask for room, and 0 where there is no tap with beats."""
    starting: Signal
    """The next tap with beats will be the first of its pass."""
    word_first: Signal | None
    """The word of the next beat is the first one of its tuple. None without offsets."""
    inner: InnerGroups | None
    """Groups that share a word. None with one accumulator a PE, and in the pool's sequencer."""

    @property
    def uses(self) -> Signal:
        """The next beat uses its word for the last time by this tap."""
        return self.busy if self.inner is None else self.busy & self.inner.last

    @classmethod
    def registers(cls, b: Block, spec: SequencerSpec, tap: Tap) -> "TapAtWork":
        """The registers in ``b``."""
        names = ("layer_end", "hold_words", "address")
        registers = {name: b.reg(f"at_{name}", width(getattr(tap, name)), init=None) for name in names}
        slot_bits = 0 if tap.inner_groups_minus_1 is None else spec.npu.array.slot_bits
        return cls(
            busy=b.reg("busy"),
            idle=b.reg("idle", init=1),
            skips=b.reg("skips"),
            claims_word=b.reg("claims_word"),
            claims_tuple=b.reg("claims_tuple"),
            last=None if spec.pool else b.reg("at_last", init=None),
            ends=b.reg("ends", init=1),
            left=b.reg("left", spec.sequencer.index_bits, init=None),
            word_last=b.reg("word_last", init=None),
            pass_last=b.reg("pass_last"),
            first=b.reg("first_tap" if spec.pool else "first_word", init=None if spec.pool else 0),
            starting=b.reg("starting", init=1),
            word_first=None if tap.offset is None else b.reg("word_first", init=None),
            inner=InnerGroups(b, slot_bits) if slot_bits else None,
            **registers,
        )


@dataclass(frozen=True, kw_only=True)
class Events:
    """The events of this cycle. Each is known with ``goes`` at the latest, a gate behind it: what registers say of the
    tap is put together first, beside ``goes``."""

    goes: Signal
    """A beat, if there is a tap with beats at work; or there is none. It comes last in the cycle."""
    taken: Signal
    """The tap at hand is taken to work."""
    ready: Signal
    """The tap at hand would be taken, if there is one. Registers that describe the tap at work change with ``ready``:
    where there is no tap they mean nothing, and the longest paths lead to them."""
    beat: Signal
    """A word is read and used."""
    used: Signal
    """The word is used for the last time by this tap."""
    done: Signal
    """The tap's last beat, or its only cycle if it is a skip."""
    moves: Signal
    """As ``goes``, of a word's last use."""


def issuer(library: Library, spec: SequencerSpec) -> Block:
    """The module.

    It takes ``tap_*`` (tap.Tap). It gives beats (beat.Beat), ``read_row`` (place of the beat's word in the tuple
    memory) and waits (beat.WaitPulses). ``write``: a word is written; ``has_free``: one may be written. ``room``: the
    unit that takes results has room for another.
    """
    header = Header(
        _contract(spec), rate="one beat a cycle", latency="1 cycle from a tap, or from a word written, to a beat"
    )
    b = Block(library.name(spec.module("issuer"), spec.npu), header)
    tap = Tap.input(b, spec)
    write = b.input("write", means="a word is written to the tuple memory at this clock edge")
    room = b.input("room", means="the unit behind the beats has room for another result")
    beat = Beat.output(b, spec)
    waits = WaitPulses.output(b, spec)
    read_row = b.output("read_row", spec.sequencer.address_bits, means="place of the beat's word in the tuple memory")
    has_free = b.output("has_free", means="a word of the tuple memory may be overwritten; 0 in the first cycle")

    # # #

    several = not spec.pool and spec.npu.array.accumulators > 1
    room_at = (
        "first beat of a pass needs room for the pass's results" if several else "last beat of a result needs room"
    )
    b.comment(f"A beat needs its word; the {room_at}.")
    counts = Counts.registers(b, spec)
    work = TapAtWork.registers(b, spec, tap)
    there = b.wire("there", 1, counts.there(work.claims_word))
    # One accumulator: a window needs a place when its results leave the array. Several: the window takes its place with
    # its first beat, since all kernel groups are at work at a time.
    needs_room = work.pass_last if work.inner is None else work.first
    clear = b.wire("clear", 1, any_of(room, ~needs_room))
    ready = fetched_word(b, all_of(work.busy, there), waits) if spec.one_memory else there
    # ``idle`` stands beside what a beat needs, and not in a gate behind that: much follows, and this is known late
    goes = b.wire("goes", 1, any_of(work.idle, ready & clear))
    beat.assign(beat=work.busy & goes)
    used = beat.beat if work.inner is None else goes & work.uses
    done = b.wire("tap_done", 1, any_of(work.skips, goes & (work.uses & work.word_last)))
    tap.ready.assign(goes & work.ends)
    if spec.one_memory:
        b.on(used, (ready, 0))
    moves = goes if work.inner is None else b.wire("moves", 1, goes & any_of(~work.busy, work.inner.last))
    taken = b.wire("tap_taken", 1, goes & (tap.valid & work.ends))
    events = Events(goes=goes, taken=taken, ready=tap.ready, beat=beat.beat, used=used, done=done, moves=moves)
    _advance(b, spec, tap, work, events)
    _count(b, tap, work, events, counts, write)
    read_row.assign(work.address)
    has_free.assign(~counts.full)
    (_pool_beat if spec.pool else _array_beat)(b, tap, work, events, beat)
    if not spec.pool:
        # beat & needs_room, but not by way of ``goes``, which many registers read
        beat.assign(takes_room=ready & (needs_room & room))
        _waits(b, tap, work, (there, ready, clear), waits)
    return b


def _contract(spec: SequencerSpec) -> str:
    """The header's text: the parts of this file's text that hold for this sequencer."""
    times = ""
    room = "A beat that ends a pass needs room for the pass's result."
    if spec.pool:
        room = "A beat of a window's last tap needs room for the window's result."
    elif spec.npu.array.accumulators > 1:
        times = ", times the kernel groups that share a word"
        room = "The first beat of a pass needs room, for the accumulators of its kernel groups."
    return f"""Issuer: turns taps into beats, as words arrive and room allows (part of
hls_gen/rtl/sequencer/sequencer.py).

    tap --> tap at work --> beat: a word, a cycle, if the word has arrived and the result's unit has room
                       +--> words claimed and given back --> counts.py --> has_free

A tap with n words takes n beats{times}; a skip takes one cycle and none. The next tap
follows the last beat of this one without a gap. {room}
"""


def _advance(b: Block, spec: SequencerSpec, tap: Tap, work: TapAtWork, events: Events) -> None:
    """Go on to the next word, or to the next tap."""
    has_beats = b.wire("tap_has_beats", 1, tap.valid & ~tap.skip)
    skips = b.wire("tap_skips", 1, tap.valid & tap.skip)
    b.on(
        events.ready,
        (work.busy, has_beats),
        (work.idle, ~has_beats),
        (work.skips, skips),
        (work.claims_word, has_beats & tap.claim),
        (work.claims_tuple, skips & tap.claim),
        (work.layer_end, tap.layer_end),
        (work.hold_words, tap.hold_words),
    )
    b.on(events.taken, (work.starting, choose(tap.last, 1, work.starting & tap.skip, 1)))
    ends = work.ends
    w = width(work.left)
    single = eq(tap.words_minus_1, 0)
    next_last = eq(work.left, 1)
    b.on(
        events.moves,
        (work.address, choose(ends, tap.address, add(work.address, 1, width(work.address)), width(work.address))),
        (work.left, choose(ends, tap.words_minus_1, sub(work.left, 1, w), w)),
        (work.word_last, choose(ends, single, next_last, 1)),
    )
    short, next_ends = single, next_last
    if work.inner is not None:
        short = all_of(single, eq(tap.inner_groups_minus_1, 0))
        next_ends = all_of(work.inner.next_last, choose(work.inner.last, next_last, work.word_last, 1))
    b.on(events.goes, (work.ends, choose(ends, any_of(~has_beats, short), next_ends, 1)))
    if spec.pool:
        b.on(events.ready, (work.first, work.starting), (work.pass_last, has_beats & tap.last))
    else:
        b.on(events.ready, (work.last, tap.last))
        b.on(events.moves, (work.first, ends & (has_beats & work.starting)))
        b.on(events.moves, (work.pass_last, choose(ends, has_beats & tap.last & single, work.last & next_last, 1)))


def _count(b: Block, tap: Tap, work: TapAtWork, events: Events, counts: Counts, write: Signal) -> None:
    """Words that are claimed and given back in this cycle.

    A word is claimed with its beat. A skip claims its whole tuple in its one cycle: ``left`` is then one less than its
    words. A tap gives words back as it is taken, and the layer's last one what is left of the layer as it is done;
    both count a cycle later, so that no path leads from the beat's conditions to the sum.
    """
    b.comment("Words of the ring that are claimed and given back; those given back count a cycle later.")
    w = width(counts.free_minus_1)
    claims = work.claims_word if work.inner is None else work.claims_word & work.inner.last
    less = choose(work.claims_tuple, b.wire("tuple_less", w, ~resize(work.left, w)), Repeat(claims, w), w)
    ahead = None
    if tap.gap_words is not None:
        ahead = b.wire("claims_ahead", 1, tap.valid & tap.gap & work.ends), tap.gap_words
    ended = b.reg("ended_words", w)
    b.on(None, (ended, choose(events.done & work.layer_end, work.hold_words, 0, w)))
    # ``goes`` is 1 with each skip, too
    claimed = Claimed(events.goes, b.wire("claimed_less", w, less), ahead)
    counts.advance(b, write, claimed, tap.given_words + ended)


def _pool_beat(b: Block, tap: Tap, work: TapAtWork, events: Events, beat: Beat) -> None:
    """Assign the signals of the pool unit's beat."""
    b.comment("What the pool unit is told with a beat.")
    beat.assign(first=work.first, last=work.pass_last, tuple_last=work.word_last, map_last=work.layer_end)
    for name, mark in tap.marks.ports().items():
        kept = b.reg(f"at_{name}", width(mark), init=None)
        b.on(events.ready, (kept, mark))
        beat.marks.assign(**{name: kept})
    if beat.taps is not None:
        w = width(beat.taps)
        taps = b.reg("window_taps", w, init=None)
        counted = b.wire("counted", w, add(choose(work.starting, 0, taps, w), 1, w))
        b.on(events.taken & ~tap.skip, (taps, counted))
        beat.assign(taps=taps)
    index = b.reg("word_index", width(beat.index), init=None)
    onward = choose(work.ends, 0, add(index, 1, width(index)), width(index))
    b.on(events.goes, (index, onward))
    beat.assign(index=index)
    if tap.row is not None:
        _kernel_row(b, tap, work, events, beat)


def _kernel_row(b: Block, tap: Tap, work: TapAtWork, events: Events, beat: Beat) -> None:
    """The beat's kernel row: those of a tap lie side by side, so it goes up by one."""
    w = width(tap.row)
    row = b.reg("at_row", w, init=None)  # groups that share a word have their rows side by side
    b.on(events.goes, (row, choose(work.ends, tap.row, add(row, 1, w), w)))
    beat.assign(kernel_row=row)


def _array_beat(b: Block, tap: Tap, work: TapAtWork, events: Events, beat: Beat) -> None:
    """Assign the signals of the array's beat: first and last of its pass, kernel row, offset, accumulator."""
    b.comment("What the array is told with a beat: kernel rows lie side by side, so the row goes up by one.")
    inner = work.inner
    beat.assign(first=work.first, last=work.pass_last)
    _kernel_row(b, tap, work, events, beat)
    if tap.offset is not None:
        _offset(b, tap, work, events, beat)
    if inner is not None:
        pass_done = b.wire("pass_done", 1, events.done & work.last)
        inner.advance(events.ready, tap.inner_groups_minus_1, events.goes, work.ends, pass_done)
        beat.assign(slot=inner.slot)
    if tap.streamed is not None:
        streamed = b.reg("at_streamed")
        b.on(events.ready, (streamed, tap.streamed))
        beat.assign(weights_done=all_of(events.done, work.layer_end, streamed))


def _offset(b: Block, tap: Tap, work: TapAtWork, events: Events, beat: Beat) -> None:
    """The sum of the offsets of a pass's taps so far: a tap's own is added with the first beat of its first word."""
    w = width(tap.offset)
    tap_offset = b.reg("at_offset", w, init=None)
    total = b.reg("offset_total", w, init=None)
    word_first = work.word_first
    b.on(events.moves, (word_first, work.ends))
    b.on(events.ready, (tap_offset, tap.offset))
    begun = choose(work.first, 0, total, w) + tap_offset
    now = b.wire("offset_now", w, choose(word_first, begun, total, w))
    # with one accumulator every beat may write what it shows; groups that share the first word must add once
    once = events.beat if work.inner is None else b.wire("offset_beat", 1, events.used & word_first)
    b.on(once, (total, now))
    beat.assign(offset=now)


def _waits(b: Block, tap: Tap, work: TapAtWork, conditions: tuple[Signal, Signal, Signal], waits: WaitPulses) -> None:
    """Where cycles without a beat go; ``conditions`` of a beat: is the word there, can it be used, is there room."""
    there, ready, clear = conditions
    b.comment("Why there is no beat: for the counters.")
    waits.assign(wait_input=work.busy & ~there, wait_room=all_of(work.busy, ready, ~clear))
    if tap.weights_missing is None:
        waits.assign(wait_table=~work.busy)
        return
    missing = b.wire("misses_weights", 1, ~any_of(work.busy, work.skips) & tap.weights_missing)
    waits.assign(wait_weights=missing, wait_table=~any_of(work.busy, missing))
