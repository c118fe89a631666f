"""Processes of the pool: its sequencer's issuer, and the outlet behind its FIFO.

    TupleMemory --written--> issuer --emitted--> output FIFO --> gearbox --> sink
         ^--------given--------'  ^---------------taken-'

(hls_gen/rtl/sequencer/issuer.py, hls_gen/rtl/pool_unit/pool_unit.py, hls_gen/rtl/shell/pool_unit.py.) A window's
last tap emits the words of a tuple.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle as again

from bitloom.hls_gen.design import timing

from .kahn import Process, Stamps, Wait
from .layer import Reading, passes
from .results import ResultStages, Taker
from .system import FlowNpu


@dataclass(eq=False)
class PoolIssuer:
    """The pool's issuer of beats, and the stamps between it and what surrounds it."""

    flow_npu: FlowNpu
    """The NPU."""
    written: Stamps
    """Cycles in which words come into the pool's tuple memory."""
    given: Stamps
    """Cycles in which the issuer gives words of that memory back."""
    emitted: Stamps
    """Cycles of the beats of each window's last tap; each of these beats emits a word."""
    taken: Stamps
    """Cycles in which the gearbox behind the output FIFO takes a word."""

    def process(self, readings: Sequence[Reading], frames: int) -> Process:
        """The process: beats of all layers' pools, frame after frame."""
        written = self.written
        given = self.given
        emitted = self.emitted
        taken = self.taken
        latency = self.flow_npu.latencies.pool
        limit = timing.pool_fifo(self.flow_npu.npu).room
        t = timing.FIRST_STEP
        claimed = 0
        known = 0
        plans = [(reading, passes(reading)) for reading in readings]
        for _ in range(frames):
            for reading, windows in plans:
                words = reading.words
                for cycles, _, head, rest in windows:
                    shift = t + 1
                    final = cycles - words
                    claims = head + rest if head and rest else head or rest
                    at, _, ahead, _ = claims[-1] if claims else (-1, 0, 0, 0)
                    new = at == final and ahead >= 0  # the last tap reads a tuple that arrives
                    for at, back, ahead, fresh in claims:
                        if back:
                            given.extend([shift + at - 1] * back)
                        claimed += ahead + fresh
                        if fresh and (at != final or ahead < 0):
                            if len(written) < claimed:
                                yield ((written, claimed - 1),)
                            earliest = written[claimed - 1] + 2 - fresh - at
                            if earliest > shift:
                                shift = earliest
                    t = shift + final - 1
                    for word in range(claimed - words, claimed):
                        t += 1
                        if new:
                            if len(written) <= word:
                                yield ((written, word),)
                            if written[word] >= t:
                                t = written[word] + 1
                        # room is a register: it knows of the FIFO two cycles ago
                        while True:
                            known = bisect_right(emitted, t - 2 - latency, known)
                            over = known - limit
                            if over < 0:
                                break
                            if over and len(taken) < over:
                                yield ((taken, over - 1),)
                            out = max(emitted[over] + latency + 1, taken[over - 1] if over else 0)
                            if out <= t - 2:
                                break
                            t = out + 2
                        emitted.append(t)
                given.extend([t] * (reading.hold_tuples * words))


class PassBy:
    """The way past a pool unit with weights (hls_gen/rtl/pool_unit/pass_by.py): what takes the steps of results. A map
    that passes by waits until the one before has left the pool unit. The pool unit has no step of a later map then, so
    that both ways take the outlets in turn.

    Parameters
    ----------
    maps
        (steps of results, steps of the pool unit) of each map of a frame; 0 of the pool unit: the map passes it by.
    to_pool
        The gearbox in front of the pool unit.
    outlets
        The gearboxes of the outlets.
    left
        Cycles in which the last step of each map leaves the pool unit.
    """

    def __init__(self, maps: Sequence[tuple[int, int]], to_pool: Taker, outlets: Taker, left: Stamps):
        self._maps = again(maps)
        self._to_pool = to_pool
        self._outlets = outlets
        self._left = left
        self._steps = 0
        """Steps of the map at hand that are to come."""
        self._pooled = False
        self._entered = 0
        """Maps that entered the pool unit."""
        self._wait: tuple[Wait, ...] = ()

    @property
    def room(self) -> tuple[Wait, ...]:
        """See Taker."""
        return (*self._wait, *self._to_pool.room, *self._outlets.room)

    def take(self, cycle: int, last: bool) -> int | None:
        """See Taker."""
        if not self._steps:
            self._steps, pool_steps = next(self._maps)
            self._pooled = pool_steps > 0
        if self._pooled:
            taken = self._to_pool.take(cycle, last)
        else:
            before = self._entered - 1
            self._wait = ((self._left, before),) if len(self._left) <= before else ()
            if self._wait:
                return None
            taken = self._outlets.take(max(cycle, self._left[before] + 1) if self._entered else cycle, last)
        if taken is not None:
            self._steps -= 1
            self._entered += self._pooled and not self._steps
        return taken

    def flush(self) -> bool:
        """See Taker."""
        return self._to_pool.flush() and self._outlets.flush()


class FromPool:
    """The taker of the steps that leave a pool unit with a way past it.

    Parameters
    ----------
    maps
        Steps of each map of a frame that goes through the pool unit.
    outlets
        The gearboxes of the outlets.
    left
        Gets the cycle in which the last step of each map leaves the pool unit.
    """

    def __init__(self, maps: Sequence[int], outlets: Taker, left: Stamps):
        self._maps = again(maps)
        self._outlets = outlets
        self._left = left
        self._steps = 0

    @property
    def room(self) -> tuple[Wait, ...]:
        """See Taker."""
        return self._outlets.room

    def take(self, cycle: int, last: bool) -> int | None:
        """See Taker."""
        self._steps = self._steps or next(self._maps)
        taken = self._outlets.take(cycle, last)
        if taken is not None:
            self._steps -= 1
            if not self._steps:
                self._left.append(taken)
        return taken

    def flush(self) -> bool:
        """See Taker."""
        return self._outlets.flush()


@dataclass(eq=False)
class PoolResults:
    """The pool results, behind the FIFO of a pool unit with weights: sums are cut into steps, which are requantised
    (hls_gen/rtl/pool_unit/pool_results.py)."""

    latency: int
    """Cycles from the pool's issuer to the FIFO."""
    word_steps: int
    """Steps of a word, but for a tuple's last one."""
    emitted: Stamps
    taken: Stamps
    """emitted, taken: as of `PoolIssuer`."""
    stages: ResultStages
    """Those of the requantisation, and what takes the steps behind them."""

    def process(self, maps: Sequence[tuple[int, int]], frames: int) -> Process:
        """The process: words of all maps, frame after frame; ``maps`` are (tuples, steps of a tuple)."""
        emitted = self.emitted
        taken = self.taken
        stages = self.stages
        number = 0
        last = 0
        free = -1
        for _ in range(frames):
            for tuples, steps in maps:
                for _ in range(tuples):
                    for first in range(0, steps, self.word_steps):
                        while len(emitted) <= number:
                            more = (emitted, number)
                            yield (more,) if stages.drained() else (*stages.room, more)
                        out = max(emitted[number] + self.latency + 1, last)  # into the FIFO's register
                        last = max(out + 1, free)
                        taken.append(last)
                        number += 1
                        free = last
                        for step in range(first, min(first + self.word_steps, steps)):
                            while (left := stages.left()) is None:
                                yield stages.room
                            stages.enter(max(free + 1, left) if step == first else left, step == steps - 1)
                        free = stages.came
        while not stages.drained():
            yield stages.room


def outlet(
    latency: int, readings: Sequence[Reading], frames: int, emitted: Stamps, taken: Stamps, gears: Taker
) -> Process:
    """Process: from the pool's FIFO, ``latency`` cycles behind its issuer, into the gearboxes of the outlets."""
    number = last = 0
    for _ in range(frames):
        for reading in readings:
            for _ in range(reading.windows):
                for word in range(1, reading.words + 1):
                    while len(emitted) <= number:
                        more = (emitted, number)
                        yield (more,) if gears.flush() else (*gears.room, more)
                    out = max(emitted[number] + latency + 1, last)  # into the FIFO's register
                    while (put := gears.take(out + 1, word == reading.words)) is None:
                        yield gears.room
                    last = put
                    taken.append(last)
                    number += 1
    while not gears.flush():
        yield gears.room
