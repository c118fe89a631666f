"""The run that a report is about: batches of random images on the simulated board.

Three batches, each from an idle device to its last result: one frame, which gives the latency; and frames / 2 and
frames of them, whose difference is a steady stream, without what only its first and last frame cost
(overlay/study/design_figures.py).
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bitloom.golden.network import Model
from bitloom.overlay.build.build import Build
from bitloom.overlay.build.run import Progress, random_images, run

FORMAT, VERSION = "bitloom-run", 1
FRAMES = 8
"""By default."""
SEED = 0
"""Of the images; counters don't depend on what is in them."""


@dataclass(frozen=True)
class Measured:
    """A run.

    network : its name.  design_digest, model_digest : of what ran.  frames : of the longest batch.  bit_exact_frames :
    those equal to golden in every batch.  counters : of the driver, by batch length.
    """

    network: str
    design_digest: str
    model_digest: str
    frames: int
    bit_exact_frames: int
    counters: Mapping[int, Mapping[str, int]]

    def steady(self, counter: str) -> float:
        """Of a counter, what a frame of a steady stream adds."""
        half = self.frames // 2
        return (self.counters[self.frames][counter] - self.counters[half][counter]) / (self.frames - half)

    @property
    def latency(self) -> int:
        """Cycles of a frame alone, from the acceptance of its header to its last result word."""
        return self.counters[1]["cycles"]

    def to_dict(self) -> dict[str, Any]:
        """JSON data; ``from_dict`` is its inverse."""
        return {"format": FORMAT, "version": VERSION, **asdict(self)}

    @classmethod
    def from_dict(cls, data: Any, name: str) -> "Measured":
        """Run of ``to_dict``'s data, also after JSON made texts of the lengths; ValueError with ``name``."""
        try:
            if data["format"] != FORMAT or data["version"] != VERSION:
                raise ValueError(
                    f"{name}: format must be {FORMAT} version {VERSION}, got {data['format']} {data['version']}"
                )
            counters = {int(n): {key: int(v) for key, v in own.items()} for n, own in data["counters"].items()}
            made = cls(data["network"], data["design_digest"], data["model_digest"], data["frames"],
                       data["bit_exact_frames"], counters)  # fmt: skip
            if set(counters) != set(_lengths(made.frames)):
                raise ValueError(f"{name}: counters must be of batches of {_lengths(made.frames)}, got {[*counters]}")
            return made
        except (KeyError, TypeError, AttributeError) as e:
            raise ValueError(f"{name}: a run must be what `bitloom report --json` prints, got: {e!r}") from None

    @classmethod
    def load(cls, path: Path) -> "Measured":
        """The run in what ``bitloom report --json`` printed; FileNotFoundError or ValueError."""
        try:
            data = json.loads(path.read_text())
        except ValueError as e:
            raise ValueError(f"{path}: a run must be JSON, got: {e}") from None
        return cls.from_dict(data.get("run") if isinstance(data, dict) else data, str(path))


def measure(build: Build, model: Model, frames: int, progress: Progress | None = None) -> Measured:
    """Run batches of 1, ``frames`` / 2 and ``frames`` images. frames : even, >= 2.

    progress : called with (frames done, frames in all) after each batch. ValueError as ``overlay.build.run.run``.
    """
    lengths = _lengths(frames)
    images = random_images(model.network, frames, SEED)
    counters, exact, done = {}, np.ones(frames, bool), 0
    for length in lengths:
        made = run(build, model, images[:length], batch=length)
        counters[length], done = made.counters, done + length
        exact[:length] &= (made.outputs == made.golden).reshape(length, -1).all(axis=1)
        if progress is not None:
            progress(done, sum(lengths))
    program = build.program(model.network.name)
    return Measured(program.name, program.design_digest, program.model_digest, frames, int(exact.sum()), counters)


def _lengths(frames: int) -> list[int]:
    """Lengths of the batches."""
    if not isinstance(frames, int) or frames < 2 or frames % 2:
        raise ValueError(f"report: frames must be an even number >= 2, got {frames!r}")
    return sorted({1, frames // 2, frames})
