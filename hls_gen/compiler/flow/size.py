"""Sizes of stores: the least spill store with which a ring finishes, and the least that never stops it (spec D8)."""

from dataclasses import dataclass, replace

from bitloom.hls_gen.design import timing

from .kahn import Deadlock
from .simulate import FRAMES, simulate
from .system import System


@dataclass(frozen=True)
class Spill:
    """Words of the spill store on the closing edge. least : with fewer it can't finish.  smooth : with so many, nobody
    ever waits for room in it. 0: none is needed."""

    least: int
    smooth: int


def spill(system: System, frames: int = FRAMES) -> Spill:
    """Spill store that ``system``, two NPUs or more, needs; its own ``spill_words`` count for nothing.

    Deadlock where no size helps.
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
    """Words of a spill store in which nobody ever waits for room. Deadlock where no size helps."""
    held = simulate(replace(system, spill_words=None), frames).stores.get("spill_words", 0)
    return held + 2 * (held > timing.LUT_RAM_WORDS)  # a registered ready keeps so many free


def _finishes(system: System, frames: int) -> bool:
    try:
        simulate(system, frames)
    except Deadlock:
        return False
    return True
