"""Process of the results unit: results leave in steps, through the activation.

    arrived --> steps --> value register --> stages of the activation --> skid register
                                                  (hls_gen/rtl/results/results.py, threshold.py, requantise.py)

All stages of an activation move at once, as soon as the last stage is free. So the model numbers the moves: a step that
leaves the value register with move i leaves the last of ``depth`` stages with move i + depth. Move i takes place in
cycle i + lag. Its lag is how many cycles all moves up to it had to wait for what takes the steps behind the stages.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from .kahn import Process, Stamps, Wait
from .layer import FlowLayer


class Taker(Protocol):
    """A component that takes the steps that leave stages, such as a gearbox, or the skid register in front of it."""

    @property
    def room(self) -> tuple[Wait, ...]:
        """The stamps for which ``take`` or ``flush`` waits: at least one of them must come."""

    def take(self, cycle: int, last: bool) -> int | None:
        """Cycle, >= ``cycle``, in which the next step is taken, with which a tuple ends if it is the ``last``; None if
        not known yet."""

    def flush(self) -> bool:
        """Give on all that can be; False if it is not known yet when that leaves."""


class ResultStages:
    """The register stages of an activation: what steps pass from the value register to what takes them.

    Parameters
    ----------
    depth
        Stages behind the value register.
    behind
        Taker of the steps behind the stages.

    Attributes
    ----------
    came
        Cycle in which the latest step came into the value register.
    """

    def __init__(self, depth: int, behind: Taker):
        self._depth = depth
        self._behind = behind
        self.came = -1
        self._here = self._last = False
        """Whether the latest step is in the value register, as far as known, and whether a tuple ends with it."""
        self._moving: deque[tuple[int, bool]] = deque()
        """Steps behind it: number of the move in which each leaves, whether a tuple ends with it."""
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
        """The stamps for which the stages wait when ``left`` returns None or ``drained`` False."""
        return self._behind.room

    def enter(self, cycle: int, last: bool) -> None:
        """A step comes into the value register, for which ``left`` says that it is free. ``last``: its tuple ends."""
        self.came = cycle
        self._last = last
        self._here = True

    def left(self) -> int | None:
        """Cycle in which the latest step left the value register; None if not known yet."""
        return self._left if not self._here or self._move_on() else None

    def given(self) -> int | None:
        """Cycle in which the latest step was taken behind the stages; None if not known yet, and before there is one
        -1."""
        return self._given if self.left() is not None and self._emptied() else None

    def drained(self) -> bool:
        """Whether all that came has left what stands behind, too. Steps go on as far as their cycles are known."""
        return self.left() is not None and self._emptied() and self._behind.flush()

    def _emptied(self) -> bool:
        """Whether it is known when all steps leave the stages."""
        while self._moving:
            if not self._leave():
                return False
        return True

    def _move(self, cycle: int) -> int:
        """Number of the first move that is not before ``cycle``, if no move waits but those known to wait."""
        number = 0
        for first, lag in reversed(self._lags):
            if number and number - 1 + lag < cycle:  # the last move with this lag comes too early
                break
            number = max(cycle - lag, first)
            if number > first:
                break
        return number

    def _move_on(self) -> bool:
        """The step leaves the value register, if it is known when."""
        if not self._depth:
            return self._pass_on()
        lags = self._lags
        while True:
            move = max(self._move(self.came + 1), self._entry + 1)
            while len(lags) > 1 and lags[1][0] <= move:
                lags.popleft()
            if not self._moving or self._moving[0][0] > move:
                self._moving.append((move + self._depth, self._last))
                self._entry = move
                self._left = move + lags[0][1]
                self._here = False
                return True
            if not self._leave():
                return False

    def _pass_on(self) -> bool:
        """The step leaves the value register for what stands behind, where there are no stages, if it is known when."""
        taken = self._behind.take(self.came + 1, self._last)
        if taken is None:
            return False
        self._given = self._left = taken
        self._here = False
        return True

    def _leave(self) -> bool:
        """The oldest step leaves the last stage, if it is known when."""
        move, last = self._moving[0]
        lag = self._lags[-1][1]
        taken = self._behind.take(move + lag, last)
        if taken is None:
            return False
        self._moving.popleft()
        self._given = taken
        if taken - move > lag:
            self._lags.append((move, taken - move))
        return True


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
    feature_stages: ResultStages
    """Where steps of a layer with an activation go."""
    raw_stages: ResultStages
    """Where steps of a layer with raw results go. The host takes them at once."""

    def process(self, layers: Sequence[FlowLayer], frames: int) -> Process:
        """The process: results of all layers, frame after frame."""
        arrived = self.arrived
        credit = self.credit
        features = self.feature_stages
        raw = self.raw_stages
        number = finish = 0
        before = features
        for _ in range(frames):
            for layer in layers:
                stages = raw if layer.raw else features
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
                        for step in range(steps):
                            while (left := before.left()) is None:
                                yield before.room
                            before = stages
                            last = group == len(of_group) and step == steps - 1
                            stages.enter(left if step else max(finish + 1, left), last)
                        finish = stages.came
                        if not self.several:
                            credit.append(finish)
        raw.drained()
        while not features.drained():
            yield features.room
