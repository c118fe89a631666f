"""Process of the results unit: results leave in steps, through the activation, into gearboxes.

    arrived --> steps --> value register --> stages of the activation --> gearbox
                                                  (hls_gen/rtl/results/results.py, threshold.py, requantise.py)

All stages of an activation move at once, as soon as the last stage is free. So the model numbers the moves: a step that
leaves the value register with move i leaves the last of ``depth`` stages with move i + depth. Move i takes place in
cycle i + lag. Its lag is how many cycles all moves up to it had to wait for the gearbox.

A gearbox may make the first step of a word wait, and takes the others as they come. So steps are not followed one by
one: those of a kernel group leave the value register with one move after the other as far as the lag is known, and go
into the gearbox together until one may have to wait.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from .kahn import Process, Stamps, Wait
from .layer import FlowLayer

Taken = tuple[int, int]
"""Cycle in which the first of some steps was taken, and how many were taken, one a cycle."""


class Taker(Protocol):
    """What takes the steps that leave the stages: gearboxes, or an addition in front of them."""

    @property
    def room(self) -> tuple[Wait, ...]:
        """What ``take`` or ``flush`` waits for."""

    def sure(self, cycle: int) -> int:
        """Steps that are taken as they come, one a cycle from ``cycle`` on, if a tuple doesn't end before; as far as
        known."""

    def take(self, cycle: int, last: bool, count: int) -> Taken | None:
        """Take the next steps; see ``bitloom.hls_gen.compiler.flow.gearbox.Gearbox.take``."""

    def flush(self) -> bool:
        """Give on all that can be; False if it is not known yet when that leaves."""


class Activation:
    """The way of steps from the value register to what takes them.

    Parameters
    ----------
    depth
        Stages behind the value register.
    gears
        What stands behind the stages.
    """

    def __init__(self, depth: int, gears: Taker):
        self._depth = depth
        self._gears = gears
        self._count = 0
        """Steps that have not left the value register: one is in it, others come as soon as it is free."""
        self._came = -1
        """Cycle in which that step came, or the latest one."""
        self._last = False
        """Whether a tuple ends with the last of these steps."""
        self._moving: deque[tuple[int, int, bool]] = deque()
        """Steps behind it, those together that leave with one move after the other: number of the move in which the
        first one leaves, how many there are, whether a tuple ends with the last one."""
        self._queue = 0
        """Steps behind it."""
        self._entry = -1
        """Number of the move in which the latest step left the value register."""
        self._lags: deque[tuple[int, int]] = deque([(0, 0)])
        """(first move, lag) of each stretch of moves with one lag, since the latest step left the value register."""
        self._left = -1
        """Cycle in which the latest step left the value register."""
        self._given = -1
        """Cycle in which the latest step was taken behind the stages."""

    @property
    def room(self) -> tuple[Wait, ...]:
        """What the activation waits for when ``left`` returns None or ``drained`` False."""
        return self._gears.room

    def enter(self, cycle: int, last: bool, count: int = 1) -> None:
        """Steps come into the value register: the first one, for which ``left`` says that it is free, in ``cycle``,
        and each other one as the one before leaves. ``last``: their tuple ends."""
        self._came = cycle
        self._last = last
        self._count = count

    def entered(self) -> int | None:
        """Cycle in which the latest step came into the value register; None if not known yet."""
        return self._came if self._count < 2 or self._move_on() or self._count < 2 else None

    def left(self) -> int | None:
        """Cycle in which the latest step left the value register; None if not known yet."""
        return self._left if not self._count or self._move_on() else None

    def given(self) -> int | None:
        """Cycle in which the latest step was taken behind the stages; None if not known yet, and before there is one
        -1."""
        if self.left() is None:
            return None
        while self._moving:
            if not self._leave():
                return None
        return self._given

    def drained(self) -> bool:
        """Whether all that came has left the gearboxes. Steps go into them as far as their cycles are known."""
        if self.left() is None:
            return False
        while self._moving:
            if not self._leave():
                return False
        return self._gears.flush()

    def _move(self, cycle: int) -> int:
        """Number of the first move that is not before ``cycle``, if no move waits but those known to wait."""
        first, lag = self._lags[-1]
        if cycle - lag > first:
            return cycle - lag
        number = 0
        for first, lag in reversed(self._lags):
            if number and number - 1 + lag < cycle:  # the last move with this lag comes too early
                break
            number = max(cycle - lag, first)
            if number > first:
                break
        return number

    def _move_on(self) -> bool:
        """Steps leave the value register as far as it is known when; whether all have left."""
        if not self._depth:
            return self._pass_on()
        lags = self._lags
        while self._count:
            move = max(self._move(self._came + 1), self._entry + 1)
            while len(lags) > 1 and lags[1][0] <= move:
                lags.popleft()
            count = min(self._known_moves(move), self._count)
            if len(lags) > 1:
                count = min(count, lags[1][0] - move)
            if count > 0:
                self._append(move + self._depth, count)
                self._entry = move + count - 1
                self._have_left(self._entry + lags[0][1], count)
            elif not self._leave():
                return False
        return True

    def _known_moves(self, move: int) -> int:
        """Moves from ``move`` on until one may have to wait, as far as steps are to leave the value register."""
        moving = self._moving
        at = moving[0][0] if moving else move + self._depth
        if at - move < self._count and not any(ends for _, _, ends in moving):
            more = self._gears.sure(at + self._lags[-1][1]) - self._queue
            if more > 0:
                return more + self._depth
        return at - move

    def _append(self, move: int, count: int) -> None:
        """Steps come behind the value register, the first of which leaves with that move."""
        moving = self._moving
        ends = self._last and count == self._count
        self._queue += count
        if moving:
            first, before, ended = moving[-1]
            if not ended and first + before == move:
                moving[-1] = first, before + count, ends
                return
        moving.append((move, count, ends))

    def _pass_on(self) -> bool:
        """Steps go from the value register into the gearbox, where there are no stages."""
        while self._count:
            taken = self._gears.take(self._came + 1, self._last, self._count)
            if taken is None:
                return False
            cycle, count = taken
            self._given = cycle + count - 1
            self._have_left(self._given, count)
        return True

    def _have_left(self, cycle: int, count: int) -> None:
        """Steps have left the value register, the last of them in ``cycle``."""
        self._left = cycle
        self._count -= count
        if self._count:
            self._came = cycle
        elif count > 1:
            self._came = cycle - 1

    def _leave(self) -> bool:
        """The oldest steps go into their gearbox, if it is known when."""
        moving = self._moving
        move, steps, ends = moving[0]
        lag = self._lags[-1][1]
        taken = self._gears.take(move + lag, ends, steps)
        if taken is None:
            return False
        cycle, count = taken
        if count == steps:
            moving.popleft()
        else:
            moving[0] = move + count, steps - count, ends
        self._queue -= count
        self._given = cycle + count - 1
        if cycle - move > lag:
            self._lags.append((move, cycle - move))
        return True


class OneByOne:
    """A taker of which each step may have to wait."""

    def sure(self, cycle: int) -> int:
        """See Taker."""
        return 0


@dataclass(eq=False)
class ResultsUnit:
    """The results unit, and the stamps between it and what surrounds it."""

    several: bool
    """Whether a PE has several accumulators."""
    arrived: Stamps
    """Cycles in which results of the array arrive."""
    credit: Stamps
    """Cycles in which the place of a result is free again: with one accumulator a PE as the last step of the result
    goes, with several as the result leaves its place."""
    features: Activation
    """Where steps of a layer with an activation go."""
    raw: Activation
    """Where steps of a raw layer go. The host takes them at once."""

    def process(self, layers: Sequence[FlowLayer], frames: int) -> Process:
        """The process: results of all layers, frame after frame."""
        arrived = self.arrived
        credit = self.credit
        features = self.features
        raw = self.raw
        number = finish = 0
        before = features
        for _ in range(frames):
            for layer in layers:
                way = raw if layer.raw else features
                of_group = [layer.steps] * (layer.results - 1) + [layer.last_steps]
                for _ in range(layer.reading.windows):
                    for group, steps in enumerate(of_group, 1):
                        while len(arrived) <= number:
                            raw.drained()
                            more = (arrived, number)
                            yield (more,) if features.drained() else (*features.room, more)
                        finish = max(arrived[number], finish)
                        number += 1
                        if self.several:
                            credit.append(finish)
                        while (left := before.left()) is None:
                            yield before.room
                        before = way
                        way.enter(max(finish + 1, left), group == len(of_group), steps)
                        while (entered := way.entered()) is None:
                            yield way.room
                        finish = entered
                        if not self.several:
                            credit.append(finish)
        raw.drained()
        while not features.drained():
            yield features.room
