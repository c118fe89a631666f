"""Figures of the reference designs, measured in simulation; the same on every machine and in every run.

cycles_per_frame is that of a steady stream: a batch of n frames and one of 2 n are run, each from an idle device to its
last result, and

    cycles_per_frame = (cycles(2 n) - cycles(n)) / n

so that what only the first and the last frame cost is not in it. The same goes for beats and waits, which add up to it.
latency_cycles is a frame alone: the cycles of a batch of one, from the first word of the frame taken, its header
accepted, to its last result word.

A lane is one multiply-accumulate of one input channel and one kernel a cycle, whatever the width of its operands:
kfp * kgp of every NPU. In a layer that reads bit planes side by side, a channel takes several lanes of a binary NPU.
xnor_lanes are the lanes that are XNOR gates: kfp * kgp of the binary NPUs.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from driver.accelerator import Accelerator
from golden import packed
from hls_gen.design import Design

from . import build as builds
from . import networks
from .area import area
from .board import activate
from .designs import REFERENCES, Reference
from .fit import fit
from .run import random_images

FOLDER = Path("build/bench")
FRAMES = 8
PER_FRAME = ("beats", "wait_input", "wait_room", "wait_table")
AREA = ("lut", "lutram", "ff", "bram36", "dsp", "levels")

Figures = dict[str, Any]
Progress = Callable[[int, int], None]


def reference(name: str) -> Reference:
    """The reference design of that name; ValueError if there is none."""
    if name not in REFERENCES:
        raise ValueError(f"bench: name must be one of {', '.join(REFERENCES)}, got {name!r}")
    return REFERENCES[name]


def measure(
    name: str, design: Reference, frames: int = FRAMES, folder: Path = FOLDER, progress: Progress | None = None
) -> tuple[Figures, builds.Build]:
    """Figures of a design by name, and its build, in ``folder / name``.

    frames : of the longer batch, even, >= 2; random images, all compared with golden.
    progress : called with (frames done, frames) after each batch.
    """
    if frames < 2 or frames % 2:
        raise ValueError(f"bench: frames must be an even number >= 2, got {frames}")
    model = networks.load(design.network)
    hardware = fit(name, [model], design.folding, stream_bits=design.stream_bits, order=design.order)
    build = builds.build(folder / name, hardware, [model], order=design.order)
    program, images = build.program(model.network.name), random_images(model.network, frames, 0)
    golden = packed.forward(model, images)
    wrong, counters = np.zeros(frames, bool), {}
    lengths = sorted({1, frames // 2, frames})
    board = activate()
    try:
        board.waveform = None
        board.stall()
        with Accelerator(build.bit) as accelerator:
            accelerator.load(program)
            for number, length in enumerate(lengths):
                accelerator.clear_counters()
                outputs = accelerator.predict(images[:length], length)
                counters[length] = accelerator.counters()
                wrong[:length] |= (outputs != golden[:length]).any(axis=(1, 2, 3))
                if progress is not None:
                    progress(sum(lengths[: number + 1]), sum(lengths))
    finally:
        board.close()
    return {
        "name": name, **lanes(hardware), "frames": frames, "mismatches": int(wrong.sum()),
        **_steady(counters, program.ideal_cycles), "latency_cycles": counters[1]["cycles"],
    }, build  # fmt: skip


def lanes(design: Design) -> Figures:
    """NPUs and lanes of a design, as the module's text counts them."""
    return {
        "npus": len(design.npus),
        "lanes": sum(n.kfp * n.kgp for n in design.npus),
        "xnor_lanes": sum(n.kfp * n.kgp for n in design.npus if n.kind == "binary"),
    }


def area_figures(design: Design) -> Figures:
    """AREA of a design; BuildError where Yosys is missing. ``lut`` are those of logic, ``lutram`` those of memory."""
    found = area(design)
    return {key: getattr(found if key == "levels" else found.total, key) for key in AREA}


def _steady(counters: Mapping[int, Mapping[str, int]], ideal: int) -> Figures:
    """Figures a frame of a steady stream, from the counters of batches of so many frames."""
    few, many = sorted(counters)[-2:]

    def per_frame(key: str) -> int | float:
        cycles, frames = counters[many][key] - counters[few][key], many - few
        return cycles / frames if cycles % frames else cycles // frames

    cycles = per_frame("cycles")
    return {
        "cycles_per_frame": cycles,
        "ideal_cycles_per_frame": ideal,
        "utilisation": ideal / cycles,
        **{f"{key}_per_frame": per_frame(f"npu0_{key}") for key in PER_FRAME},
    }
