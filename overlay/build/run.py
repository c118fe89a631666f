"""Run a compiled network on the virtual board, through the driver, and compare every output with golden."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bitloom.driver.predictor import Progress
from bitloom.golden.kernels import packed
from bitloom.golden.network import Model
from bitloom.hls_gen.design.compiled_network import CompiledNetwork
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.steps import step

from .build import Build
from .images import check_frames

if TYPE_CHECKING:
    from bitloom.driver.accelerator import Accelerator

OPERATIONS = {"binary": "xnor_operations", "integer": "multiplications"}
"""Engine -> what its lanes compute."""


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Conditions under which a design is simulated."""

    stall: float = 0.0
    """Probability, 0..1, of a pause in each cycle, on both streams: what a busy memory does."""
    seed: int = 0
    """Seed of the pauses."""
    waveform: Path | None = None
    """VCD file to write, with every signal; None: none is written, and the simulation is faster."""
    first_alone: bool = False
    """Whether the first image has a transfer of its own, which tells the latency."""


IDEAL = Conditions()
"""Streams that never pause, no waveform."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """Outputs of hardware and of golden for the same images, with the hardware's counts."""

    program: CompiledNetwork[Program]
    """The program that ran."""
    outputs: np.ndarray
    golden: np.ndarray
    """outputs, golden: (N, H, W, C) integers: what the simulated hardware gave, and what golden gives."""
    counters: dict[str, int]
    """Sums of the driver's counters over all frames, by name."""
    seconds: float
    """Wall-clock time of the simulation while frames ran."""
    build_seconds: float
    """Wall-clock time to compile the model; next to nothing where the cache has it."""
    design: Design
    """The hardware."""
    latency: int | None = None
    """Clock cycles of the first frame, where it ran alone; None where it didn't."""
    transfers: int = 1
    """How many transfers the frames came in, that of the first one included."""

    @property
    def frames(self) -> int:
        """Number of images that were run."""
        return len(self.outputs)

    @property
    def exact(self) -> np.ndarray:
        """(frames,) booleans: whether all outputs of an image equal golden's."""
        equal: np.ndarray = (self.outputs == self.golden).reshape(self.frames, -1).all(axis=1)
        return equal

    @property
    def bit_exact_frames(self) -> int:
        """Number of images whose outputs all equal golden's."""
        return int(self.exact.sum())

    @property
    def cycles_per_frame(self) -> float:
        """Clock cycles a frame, with the start and the end of the transfers."""
        return self.counters["cycles"] / self.frames

    @property
    def cycles_between_frames(self) -> float | None:
        """Clock cycles from one result to the next within a transfer, which don't depend on how many frames ran.

        A transfer takes the latency of its first frame, and so many cycles for each frame after it. None where the
        latency isn't known, or each transfer has a single frame.
        """
        if self.latency is None or self.frames == self.transfers:
            return None
        return (self.counters["cycles"] - self.transfers * self.latency) / (self.frames - self.transfers)

    @property
    def utilisation(self) -> float:
        """Beats that the busiest NPU needs at the least over the cycles that passed, 0..1."""
        return self.program.ideal_cycles / (self.cycles_between_frames or self.cycles_per_frame)

    def lane_operations(self, engine: str) -> int:
        """Operations of all lanes of the NPUs of an engine in all frames: XNOR gates, or multiplications."""
        lanes = [n.array.kfp * n.array.kgp if n.engine == engine else 0 for n in self.design.npus]
        return sum(count * self.counters[f"npu{n}_beats"] for n, count in enumerate(lanes))

    def report(self, labels: np.ndarray | None = None) -> dict[str, float]:
        """Figures of the run, for people and for files.

        Parameters
        ----------
        labels
            (N,) classes of the images; with them there are also accuracies.

        Returns
        -------
        dict
            Figures by name. Counters of an NPU are given a frame, with its number where there are several NPUs.
            Where the first frame ran alone there is its latency, and cycles a frame are those between frames. An
            engine that the design doesn't have has no operations.
        """
        latency = self.latency
        between = self.cycles_between_frames
        seconds = self.seconds
        engines = {npu.engine for npu in self.design.npus}
        out: dict[str, float] = {
            "frames": self.frames,
            "transfers": self.transfers,
            "bit_exact_frames": self.bit_exact_frames,
            "seconds": self.seconds,
            **({"latency_cycles": latency} if latency is not None else {}),
            "cycles_per_frame": self.cycles_per_frame if between is None else between,
            "ideal_cycles_per_frame": self.program.ideal_cycles,
            "utilisation": self.utilisation,
            "simulated_cycles_per_second": self.counters["cycles"] / seconds,
            **{
                f"simulated_{name}_per_second": self.lane_operations(engine) / seconds
                for engine, name in OPERATIONS.items()
                if engine in engines
            },
            "build_seconds": self.build_seconds,
        }
        alone = not any(key.startswith("npu1_") for key in self.counters)
        for key, count in self.counters.items():
            if key.startswith("npu"):
                out[f"{key.removeprefix('npu0_') if alone else key}_per_frame"] = count / self.frames
        if labels is not None:
            for key, result in (("golden", self.golden), ("hardware", self.outputs)):
                out[f"accuracy_{key}"] = float((self.program.classify(result) == labels).mean())
        return out


def run(
    build: Build,
    model: Model,
    images: np.ndarray,
    *,
    batch: int | None = None,
    conditions: Conditions = IDEAL,
    progress: Progress | None = None,
) -> Run:
    """Run a network of a build on the virtual board, through the driver, and compute the same with golden.

    Parameters
    ----------
    build
        The hardware and its compiled networks.
    model
        The network, as it was when the build's program was compiled from it.
    images
        (N, H, W, C) integers of the network's input.
    batch
        Frames of a transfer; None: as many as fit.
    conditions
        How the simulated streams behave, and whether a waveform is written.
    progress
        Called with (frames done, frames) after each transfer.

    Returns
    -------
    Run
        Outputs of both, and the driver's counters.

    Raises
    ------
    ValueError
        If the build has no such network, was compiled from another model, or the images are none of the network's; or
        if build.json describes another design than the manifest, or the hardware counts no cycles.
    """
    from bitloom.overlay.virtual.board import activate  # says what to do where there is no pynq

    program = build.program_of(model)
    program.check_images(images)
    check_frames(model.network, len(images))
    board = activate()
    try:
        board.waveform = conditions.waveform
        board.stall(source=conditions.stall, sink=conditions.stall, seed=conditions.seed)
        begin = time.perf_counter()
        with _opened(build) as accelerator:
            built = time.perf_counter() - begin
            accelerator.load(program)
            accelerator.clear_counters()
            start = time.perf_counter()
            with step(f"simulating {len(images):,} frames"):
                outputs, latency, transfers = _outputs(accelerator, images, batch, progress, conditions.first_alone)
            seconds = time.perf_counter() - start
            counters = accelerator.counters()
    finally:
        board.close()
    check_cycles(program.name, [counters["cycles"]])
    with step(f"computing {len(images):,} frames with golden"):
        golden = packed.forward(model, images)
    return Run(
        program=program,
        outputs=outputs,
        golden=golden,
        counters=counters,
        seconds=seconds,
        build_seconds=built,
        design=build.design,
        latency=latency,
        transfers=transfers,
    )


def _outputs(
    accelerator: "Accelerator", images: np.ndarray, batch: int | None, progress: Progress | None, first_alone: bool
) -> tuple[np.ndarray, int | None, int]:
    """The outputs of all images, the latency where the first one runs alone, and the number of transfers."""
    count = len(images)
    transfers = 0

    def told(before: int) -> Progress:
        def tell(done: int, _: int) -> None:
            nonlocal transfers
            transfers += 1
            if progress is not None:
                progress(before + done, count)

        return tell

    if not first_alone:
        outputs = accelerator.predict(images, batch, told(0))
        return outputs, None, transfers
    first = accelerator.predict(images[:1], 1, told(0))
    latency = accelerator.counters()["cycles"]
    outputs = np.concatenate([first, accelerator.predict(images[1:], batch, told(1))])
    return outputs, latency, transfers


def _opened(build: Build) -> "Accelerator":
    """The build's accelerator on the active board; logged as a step, as the model may have to be compiled."""
    from bitloom.driver.accelerator import Accelerator

    with step(f"opening {build.bit.stem}"):
        accelerator = Accelerator(build.bit)
    try:
        build.check_design(accelerator.manifest.design)
    except ValueError:
        accelerator.close()
        raise
    return accelerator


def check_cycles(name: str, cycles: Sequence[int]) -> None:
    """Refuse counts of cycles that no figure can be made of.

    Parameters
    ----------
    name
        Beginning of the message.
    cycles
        Cycles that the hardware counted for batches of frames, each longer than the one before it.

    Raises
    ------
    ValueError
        Unless the first batch took a cycle, and every batch more cycles than the one before it.
    """
    if not all(before < after for before, after in zip((0, *cycles), cycles)):
        raise ValueError(f"{name}: cycles must be above 0 and grow with the batches, got {list(cycles)}")
