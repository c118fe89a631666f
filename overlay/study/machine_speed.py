"""How fast the training machine learns, by its slaves, and what its instructions wait for (C21 to C23).

Measured between the first sample of the second batch and that of the third one: all samples of a batch and its end.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bitloom.golden.discrete.data import LearnData
from bitloom.golden.discrete.machine.dependency import DependencyUnit, Issued
from bitloom.golden.discrete.machine.interpreter import Interpreter, Work
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.machine.units import needs
from bitloom.overlay.virtual.training_machine import hardware_work

from .machine_learning import MachinePlan, first_run, sample_begins

BATCHES = 3
"""Batches of the run that is measured."""
CONTROLLER = "controller"
"""Unit of CONFIG, NOP and JUMP: the controller itself."""
SAME_UNIT = "its own unit"
"""An instruction waits for the one before it in the same unit, which a queue can't change."""


@dataclass(frozen=True, kw_only=True)
class MachineSpeed:
    """Cycles a sample of a machine with so many slaves."""

    slaves: int
    ideal: float
    """A multiplication a slave and cycle, forward, backward and dw, and nothing else."""
    interpreter: float
    """Each unit takes a word a cycle."""
    hardware: float
    queued: float
    """As hardware, if each unit had a queue of any length, from which its instructions begin as early as they may."""
    waits: dict[str, dict[str, float]]
    """In hardware, cycles a sample in which the instruction at hand waits, by the unit that it needs (or `CONTROLLER`)
    and by what ends the wait: `SAME_UNIT`, or another unit."""


def measure_speed(
    plan: MachinePlan, data: LearnData, slaves: Sequence[int], progress: Callable[[int, int], None] | None = None
) -> list[MachineSpeed]:
    """Measure machines that differ in their slaves.

    Parameters
    ----------
    plan : MachinePlan
        Plan of the training; its slaves and its runner don't matter.
    data : LearnData
        With `BATCHES` batches of training images at least.
    slaves : sequence of int
    progress : callable, optional
        Called with machines that were measured, and machines in all.
    """
    training = plan.training(data)
    samples = BATCHES * training.batch
    speeds = []
    for number, count in enumerate(slaves):
        changed = replace(plan, slaves=count)
        machine, program, words = first_run(changed, data, samples)
        interpreter = Interpreter(machine, program)
        interpreter.run(words)
        work = hardware_work(machine, program, words)
        begins = sample_begins(work, machine, training)
        begin, end = (begins[k * training.batch // training.side_by_side] for k in (1, 2))
        speeds.append(
            MachineSpeed(
                slaves=count,
                ideal=training.multiplications / count,
                interpreter=_cycles(interpreter.work, begin, end) / training.batch,
                hardware=_cycles(work, begin, end) / training.batch,
                queued=_cycles(with_queues(work, machine), begin, end) / training.batch,
                waits=_waits_a_sample(waits(work, machine, begin, end), training.batch),
            )
        )
        if progress:
            progress(number + 1, len(slaves))
    return speeds


def _cycles(work: Sequence[Work], begin: int, end: int) -> int:
    """From the begin of one instruction to that of another one."""
    return work[end].begin - work[begin].begin


def _waits_a_sample(waited: Counter[tuple[str, str]], samples: int) -> dict[str, dict[str, float]]:
    """Cycles a sample, by unit and cause; without units that never wait."""
    table: dict[str, dict[str, float]] = {}
    for (unit, cause), cycles in sorted(waited.items()):
        table.setdefault(unit, {})[cause] = cycles / samples
    return table


def _issued(item: Work, machine: MachineParameters) -> Issued:
    """The instruction as the dependency unit knows it."""
    return Issued(item.place, item.instruction, needs(item.instruction, machine), item.end)


def waits(work: Sequence[Work], machine: MachineParameters, begin: int, end: int) -> Counter[tuple[str, str]]:
    """Cycles in which instructions ``begin`` to ``end`` - 1 of ``work`` were ready and not yet issued.

    Returns
    -------
    Counter
        By the first unit that an instruction needs, or `CONTROLLER`, and by what it waited for last: `SAME_UNIT`, or
        the unit of the instruction whose words it needs.
    """
    waited: Counter[tuple[str, str]] = Counter()
    unit = DependencyUnit()
    for number, item in enumerate(work[:end]):
        need = needs(item.instruction, machine)
        unit.unfinished = [issued for issued in unit.unfinished if issued.end > item.ready]
        causes = [issued for issued in unit.unfinished if unit.stands_before(issued, item.instruction, need)]
        if number >= begin and causes and item.begin > item.ready:
            last = max(causes, key=lambda issued: issued.end).needs.units
            first = need.units[0] if need.units else CONTROLLER
            cause = SAME_UNIT if set(last) & set(need.units) else last[0]
            waited[first, cause] += item.begin - item.ready
        if need.units:
            unit.add(_issued(item, machine))
    return waited


def with_queues(work: Sequence[Work], machine: MachineParameters) -> list[Work]:
    """The same instructions with the cycles in which they would begin and end if an instruction that has to wait did so
    in a queue of its unit.

    The controller takes as long as it took for each, and waits only where it did something itself; an instruction in a
    queue begins when those before it in the queue are finished, and all earlier ones that conflict with it.
    """
    unit = DependencyUnit()
    moved: list[Work] = []
    now = before = 0
    for item in work:
        need = needs(item.instruction, machine)
        now += item.ready - before  # fetched and decoded
        before = item.begin
        unit.unfinished = [issued for issued in unit.unfinished if issued.end > now]
        ends = [issued.end for issued in unit.unfinished if unit.stands_before(issued, item.instruction, need)]
        begin = max([now, *ends])
        moved.append(Work(item.place, item.instruction, item.units, now, begin, begin + item.end - item.begin))
        if need.units:
            unit.add(_issued(moved[-1], machine))
        else:
            now = begin
    return moved
