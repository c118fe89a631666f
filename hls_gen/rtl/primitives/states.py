"""A state machine with a register for each state: much follows from each, and a comparison of numbers comes late."""

from collections.abc import Sequence
from dataclasses import dataclass

from bitloom.hls_gen.design.widths import bits_for

from .block import Block, Signal, any_of, side_by_side


@dataclass(frozen=True)
class StateMachine:
    """A state machine inside a module."""

    b: Block
    states: Sequence[str]
    """Names; the first one is that after reset."""
    at: dict[str, Signal]
    """By name of a state the register that is 1 in it. Where the machine rests in the first state, that one has none:
    then all others are 0."""

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

    def go(self, condition: Signal, state: str) -> None:
        """Change to a state; later calls win."""
        self.b.on(condition, *((register, int(name == state)) for name, register in self.at.items()))
