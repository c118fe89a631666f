"""Register stages one behind the other, which move together: all of them when the last one is free.

entering --> first stage --> ... --> last stage --> ready

Whether a stage takes what enters it is a register where what stands behind says a cycle ahead whether it will be ready
(`Ready`): many registers wait for it, and no logic stands in front of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from .block import Block, Signal, any_of, width


@dataclass(frozen=True)
class Ready:
    """Whether something is taken."""

    now: Signal
    """In this cycle."""
    following: Signal | None = None
    """In the next one; None where nobody knows that ahead."""


class Takes(NamedTuple):
    """Whether a stage takes what enters it, for who looks at it."""

    stage: Signal
    """For the registers of the stage, which are many."""
    before: Ready
    """For logic in front of the stage: it begins at a register of its own."""


def takes(b: Block, name: str, valid: Signal, entering: Signal, ready: Ready) -> Takes:
    """Whether a stage takes what enters it: it is empty, or what is in it goes on.

    A stage that takes nothing in this cycle is full in the next one, and one that does is full if something enters it.

    Parameters
    ----------
    b : Block
        The stage's block.
    name : str
        Beginning of the names of the registers.
    valid : Signal
        Something is in the stage; a register that takes ``entering`` where the stage takes something.
    entering : Signal
        Something is there to enter it.
    ready : Ready
        Whether the stage behind takes the contents of this one.
    """
    if ready.following is None:
        empty = b.reg(f"{name}_empty", init=1)
        taken = any_of(empty, ready.now)
        b.on(taken, (empty, ~entering))
        return Takes(taken, Ready(any_of(~valid, ready.now)))
    moves, stops = b.reg(f"{name}_moves", init=1), b.reg(f"{name}_stops")
    following = b.wire(f"{name}_moves_next", 1, any_of(~stops & ~entering, ready.following))
    b.on(None, (moves, following), (stops, ~following))
    return Takes(moves, Ready(~stops, following))


class Pipeline:
    """Stages of a block; their registers are called ``<stage>_<name>``.

    Attributes
    ----------
    move : Signal
        Every stage takes what the stage before has.
    valid : dict of str to Signal
        Registers, by stage: there is something in it; once there is `control`.
    """

    def __init__(self, b: Block, stages: Sequence[str], move: Signal):
        self._b = b
        self._stages = stages
        self.move = move
        self.valid: dict[str, Signal] = {}

    def control(self, ready: Ready) -> Ready:
        """Registers ``valid``, and when to move: when the last of two stages or more is free, or what stands behind it
        is ``ready``. Returns the same for what enters, which says `enter`."""
        self.valid = {stage: self._b.reg(f"{stage}_valid") for stage in self._stages}
        before, last = (self.valid[stage] for stage in self._stages[-2:])
        taken = takes(self._b, "pipe", last, before, ready)
        self.move.assign(taken.stage)
        return taken.before

    def enter(self, entering: Signal) -> None:
        """Let something enter the first stage where ``entering`` is 1."""
        onward = [(self.valid[after], self.valid[before]) for before, after in pairwise(self._stages)]
        self._b.on(self.move, (self.valid[self._stages[0]], entering), *onward)

    def late(self, name: str, signal: Signal, until: str | None = None) -> dict[str, Signal]:
        """``signal``, which is there as something enters, at each stage up to ``until``, by default the last one. The
        last register is reset: else synthesis makes a shift register of all of them, whose output comes late, and all
        lanes read it."""
        last = len(self._stages) - 1 if until is None else self._stages.index(until)
        late = {}
        for n, stage in enumerate(self._stages[: last + 1]):
            init = 0 if n == last else None
            signal = late[stage] = self.register(f"{stage}_{name}", width(signal), signal, init)
        return late

    def beside(self, name: str, signal: Signal) -> Signal:
        """``signal``, which is there as something enters, at the last stage."""
        return self.late(name, signal)[self._stages[-1]]

    def register(self, name: str, w: int, value: Signal, init: int | None = None) -> Signal:
        """A data register of a stage, of ``w`` bits: it takes ``value``, which the stage before has."""
        register = self._b.reg(name, w, init=init)
        self._b.on(self.move, (register, value))
        return register
