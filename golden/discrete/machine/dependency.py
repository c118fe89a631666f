"""The dependency unit: an instruction begins only where no unfinished earlier one stands in its way (C23)."""

from dataclasses import dataclass, field

from .instruction import JUMP, Instruction
from .units import InstructionNeeds


@dataclass(frozen=True)
class Issued:
    """An instruction that was issued."""

    place: int
    """Address of the instruction."""
    instruction: Instruction
    needs: InstructionNeeds
    end: int
    """Cycle in which it is finished."""


def hazard(earlier: InstructionNeeds, later: InstructionNeeds) -> str | None:
    """The reason why ``later`` must not begin before ``earlier`` is finished.

    Returns
    -------
    str or None
        "unit": both need the same unit. "read after write", "write after write", "write after read": both need the same
        words of the neuron cache. "generator": both draw numbers, whose order counts. None: nothing.

        What is in the slaves needs no look: every instruction that reads or writes there needs the array.
    """
    if set(earlier.units) & set(later.units):
        return "unit"
    if earlier.writes and any(earlier.writes.overlaps(read) for read in later.reads):
        return "read after write"
    if later.writes and earlier.writes and later.writes.overlaps(earlier.writes):
        return "write after write"
    if later.writes and any(later.writes.overlaps(read) for read in earlier.reads):
        return "write after read"
    return "generator" if earlier.draws and later.draws else None


@dataclass
class DependencyUnit:
    """Knows the instructions that are not finished, one a unit at most."""

    unfinished: list[Issued] = field(default_factory=list)
    """In order of issue."""

    def add(self, issued: Issued) -> None:
        """An instruction begins."""
        self.unfinished.append(issued)

    def conflict(self, instruction: Instruction, need: InstructionNeeds) -> Issued | None:
        """An unfinished instruction for which ``instruction`` has to wait, None if it may begin.

        NOP waits for all, and so do CONFIG and LOAD_PROGRAM: what CONFIG sets is read as long as an instruction runs,
        and words of a program come behind those of earlier instructions.
        """
        return next((e for e in self.unfinished if self.stands_before(e, instruction, need)), None)

    @staticmethod
    def stands_before(earlier: Issued, instruction: Instruction, need: InstructionNeeds) -> bool:
        """Whether ``instruction`` has to wait for an unfinished earlier one."""
        waits_for_all = not need.units and instruction.operation != JUMP
        return waits_for_all or hazard(earlier.needs, need) is not None
