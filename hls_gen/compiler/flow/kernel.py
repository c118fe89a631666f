"""Runs a network's record in C++ (native/flow.cpp), which is compiled where it first runs.

The components in Python say what each component does; those in C++ are only faster, and tests hold them equal. Where
nothing can be compiled, frames are run in Python.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from bitloom.golden.kernels import native

from .kahn import deadlock_of
from .network import ProcessNetwork
from .sequencer import Count

FOLDER = Path(__file__).parent / "native"


@cache
def library() -> ctypes.CDLL | None:
    """The functions of native/flow.cpp; None where nothing can be compiled."""
    try:
        functions = native.library([FOLDER / "flow.cpp"], includes=sorted(FOLDER.glob("*.h")))
    except native.BuildError:
        return None
    functions.bitloom_flow.restype = ctypes.c_int64
    return functions


@dataclass(frozen=True)
class FramesRun:
    """Cycles, counts and fill levels of frames that were run one after the other until they repeat."""

    done: Sequence[int]
    """Cycles in which they have left."""
    accepted: Sequence[int]
    """Cycles in which their headers were accepted."""
    counts: dict[int, Sequence[Count]]
    """By NPU: what its issuer had counted at the end of each of them."""
    stores: dict[str, int]
    """Most words that each store held at a time."""


def run(functions: ctypes.CDLL, network: ProcessNetwork, frames: int, apart: int) -> FramesRun:
    """Run at most so many frames of a network of which none is admitted, fewer where they repeat.

    Parameters
    ----------
    functions
        The library.
    network
        The network.
    frames, apart
        As of `SteadyStream`.

    Raises
    ------
    Deadlock
        The system can't finish.
    """
    record = network.record
    processes = network.processes
    numbers = record.numbers((process.component or process.generator, process.writes) for process in processes)
    left, accepted = np.zeros((2, frames), np.int64)
    counts = np.zeros((len(network.issuers), frames, len(Count._fields)), np.int64)
    levels = np.zeros(record.count, np.int64)
    stuck = np.zeros(len(processes), np.int64)
    ran = functions.bitloom_flow(
        ctypes.c_void_p(numbers.ctypes.data),
        *(ctypes.c_int64(number) for number in (frames, apart, *map(record.number, (network.done, network.admitted)))),
        *(ctypes.c_void_p(array.ctypes.data) for array in (left, accepted, counts, levels, stuck)),
    )
    if ran < 0:
        raise MemoryError(f"flow: no memory for {frames} frames")
    if ran == frames and (stuck >= 0).any():
        for process, number in zip(processes, stuck.tolist()):
            process.waits = ((record.stamps[number], 0),) if number >= 0 else ()
        raise deadlock_of(processes)
    return FramesRun(
        left[:ran].tolist(),
        accepted[:ran].tolist(),
        {n: [Count(*count) for count in each[:ran]] for n, each in zip(network.issuers, counts.tolist())},
        network.stores(lambda store: int(levels[record.number(store)])),
    )
