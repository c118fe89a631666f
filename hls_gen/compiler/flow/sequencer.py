"""Processes of the array's sequencer: the writer of its tuple memory, and the issuer of beats.

    source --> TupleMemory --written--> issuer --arrived--> results
                    ^--------given--------'  ^-----credit------'

(hls_gen/rtl/sequencer/writer.py, issuer.py and tap_source.py.) Within a pass only beats of new words and the one that
needs room can be late, so a pass costs as many steps here as it claims tuples, however many beats it has.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from bitloom.hls_gen.design import timing

from .kahn import Process, Stamps, Wait
from .layer import Claim, FlowLayer, Pass, passes
from .streams import Flushed, Source
from .system import FlowNpu

Passing = Generator[tuple[Wait, ...], None, int]
"""Part of a process: waits as a ``Process`` does, then returns a cycle."""


class Count(NamedTuple):
    """The counts of an issuer when it issued the last beat of a frame."""

    at: int
    """Cycle of that beat."""
    beats: int
    """Beats up to then."""
    wait_input: int
    wait_room: int
    wait_table: int
    wait_weights: int
    wait_memory: int
    """wait_input, wait_room, wait_table, wait_weights, wait_memory: cycles up to then without a beat, because a word
    had not arrived, because there was no room for results, because the sequencer had no tap ready, because a layer's
    weights were not there, or because the one memory was read for a word."""


@dataclass(eq=False)
class Issuer:
    """The array's issuer of beats, and the stamps between it and what surrounds it."""

    flow_npu: FlowNpu
    """The NPU."""
    written: Stamps
    """Cycles in which words come into the tuple memory."""
    given: Stamps
    """Cycles in which the issuer gives words of that memory back."""
    arrived: Stamps
    """Cycles in which results arrive at the results unit."""
    credit: Stamps
    """Cycles in which the place of a result is free again."""
    there: Stamps | None = None
    done: Stamps | None = None
    """there, done: cycles from which on a streamed layer's first tap may be taken, and those of such layers' last
    beats; None where no weights are streamed to the NPU."""
    counts: list[Count] = field(default_factory=list)
    """Waits that were counted by the end of each frame."""
    _weights: int = 0
    _claimed: int = 0
    _input: int = 0
    _room: int = 0
    _table: int = 0

    @cached_property
    def _fetch(self) -> int:
        """Cycles in which a word is read before the beats that use it."""
        return timing.fetch_cycles(self.flow_npu.npu)

    @cached_property
    def _latency(self) -> int:
        """Cycles from a beat to the arrival of its result."""
        return self.flow_npu.latencies.array

    def process(self, layers: Sequence[FlowLayer], frames: int) -> Process:
        """The process: beats of all layers, frame after frame."""
        several = self.flow_npu.npu.array.accumulators > 1
        t = timing.FIRST_STEP
        beats = 0
        fetched = 0
        self._table = timing.FIRST_STEP + 1
        plans = [(layer, passes(layer.reading, layer.inner, self._fetch)) for layer in layers]
        for _ in range(frames):
            for layer, windows in plans:
                if layer.streamed:
                    t = yield from self._weighted(t)
                for window in windows:
                    if several:
                        for group in range(layer.groups):
                            t = yield from self._held_pass(window, t + 1, group == 0, layer.inner)
                    else:
                        t = yield from self._passes(window, t + 1, layer.groups)
                self.given.extend([t] * (layer.reading.hold_tuples * layer.reading.words))
                fetches = self._fetch * layer.beats // layer.inner
                beats = beats + layer.beats
                fetched = fetched + fetches
                self._table += layer.groups * sum(p[0] for p in windows) - layer.beats - fetches
                if layer.streamed and self.done is not None:
                    self.done.append(t)
            self.counts.append(Count(t, beats, self._input, self._room, self._table, self._weights, fetched))

    def _weighted(self, t: int) -> Passing:
        """Wait for the weights of the next streamed layer; returns the cycle before that of its first tap's beat."""
        there = self.there
        done = self.done
        assert there is not None, "a streamed layer has a loader"
        assert done is not None
        if len(there) <= len(done):
            yield ((there, len(done)),)
        wait = max(0, there[len(done)] - t)
        self._weights += wait
        return t + wait

    def _passes(self, window: Pass, start: int, groups: int) -> Passing:
        """Passes over a window, the first of which begins in cycle ``start``, each result in a register of its own;
        returns the last cycle."""
        cycles, _, head, rest = window
        arrived = self.arrived
        credit = self.credit
        latency = self._latency
        shift = start
        if head or rest:
            shift = yield from self._claim(head + rest, shift, 1 + self._fetch)
            self._input += shift - start
        t = shift - 1
        first = len(arrived) - timing.CREDITS
        for number in range(first, first + groups):
            t += cycles
            if number >= 0:
                if len(credit) <= number:
                    yield ((credit, number),)
                room = credit[number] + 1
                if room > t:
                    self._room += room - t
                    t = room
            arrived.append(t + latency)
        return t

    def _held_pass(self, window: Pass, start: int, claims: bool, inner: int) -> Passing:
        """A pass, as one of ``_passes``, for a PE with several accumulators: each kernel group needs one from its first
        beat on."""
        cycles, lead, head, rest = window
        shift = start
        latency = self._latency
        first = len(self.arrived) - self.flow_npu.npu.array.accumulators
        single = cycles == lead + inner  # every beat is a kernel group's first and last one
        if claims:
            shift = yield from self._claim(head, shift, inner + self._fetch)
            self._input += shift - start
        before = shift
        for beat in range(inner):
            if first + beat >= 0:
                if len(self.credit) <= first + beat:
                    yield ((self.credit, first + beat),)
                shift = max(shift, self.credit[first + beat] + 1 - lead - beat)
            if single:
                self.arrived.append(shift + lead + beat + latency)
        self._room += shift - before
        if claims and rest:
            before = shift
            shift = yield from self._claim(rest, shift, inner + self._fetch)
            self._input += shift - before
        t = shift + cycles - 1
        if not single:
            self.arrived.extend(range(t - inner + 1 + latency, t + 1 + latency))
        return t

    def _claim(self, claims: Sequence[Claim], shift: int, pace: int) -> Passing:
        """Wait for the words of ``claims``, each at work for ``pace`` cycles. Returns the cycle in which the pass
        begins, as delayed by them."""
        written = self.written
        given = self.given
        for at, back, ahead, fresh in claims:
            if back:
                given.extend([shift + at - 1] * back)
            self._claimed += ahead + fresh
            if fresh:
                last = self._claimed - 1
                if len(written) <= last:
                    yield ((written, last),)
                if pace == 1:  # words come one a cycle at most, so the last one decides
                    earliest = written[last] + 2 - fresh - at
                else:
                    earliest = max(written[last + 1 - fresh + i] + 1 - at - i * pace for i in range(fresh))
                if earliest > shift:
                    shift = earliest
        return shift


def writer(maps: Sequence[tuple[int, Source]], store: Flushed, frames: int) -> Process:
    """Process: words of map after map go from their sources into a store.

    Parameters
    ----------
    maps
        (words, source) of each map of a frame.
    store
        The store: a tuple memory, a line former in front of one, or a pair of buffers.
    frames
        How many frames come.
    """
    put: int | None = 0
    for _ in range(frames):
        for words, source in maps:
            for _ in range(words):
                last = put or 0
                while (cycle := source.next()) is None:
                    yield (source.word,) if store.flush() else (source.word, store.room)
                while (put := store.put(max(cycle, last + 1))) is None:
                    yield (store.room,)
                source.taken(put)
    while not store.flush():
        yield (store.room,)
