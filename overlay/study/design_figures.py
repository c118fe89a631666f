"""Figures of the reference designs, measured in simulation; the same on every machine and in every run.

cycles_per_frame is that of a steady stream: a batch of n frames and one of 2 n are run, each from an idle device to its
last result, and:

    cycles_per_frame = (cycles(2 n) - cycles(n)) / n

so it leaves out what only the first and the last frame cost. Beats and waits, which add up to it, are found in the same
way. latency_cycles is that of a frame alone: the cycles of a batch of one, from the first word of the frame, whose
header is accepted by then, to its last result word. That batch comes first, since the first frame after a network was
loaded waits for the tables' first rows, which later batches find read.

With several NPUs, ideal_cycles_per_frame are the beats of the busiest NPU, and the waits are of the same NPU;
utilisation is the part of all lanes (lane_counts) that is at work.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bitloom.driver.accelerator import Accelerator
from bitloom.golden.kernels import packed
from bitloom.golden.network import Model
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.area.synthesis import area
from bitloom.overlay.area_model.estimate import estimate
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.images import random_images
from bitloom.overlay.build.reference_designs import ReferenceDesign
from bitloom.overlay.virtual.board import activate

from .lane_counts import lanes, npu_lanes

FOLDER = Path("build/bench")
FRAMES = 8
"""Frames of the longer batch by default."""
PER_FRAME = ("beats", "wait_input", "wait_room", "wait_table")
"""Counters of an NPU that are given a frame."""
AREA = ("lut", "lutram", "ff", "bram36", "dsp", "levels")
"""Figures of ``area_figures``."""

Figures = dict[str, Any]
Progress = Callable[[int, int], None]


def measure(
    name: str, design: ReferenceDesign, frames: int = FRAMES, folder: Path = FOLDER, progress: Progress | None = None
) -> tuple[Figures, builds.Build]:
    """Build a design, run it and compare every frame with golden.

    Parameters
    ----------
    name
        What the design is called.
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
    if frames < 2 or frames % 2:
        raise ValueError(f"bench: frames must be an even number >= 2, got {frames}")
    models = design.models()
    hardware = design.design(name, models)
    build = builds.build(folder / name, hardware, models, choices=design.choices)
    return {"name": name, **lanes(hardware), **network_figures(build, models, frames, progress)}, build


def network_figures(
    build: builds.Build,
    models: Sequence[Model],
    frames: int = FRAMES,
    progress: Progress | None = None,
    images: np.ndarray | None = None,
) -> Figures:
    """Run networks on a build and compare every frame with golden.

    Parameters
    ----------
    build
        It has the networks' programs.
    models
        The network that the figures are about, then networks of which only cycles are given.
    frames, progress
        As of ``measure``.
    images
        (frames, H, W, C) images of the first network, or more of them; by default random ones.

    Returns
    -------
    dict
        Figures by name.
    """
    wrong, (alone, *batches), also = _batches(build, models, frames, progress, images)
    return {
        "frames": frames,
        "mismatches": wrong,
        **_steady(batches, build.design, build.program(models[0].network.name)),
        "latency_cycles": alone["cycles"],
        **({"also": also} if also else {}),
    }


def _batches(
    build: builds.Build, models: Sequence[Model], frames: int, progress: Progress | None, images: np.ndarray | None
) -> tuple[int, list[dict[str, int]], list[Figures]]:
    """Frames of the first network that differ from golden, counters of its batches, figures of the other networks.

    The batches are of 1, ``frames / 2`` and ``frames`` frames.
    """
    lengths = [1, frames // 2, frames]
    total = sum(lengths) + frames * len(models[1:])
    done = 0

    def count(more: int) -> None:
        nonlocal done
        done += more
        if progress is not None:
            progress(done, total)

    board = activate()
    try:
        board.waveform = None
        board.stall()
        with Accelerator(build.bit) as accelerator:
            first = build.program(models[0].network.name)
            wrong, counters = _run(accelerator, first, models[0], lengths, count, images)
            also = []
            for other in models[1:]:
                missed, cycles = _run(accelerator, build.program(other.network.name), other, [frames], count)
                also.append(
                    {
                        "network": other.network.name,
                        "frames": frames,
                        "mismatches": int(missed.sum()),
                        "cycles_per_frame": cycles[0]["cycles"] / frames,
                    }
                )
    finally:
        board.close()
    return int(wrong.sum()), counters, also


def _run(
    accelerator: Accelerator,
    program: Program,
    model: Model,
    lengths: Sequence[int],
    count: Callable[[int], None],
    images: np.ndarray | None = None,
) -> tuple[np.ndarray, list[dict[str, int]]]:
    """Run batches of so many of the same images, random ones by default.

    Returns a flag for each frame, True where it differs from golden, and the counters of each batch.
    """
    frames = max(lengths)
    images = random_images(model.network, frames, 0) if images is None else images[:frames]
    golden = packed.forward(model, images)
    wrong = np.zeros(frames, bool)
    counters = []
    accelerator.load(program)
    for length in lengths:
        accelerator.clear_counters()
        outputs = accelerator.predict(images[:length], length)
        counters.append(accelerator.counters())
        wrong[:length] |= (outputs != golden[:length]).any(axis=(1, 2, 3))
        count(length)
    return wrong, counters


def area_figures(design: Design) -> Figures:
    """AREA of a design; ``lut`` are the LUTs of logic, ``lutram`` those of memory.

    Raises
    ------
    BuildError
        If Yosys is missing.
    """
    synthesised = area(design)
    return {key: getattr(synthesised if key == "levels" else synthesised.total, key) for key in AREA}


def model_figures(design: Design) -> Figures:
    """AREA of a design by the area model, which knows no levels; in a moment, and without Yosys."""
    modelled = estimate(design)
    return {key: getattr(modelled, key) for key in AREA if key != "levels"}


def _steady(counters: Sequence[Mapping[str, int]], design: Design, program: Program) -> Figures:
    """Figures a frame of a steady stream, from the counters of a batch and of one of twice as many frames."""
    few, many = counters

    def per_frame(key: str) -> int | float:
        cycles = many[key] - few[key]
        frames = many["frames"] - few["frames"]
        return cycles / frames if cycles % frames else cycles // frames

    cycles = per_frame("cycles")
    npus: list[Figures] = [{key: per_frame(f"npu{n}_{key}") for key in PER_FRAME} for n in range(len(design.npus))]
    ideal = [sum(beats for (_, beats), n in zip(program.layers, program.mapping) if n == k) for k in range(len(npus))]
    work = sum(beats * npu_lanes(npu) for beats, npu in zip(ideal, design.npus))
    busiest = ideal.index(max(ideal))
    return {
        "cycles_per_frame": cycles,
        "ideal_cycles_per_frame": max(ideal),
        "utilisation": work / (cycles * lanes(design)["lanes"]),
        **{f"{key}_per_frame": npus[busiest][key] for key in PER_FRAME},
        **({"per_npu": npus} if len(npus) > 1 else {}),
    }
