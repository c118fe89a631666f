"""Timed Kahn process network: processes that read and write time stamps, and who waits for whom.

    process --stamps[k]: cycle of event k--> process

A process is a generator. It goes on until it needs a stamp that does not exist yet, and yields the stamps that would
let it go on. Stamps are never changed, and have one writer and one reader, or several that take turns by other stamps;
so results do not depend on the order in which processes run. If no process can go on and one is not done, that is a
deadlock of what is modelled, and the waits are its reason.
"""

from array import array
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    _Integers = array[int]
else:
    _Integers = array  # takes no type before Python 3.12


class Stamps(_Integers):
    """Cycles of events, in their order, in 8 bytes each: a long run has millions.

    Parameters
    ----------
    what
        Event for which a process waits that needs the next stamp, in words.
    """

    __slots__ = ("what", "writer")

    def __new__(cls, what: str) -> "Stamps":  # an array is made here, not in __init__
        return cast("Stamps", super().__new__(cls, "q"))

    def __init__(self, what: str):
        self.what = what
        self.writer: FlowProcess | None = None


Wait = tuple[Stamps, int]
"""Stamp number of these stamps."""
Process = Generator[tuple[Wait, ...], None, None]
"""A process at work: yields stamps of which it needs at least one to go on; the one that blocks it stands first."""


@dataclass(eq=False)
class FlowProcess:
    """A process: a generator and the stamps that it writes."""

    name: str
    """The work of the process, or the block of the NPU that it models."""
    npu: int | None
    """Number of the NPU that it is part of; None for what lies between NPUs."""
    generator: Process
    """The process at work."""
    writes: Sequence[Stamps]
    """The stamps that it writes."""
    component: object = None
    """The component that works so; None: the process is a component itself."""
    waits: tuple[Wait, ...] = field(default=(), init=False)
    """Stamps of which the process needs at least one; none when it is done, and before it has begun."""
    begun: bool = field(default=False, init=False)
    """Whether it has run."""

    @property
    def ready(self) -> bool:
        """Whether it can go on."""
        return not self.begun or any(len(stamps) > wanted for stamps, wanted in self.waits)

    def __post_init__(self) -> None:
        for stamps in self.writes:
            stamps.writer = self


@dataclass(frozen=True)
class Blocked:
    """A process that can't go on."""

    npu: int | None
    """Number of the NPU that it is part of; None for what lies between NPUs."""
    process: str
    """Its name."""
    waits_for: str
    """The event that it waits for, in words."""


class Deadlock(ValueError):
    """Nothing can go on: these NPUs can't compute these layers.

    Parameters
    ----------
    cycle
        Processes that wait for each other: each for the next one, the last one for the first.
    """

    def __init__(self, cycle: Sequence[Blocked]):
        self.cycle = tuple(cycle)
        super().__init__(f"flow: deadlock: {_in_words(self.cycle)}")

    @property
    def npus(self) -> tuple[int, ...]:
        """Numbers of the NPUs in the cycle, each once, in its order."""
        return tuple(dict.fromkeys(b.npu for b in self.cycle if b.npu is not None))


def run(processes: Iterable[FlowProcess]) -> None:
    """Run all processes to their end.

    Raises
    ------
    Deadlock
        They can't get there: some wait for each other.
    """
    everything = list(processes)
    go_on(everything)
    if any(process.waits for process in everything):
        raise deadlock_of(everything)


def deadlock_of(everything: Iterable[FlowProcess]) -> Deadlock:
    """The deadlock of processes none of which can go on, and some of which wait."""
    stuck = next(process for process in everything if process.waits)
    return Deadlock([Blocked(p.npu, p.name, p.waits[0][0].what) for p in _cycle(stuck)])


def go_on(everything: Sequence[FlowProcess]) -> None:
    """Run processes until none can go on, from where they are."""
    while ready := [process for process in everything if process.ready]:
        for process in ready:
            process.begun = True
            process.waits = next(process.generator, ())


def _cycle(process: FlowProcess) -> list[FlowProcess]:
    """The processes that wait for each other, found by following the waits of ``process``."""
    path: list[FlowProcess] = []
    while process not in path:
        path.append(process)
        writer = process.waits[0][0].writer
        assert writer is not None, f"{process.name} waits for what nobody writes"
        assert writer.waits, f"{process.name} waits for {writer.name}, which is done"
        process = writer
    return path[path.index(process) :]


def _in_words(cycle: Sequence[Blocked]) -> str:
    """Who waits for what: between NPUs if there are several in the cycle, else component by component."""
    told = [b for b in cycle if b.npu is not None]
    if len({b.npu for b in told}) > 1:
        ahead = [*told[1:], told[0]]
        told = [b for b, onward in zip(told, ahead) if b.npu != onward.npu]
        first, *others = (f"NPU {b.npu} {{}}for {b.waits_for}" for b in told)
    else:
        first, *others = (f"{b.process} of NPU {b.npu} {{}}for {b.waits_for}" for b in told)
    return ", ".join([first.format("waits "), *(other.format("") for other in others)])
