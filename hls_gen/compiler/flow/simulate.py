"""Figures of a system: cycles a frame, latency, beats and waits, how full every store became."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from .sequencer import Count
from .steady import SteadyStream
from .system import System

FRAMES = 8
"""Frames that are run where nothing else is said."""


@dataclass(frozen=True)
class Waits:
    """Where the cycles of an NPU go in a frame of a steady stream. Together they are the cycles of a frame."""

    beats: float
    """Cycles in which the array is fed."""
    wait_input: float
    """Cycles in which the next word had not arrived."""
    wait_room: float
    """Cycles without room for results."""
    wait_table: float
    """Cycles in which the sequencer had no tap ready."""
    wait_weights: float = 0.0
    """Cycles in which a layer's weights had not arrived."""
    wait_memory: float = 0.0
    """Cycles in which the one memory was read for features."""


@dataclass(frozen=True)
class Result:
    """Cycles, counts and fill levels of a system, by the flow model."""

    cycles_per_frame: float
    """Cycles from frame to frame of a steady stream."""
    latency: int
    """Cycles of a frame alone, from the acceptance of its header to its last result word."""
    left: tuple[int, ...]
    """Cycle in which each frame has left."""
    accepted: tuple[int, ...]
    """Cycle in which each frame's header was accepted. Where no frame is in flight, since weights come first, register
    CYCLES doesn't count."""
    npus: dict[int, Waits]
    """Number of each NPU that computes a layer -> where its cycles go."""
    stores: dict[str, int]
    """Name of each store -> most words that it held."""


def simulate(system: System, frames: int = FRAMES) -> Result:
    """Run frames back to back.

    Parameters
    ----------
    system
        NPUs and layers that compute them.
    frames
        How many, even, >= 2. Figures of a steady stream are those of the second half.

    Returns
    -------
    Result
        Cycles, waits and levels.

    Raises
    ------
    ValueError
        ``frames`` is odd or less than 2.
    Deadlock
        The system can't finish.
    """
    if frames < 2 or frames % 2:
        raise ValueError(f"flow: frames must be an even number >= 2, got {frames}")
    stream = SteadyStream(system, frames)
    done = stream.done
    half = frames // 2
    return Result(
        cycles_per_frame=(done[-1] - done[half - 1]) / half,
        latency=done[0] - stream.accepted[0],
        left=tuple(done),
        accepted=tuple(stream.accepted),
        npus={n: _waits(counts, done, half) for n, counts in stream.counts.items()},
        stores=stream.stores,
    )


def _waits(counts: Sequence[Count], done: Sequence[int], half: int) -> Waits:
    """Figures of a frame: from the end of the first half to that of the second. An NPU that is done waits for input."""
    few = counts[half - 1]
    many = counts[-1]
    cycles = {item.name: getattr(many, item.name) - getattr(few, item.name) for item in fields(Waits)}
    cycles["wait_input"] += (done[-1] - many.at) - (done[half - 1] - few.at)
    return Waits(**{name: count / half for name, count in cycles.items()})
