"""A state machine: a register a state, since much follows from each, and what changes it."""

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
    """Registers: it is in this state; of all states but the first where that one means rest. At most one is 1."""

    @classmethod
    def of(cls, b: Block, states: Sequence[str], *, rests: bool = False) -> "StateMachine":
        """The registers ``in_<state>``; ``rests``: nothing is done in the first state."""
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
