"""How long this computer's processor takes for a network, to compare an accelerator with."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from bitloom.golden.kernels import native, packed
from bitloom.golden.network import Model

FEW = 8
"""Frames that the definition computes, which is slow."""
RUNS = 3
"""Measurements of the fast kernels; the shortest counts, as the others were disturbed."""


@dataclass(frozen=True)
class CpuTime:
    """Seconds a frame, measured here and now."""

    definition: float
    """``Model.forward``: numpy, written to be read."""
    kernels: float
    """``golden.kernels.packed.forward``."""
    kernels_by: str
    """Maker of these kernels: "C++", or "BLAS" where no compiler is found."""


def cpu_time(model: Model, images: np.ndarray) -> CpuTime:
    """Measure a network on this processor.

    Parameters
    ----------
    model
        The network.
    images
        (N, H, W, C) of its input's values; the definition computes the first few alone.
    """
    packed.forward(model, images[:1])  # compiles what is to be compiled
    return CpuTime(
        definition=_seconds(lambda: model.forward(images[:FEW])) / len(images[:FEW]),
        kernels=min(_seconds(lambda: packed.forward(model, images)) for _ in range(RUNS)) / len(images),
        kernels_by="BLAS" if native.missing() else "C++",
    )


def _seconds(run: Callable[[], object]) -> float:
    begin = perf_counter()
    run()
    return perf_counter() - begin
