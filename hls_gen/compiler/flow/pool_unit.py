"""Processes of the pool: its sequencer's issuer, and the outlet behind its FIFO.

    Ring --written--> issuer --emitted--> output FIFO --> gearbox --> sink
      ^-----given-------'  ^---------------taken-'

(hls_gen/rtl/sequencer/issuer.py, hls_gen/rtl/pool_unit/pool_unit.py, hls_gen/rtl/shell/pool.py.) A window's last
tap emits the words of a tuple.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bitloom.hls_gen.design import timing

from .gearbox import Gears
from .kahn import Process, Stamps
from .layer import Reading, passes
from .results import Activation
from .system import Unit


@dataclass(eq=False)
class PoolIssuer:
    """The pool's issuer of beats, and the stamps between it and what surrounds it."""

    unit: Unit
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
        latency = self.unit.latencies.pool
        limit = timing.pool_room(self.unit.npu)
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
                        while True:  # room is a register: it knows of the FIFO two cycles ago
                            while known < len(emitted) and emitted[known] + latency <= t - 2:
                                known += 1
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


@dataclass(eq=False)
class PoolResults:
    """The pool results, behind the FIFO of a pool unit with weights: sums are cut into steps, which are requantised
    (hls_gen/rtl/pool_unit/pool_results.py)."""

    latency: int
    """Cycles from the pool's issuer to the FIFO."""
    pieces: int
    """Steps of a word."""
    emitted: Stamps
    taken: Stamps
    """emitted, taken: as of `PoolIssuer`."""
    activation: Activation
    """The requantisation, and the gearboxes of the outlets behind it."""

    def process(self, readings: Sequence[Reading], frames: int) -> Process:
        """The process: words of all layers, frame after frame."""
        emitted = self.emitted
        taken = self.taken
        activation = self.activation
        number = 0
        last = 0
        free = -1
        for _ in range(frames):
            for reading in readings:
                for _ in range(reading.windows):
                    for word in range(1, reading.words + 1):
                        while len(emitted) <= number:
                            more = (emitted, number)
                            yield (more,) if activation.drained() else (*activation.room, more)
                        out = max(emitted[number] + self.latency + 1, last)  # into the FIFO's register
                        last = max(out + 1, free)
                        taken.append(last)
                        number += 1
                        free = last
                        for piece in range(1, self.pieces + 1):
                            while (left := activation.left()) is None:
                                yield activation.room
                            free = max(free + 1, left)
                            activation.enter(free, word == reading.words and piece == self.pieces)
        while not activation.drained():
            yield activation.room


def outlet(
    latency: int, readings: Sequence[Reading], frames: int, emitted: Stamps, taken: Stamps, gears: Gears
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
                    taken.append(put)
                    number += 1
    while not gears.flush():
        yield gears.room
