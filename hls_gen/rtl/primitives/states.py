"""A state machine with a register for each state: much follows from each, and a comparison of numbers comes late.

    register of a state = a move into it, or it stays: it is 1, and no move leads away

What moves the machine out of a state is looked at in that state alone, so no register waits for the moves of others.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bitloom.hls_gen.design.widths import bits_for

from .block import Block, Signal, all_of, any_of, side_by_side


@dataclass(frozen=True)
class _Move:
    """A way of the machine."""

    condition: Signal
    """When; it means something in state ``source`` alone."""
    state: str
    """Where it leads."""
    source: str | None
    """Where it begins; None: in any state."""


@dataclass(frozen=True)
class StateMachine:
    """A state machine inside a module."""

    b: Block
    states: Sequence[str]
    """Names; the first one is that after reset."""
    at: dict[str, Signal]
    """By name of a state the register that is 1 in it. Where the machine rests in the first state, that one has none:
    then all others are 0."""
    _moves: list[_Move] = field(default_factory=list)

    @classmethod
    def of(cls, b: Block, states: Sequence[str], *, rests: bool = False) -> "StateMachine":
        """Make the registers ``in_<state>``; ``rests``: in the first state nothing is done, so that it needs none."""
        return cls(
            b, states, {name: b.reg(f"in_{name.lower()}", init=int(name == states[0])) for name in states[rests:]}
        )

    @property
    def number(self) -> Signal:
        """The state's place among the states."""
        places = [
            [self.at[name] for place, name in enumerate(self.states) if place >> k & 1]
            for k in range(bits_for(len(self.states) - 1))
        ]
        return side_by_side([any_of(*names) for names in places])

    def go(self, condition: Signal | None, state: str, source: str | None = None) -> None:
        """Change to a state.

        Parameters
        ----------
        condition : Signal or None
            When; None: always in that of ``source``.
        state : str
            Where the machine goes.
        source : str or None
            The state in which the condition is looked at; of its moves at most one is made at a time. None: in any
            state; such a move wins over those before it.
        """
        terms = [*([] if source is None else [self.at[source]]), *([] if condition is None else [condition])]
        self._moves.append(_Move(all_of(*terms), state, source))

    def close(self) -> None:
        """Drive the registers, once all moves are known."""
        for name, register in self.at.items():
            enters = [self._wins(k) for k, move in enumerate(self._moves) if move.state == name]
            leaves = [m.condition for m in self._moves if m.state != name and m.source in (name, None)]
            self.b.on(None, (register, any_of(*enters, _unless(register, leaves))))

    def _wins(self, k: int) -> Signal:
        """The move is made: no later one that wins leads elsewhere."""
        move = self._moves[k]
        others = [m.condition for m in self._moves[k + 1 :] if m.source is None and m.state != move.state]
        return _unless(move.condition, others)


def _unless(condition: Signal, others: Sequence[Signal]) -> Signal:
    """The condition, and none of others."""
    return all_of(condition, ~any_of(*others)) if others else condition
