"""A state machine: a register, its states as constants, wires that say which one it is in."""

from collections.abc import Sequence
from dataclasses import dataclass

from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, eq


@dataclass(frozen=True)
class StateMachine:
    """A state machine inside a module."""

    b: Block
    states: Sequence[str]
    """Names; the first one is that after reset."""
    register: Signal
    at: dict[str, Signal]
    """Wires: it is in this state; of all states but the first where that one means rest."""

    @classmethod
    def of(cls, b: Block, states: Sequence[str], *, rests: bool = False) -> "StateMachine":
        """The register ``state`` and wires ``in_<state>``; ``rests``: nothing is done in the first state."""
        w = bits_for(len(states) - 1)
        first = b.localparam(f"STATE_{states[0]}", 0, w)
        machine = cls(b, states, b.reg("state", w, init=first), {})
        machine.at.update(
            {
                name: b.wire(f"in_{name.lower()}", 1, eq(machine.register, machine.number(name)))
                for name in states[rests:]
            }
        )
        return machine

    def number(self, state: str) -> Signal:
        """A state's number, as a constant ``STATE_<name>``."""
        return self.b.localparam(f"STATE_{state}", self.states.index(state), bits_for(len(self.states) - 1))

    def go(self, condition: Signal, state: str) -> None:
        """Change to a state; later calls win."""
        self.b.on(condition, (self.register, self.number(state)))
