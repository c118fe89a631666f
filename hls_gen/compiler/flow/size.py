"""Sizes of stores: the least spill store with which a ring finishes, and the least that never stops it (spec D8)."""

from dataclasses import dataclass, replace

from bitloom.hls_gen.design import timing

from .kahn import Deadlock
from .simulate import FRAMES, simulate
from .system import System


@dataclass(frozen=True)
class Spill:
    """How large the spill store on the closing edge of a ring must be.

    Attributes
    ----------
    least
        Words with which the ring finishes; with fewer it can't. 0: no store is needed.
    smooth
        Words with which nobody ever waits for room in the store. 0: no store is needed.
    """

    least: int
    smooth: int


def spill(system: System, frames: int = FRAMES) -> Spill:
    """Find how large a spill store a ring needs.

    Parameters
    ----------
    system
        Two NPUs or more. Its own ``spill_words`` count for nothing.
    frames
        Frames that the search simulates.

    Returns
    -------
    Spill
        The least size, and the size at which nobody waits.

    Raises
    ------
    Deadlock
        No size helps.
    """
    most = smooth(system, frames)
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        if _finishes(replace(system, spill_words=middle), frames):
            high = middle
        else:
            low = middle + 1
    return Spill(least=high, smooth=most)


def smooth(system: System, frames: int = FRAMES) -> int:
    """Find the size of a spill store in which nobody ever waits for room.

    Parameters
    ----------
    system
        Two NPUs or more. Its own ``spill_words`` count for nothing.
    frames
        Frames that are simulated.

    Returns
    -------
    int
        Words.

    Raises
    ------
    Deadlock
        No size helps.
    """
    held = simulate(replace(system, spill_words=None), frames).stores.get("spill_words", 0)
    return held + 2 * (held > timing.LUT_RAM_WORDS)  # a registered ready keeps so many free


def _finishes(system: System, frames: int) -> bool:
    """Whether the system gets to the end of all frames."""
    try:
        simulate(system, frames)
    except Deadlock:
        return False
    return True
