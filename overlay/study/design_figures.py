"""Figures of the reference designs, measured in simulation; the same on every machine and in every run.

cycles_per_frame, beats and waits are those of a steady stream, latency_cycles those of a frame alone: see
overlay/build/measured.py.

With several NPUs, ideal_cycles_per_frame are the beats of the busiest NPU, and the waits are of the same NPU;
utilisation is the part of all lanes (lane_counts) that is at work.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bitloom.driver.predictor import Progress
from bitloom.golden.network import Model
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.area.synthesis import area
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.images import random_images
from bitloom.overlay.build.measured import FRAMES, Measured, check_even, lengths_of, measure
from bitloom.overlay.build.reference_designs import ReferenceDesign
from bitloom.overlay.build.run import run

from .lane_counts import lanes

FOLDER = Path("build/bench")
PER_FRAME = ("beats", "wait_input", "wait_room", "wait_table")
"""Counters of an NPU that are given a frame."""

FigureTable = dict[str, Any]


def measure_design(
    name: str, design: ReferenceDesign, frames: int = FRAMES, folder: Path = FOLDER, progress: Progress | None = None
) -> tuple[FigureTable, builds.Build]:
    """Build a design, run it and compare every frame with golden.

    Parameters
    ----------
    name
        Name of the design.
    design
        The reference design.
    frames
        Of the longer batch: an even number, 2 at the least.
    folder
        The build goes to ``folder / name``.
    progress
        Called with (frames done, frames) after each batch.

    Returns
    -------
    tuple
        Figures by name, and the build.

    Raises
    ------
    ValueError
        If ``frames`` is none.
    """
    check_even("bench", frames)
    models = design.models()
    hardware = design.sized(name, models)
    build = builds.build(folder / name, hardware, models, choices=design.choices)
    return {"name": name, **lanes(hardware.design), **network_figures(build, models, frames, progress)}, build


def network_figures(
    build: builds.Build,
    models: Sequence[Model],
    frames: int = FRAMES,
    progress: Progress | None = None,
    images: np.ndarray | None = None,
) -> FigureTable:
    """Run networks on a build and compare every frame with golden.

    Parameters
    ----------
    build
        It has the networks' programs.
    models
        The network that the figures are about, then networks of which only cycles are given.
    frames, progress
        As of ``measure_design``.
    images
        (frames, H, W, C) images of the first network, or more of them; by default random ones.

    Returns
    -------
    dict
        Figures by name.
    """
    model, *others = models
    total = sum(lengths_of(frames)) + frames * len(others)
    tell = None if progress is None else lambda done, _: progress(done, total)
    batches = measure(
        build, model, random_images(model.network, frames, 0) if images is None else images[:frames], tell
    )
    also = []
    for other in others:
        batch = run(build, other, random_images(other.network, frames, 0), batch=frames)
        also.append(
            {
                "network": other.network.name,
                "frames": frames,
                "mismatches": frames - batch.bit_exact_frames,
                "cycles_per_frame": batch.cycles_per_frame,
            }
        )
        if progress is not None:
            progress(total - frames * (len(others) - len(also)), total)
    return {
        "frames": frames,
        "mismatches": frames - batches.bit_exact_frames,
        **_steady(batches, build.design, build.program(model.network.name)),
        "latency_cycles": batches.latency,
        **({"also": also} if also else {}),
    }


def area_figures(design: Design) -> FigureTable:
    """Area of a design by Yosys, and its logic levels.

    Raises
    ------
    BuildError
        If Yosys is missing.
    """
    synthesised = area(design)
    return {**synthesised.total.figures, "levels": synthesised.levels}


def _steady(batches: Measured, design: Design, program: Program) -> FigureTable:
    """Figures a frame of a steady stream."""

    def per_frame(key: str) -> int | float:
        value = batches.steady(key)
        return int(value) if value.is_integer() else value

    cycles = per_frame("cycles")
    npus: list[FigureTable] = [{key: per_frame(f"npu{n}_{key}") for key in PER_FRAME} for n in range(len(design.npus))]
    ideal = [sum(beats for (_, beats), n in zip(program.layers, program.mapping) if n == k) for k in range(len(npus))]
    work = sum(beats * npu.lanes for beats, npu in zip(ideal, design.npus))
    busiest = ideal.index(max(ideal))
    return {
        "cycles_per_frame": cycles,
        "ideal_cycles_per_frame": max(ideal),
        "utilisation": work / (cycles * lanes(design)["lanes"]),
        **{f"{key}_per_frame": npus[busiest][key] for key in PER_FRAME},
        **({"per_npu": npus} if len(npus) > 1 else {}),
    }
