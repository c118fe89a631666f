"""Sizes of stores: the least spill store with which a ring finishes, and the least that never stops it (spec D8); the
same of skip stores."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from bitloom.hls_gen.design import flat, timing

from .kahn import Deadlock
from .simulate import FRAMES, Result, simulate
from .system import System

FREE_WORDS = 2
"""Free words with which a store of block RAM still takes one in every cycle: its ready is a register (`room_from` in
streams.py)."""


def least_spill(system: System, frames: int = FRAMES) -> int:
    """Find the size of the least spill store with which a ring finishes.

    Parameters
    ----------
    system
        Two NPUs or more. Its own ``spill_words`` are ignored.
    frames
        Frames that the search simulates.

    Returns
    -------
    int
        Words; 0: no store is needed.

    Raises
    ------
    Deadlock
        No size helps.
    """
    return _least(0, smooth(system, frames), lambda words: _finishes(replace(system, spill_words=words), frames))


def smooth(system: System, frames: int = FRAMES) -> int:
    """Find the size of a spill store in which nobody ever waits for room.

    Parameters
    ----------
    system
        Two NPUs or more. Its own ``spill_words`` are ignored.
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
    return spill_of(simulate(replace(system, spill_words=None), frames))


def spill_of(result: Result) -> int:
    """Size of the spill store in which nobody waits for room, as nobody did in what was simulated; 0 where nothing goes
    into it."""
    return _registered(result.stores.get("spill_words", 0))


def smooth_skips(system: System, frames: int = FRAMES) -> list[int]:
    """Find the sizes of skip stores in which nobody ever waits for room.

    Parameters
    ----------
    system
        NPUs, whose own ``skip_words`` and ``spill_words`` are ignored.
    frames
        Frames that are simulated.

    Returns
    -------
    list of int
        Words of each NPU's; 0 where nothing goes into one.

    Raises
    ------
    Deadlock
        No size helps.
    """
    npus = tuple(replace(flow_npu, skip_words=None) for flow_npu in system.npus)
    return skips_of(simulate(replace(system, npus=npus, spill_words=None), frames), len(npus))


def skips_of(result: Result, npus: int) -> list[int]:
    """Sizes of the skip stores of so many NPUs in which nobody waits for room, as nobody did in what was simulated; 0
    where nothing goes into one."""
    held = [result.stores.get(f"npu{n}.skip_words", 0) for n in range(npus)]
    return [max(flat.LEAST["skip_words"], _registered(words)) if words else 0 for words in held]


def enough_skips(system: System, has: Mapping[int, int], frames: int = FRAMES) -> dict[int, int]:
    """Find sizes of skip stores with which all finishes.

    Parameters
    ----------
    system
        NPUs, whose own ``skip_words`` and ``spill_words`` are ignored.
    has
        Number of each NPU that needs a skip store -> words that it has.
    frames
        Frames that are simulated.

    Returns
    -------
    dict
        Number of each of these NPUs -> words >= 2: what it has, or the least size that is enough beside the stores of
        the NPUs before it, if that is more.

    Raises
    ------
    Deadlock
        No size helps.
    """
    npus = [replace(flow_npu, skip_words=None) for flow_npu in system.npus]
    for n, words in has.items():
        unlimited = replace(system, npus=tuple(npus), spill_words=None)
        most = skips_of(simulate(unlimited, frames), len(npus))[n]
        least = _least(flat.LEAST["skip_words"], most, partial(_finishes_with, unlimited, frames, n))
        npus[n] = replace(npus[n], skip_words=max(words, least))
    return {n: npus[n].skip_words or 0 for n in has}


def _finishes_with(system: System, frames: int, n: int, skip_words: int) -> bool:
    """Whether the system gets to the end of all frames with a skip store of so many words in NPU ``n``."""
    npus = list(system.npus)
    npus[n] = replace(npus[n], skip_words=skip_words)
    return _finishes(replace(system, npus=tuple(npus)), frames)


def _registered(held: int) -> int:
    """Words of a store that never holds more than ``held`` and so never stops its source."""
    return held + FREE_WORDS * (held > timing.LUT_RAM_WORDS)


def _least(low: int, high: int, enough: Callable[[int], bool]) -> int:
    """The least number from ``low`` to ``high`` that is enough, as ``high`` is."""
    while low < high:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle + 1
    return high


def _finishes(system: System, frames: int) -> bool:
    """Whether the system gets to the end of all frames."""
    try:
        simulate(system, frames)
    except Deadlock:
        return False
    return True
