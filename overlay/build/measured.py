"""Cycles and waits of a network on the simulated board, without what only the first and the last frame cost.

Three batches run, each from an idle device to its last result: one of 1 frame, which gives the latency; and batches of
n and 2 n frames, whose difference is n frames of a steady stream:

    cycles a frame = (cycles(2 n) - cycles(n)) / n

Figures are the same on every machine and in every run.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bitloom.driver.predictor import Progress
from bitloom.golden.integers import plain
from bitloom.golden.network import Model
from bitloom.golden.reading.json_text import read_json
from bitloom.hls_gen.design.reader import Reader

from .build import Build
from .run import check_cycles, run

FORMAT = "bitloom-run"
VERSION = 1
FRAMES = 8
"""Frames of the longest batch by default."""


@dataclass(frozen=True)
class Measured:
    """Batches of a network's images on the simulated board."""

    network: str
    """The network's name."""
    design_digest: str
    model_digest: str
    """design_digest, model_digest: of what ran."""
    frames: int
    """Frames of the longest batch."""
    bit_exact_frames: int
    """Frames that equal golden in every batch."""
    counters: Mapping[int, Mapping[str, int]]
    """The driver's counters by name, for each length of a batch."""

    def steady(self, counter: str) -> float:
        """Number that a frame of a steady stream adds to a counter; ValueError if the run hasn't that counter."""
        if counter not in self.counters[self.frames]:
            raise ValueError(f"{self.network}: the run's counters must hold {counter}")
        half = self.frames // 2
        return (self.counters[self.frames][counter] - self.counters[half][counter]) / (self.frames - half)

    @property
    def latency(self) -> int:
        """Cycles of a frame alone, from the acceptance of its header to its last result word."""
        return self.counters[1]["cycles"]

    def to_dict(self) -> dict[str, Any]:
        """JSON data, of which ``from_dict`` makes the run again."""
        return {"format": FORMAT, "version": VERSION, **asdict(self)}

    @classmethod
    def from_dict(cls, data: Any, name: str) -> "Measured":
        """The run of ``to_dict``'s data, also after JSON made texts of the lengths.

        Raises
        ------
        ValueError
            If the data are none; the message begins with ``name``.
        """
        run = Reader(data, f"{name}: run")
        run.format(FORMAT, VERSION)
        frames = run.number("frames", 2)
        check_even(f"{name}: run", frames)
        lengths = lengths_of(frames)
        batches = run.inner("counters")
        if sorted(batches.data) != sorted(map(str, lengths)):
            raise ValueError(f"{name}: counters must be of batches of {lengths}, got [{', '.join(batches.data)}]")
        counters = {}
        for length in lengths:
            counts = batches.inner(str(length))
            counters[length] = {key: counts.number(key) for key in counts.data}
            counts.require(
                counts.data.keys() == counters[1].keys(), "counters must be the same in every batch", [*counts.data]
            )
        check_cycles(f"{name}: run", [counts.get("cycles", 0) for counts in counters.values()])
        return cls(
            run.text("network"),
            run.digest("design_digest"),
            run.digest("model_digest"),
            frames,
            run.number("bit_exact_frames", 0, frames),
            counters,
        )

    @classmethod
    def load(cls, path: Path) -> "Measured":
        """The run in a file that ``bitloom report --json`` printed.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If it holds no run.
        """
        report = Reader(read_json(path, "a run"), str(path))
        return cls.from_dict(report.data.get("run"), str(path))


def measure(build: Build, model: Model, images: np.ndarray, progress: Progress | None = None) -> Measured:
    """Run batches of one of the images, of half of them and of all, and compare every frame with golden.

    Parameters
    ----------
    build, model
        The build, and the model that its network was compiled from.
    images
        (N, H, W, C) values of the network's input, N >= 2.
    progress
        Called with (frames done, frames in all) after each batch.

    Raises
    ------
    ValueError
        If `run` refuses the model or the images.
    """
    frames = len(images)
    lengths = lengths_of(frames)
    counters = {}
    exact = np.ones(frames, bool)
    done = 0
    for length in lengths:
        batch = run(build, model, images[:length], batch=length)
        counters[length] = batch.counters
        done += length
        exact[:length] &= batch.exact
        if progress is not None:
            progress(done, sum(lengths))
    check_cycles(model.network.name, [counters[length]["cycles"] for length in lengths])
    program = build.program(model.network.name)
    return Measured(program.name, program.design_digest, program.model_digest, frames, int(exact.sum()), counters)


def lengths_of(frames: int) -> list[int]:
    """Frames of each batch, where the longest one has ``frames``, 2 at the least."""
    return sorted({1, frames // 2, frames})


def check_even(name: str, frames: int) -> None:
    """ValueError, which begins with ``name``, unless ``frames`` is an even number, 2 at the least."""
    frames = plain(frames)
    if not isinstance(frames, int) or frames < 2 or frames % 2:
        raise ValueError(f"{name}: frames must be an even number >= 2, got {frames!r}")
