"""Register stages one behind the other, which move together: all of them when the last one is free.

entering --> first stage --> ... --> last stage --> ready
"""

from collections.abc import Sequence
from itertools import pairwise

from .block import Block, Signal, any_of, width


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

    def control(self, ready: Signal) -> None:
        """Registers ``valid``, and when to move: when the last stage is free, or ``ready`` behind it is 1. What enters
        says `enter`."""
        self.valid = {stage: self._b.reg(f"{stage}_valid") for stage in self._stages}
        self.move.assign(any_of(~self.valid[self._stages[-1]], ready))

    def enter(self, entering: Signal) -> None:
        """Let something enter the first stage where ``entering`` is 1."""
        onward = [(self.valid[after], self.valid[before]) for before, after in pairwise(self._stages)]
        self._b.on(self.move, (self.valid[self._stages[0]], entering), *onward)

    def late(self, name: str, signal: Signal, until: str | None = None) -> dict[str, Signal]:
        """``signal``, which is there as something enters, at each stage up to ``until``, by default the last one."""
        last = len(self._stages) - 1 if until is None else self._stages.index(until)
        late = {}
        for stage in self._stages[: last + 1]:
            signal = late[stage] = self.register(f"{stage}_{name}", width(signal), signal)
        return late

    def beside(self, name: str, signal: Signal) -> Signal:
        """``signal``, which is there as something enters, at the last stage; it may be looked at to say what is ready.
        That register is reset: else synthesis makes a shift register of all of them, whose output comes late."""
        before = list(self.late(name, signal, self._stages[-2]).values())[-1]
        return self.register(f"{self._stages[-1]}_{name}", width(signal), before, init=0)

    def register(self, name: str, w: int, value: Signal, init: int | None = None) -> Signal:
        """A data register of a stage, of ``w`` bits: it takes ``value``, which the stage before has."""
        register = self._b.reg(name, w, init=init)
        self._b.on(self.move, (register, value))
        return register
