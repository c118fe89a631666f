"""A network that was compiled for a design: one `Program`, or a program for each of its partitions.

What a driver needs of both is here: which images the network takes, what its outputs mean, and the programs that must
run for them.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from bitloom.golden import classes
from bitloom.golden.atomic import write_bytes
from bitloom.golden.encoding import Array
from bitloom.golden.host.host import Host
from bitloom.golden.layer import Map
from bitloom.golden.reading.file import naming

from .program_host import input_of

P = TypeVar("P")
"""Type of a turn's program: `bitloom.hls_gen.design.program.Program`."""
OUTPUT = "@output"
"""Name of the one map that a program alone makes. No layer can have it."""
CHECKED_VALUES = 1 << 18
"""Values of images that are checked at a time."""


@dataclass(frozen=True)
class MapChannels:
    """Channels of a map in the host's memory."""

    map: str
    """The map, by the name of the layer that makes it, or `bitloom.golden.graph.INPUT`."""
    begin: int
    end: int
    """begin, end: the first channel, and the one behind the last."""

    def __str__(self) -> str:
        return f"channels {self.begin}..{self.end - 1} of {self.map}"


@dataclass(frozen=True)
class Turn(Generic[P]):
    """A program, and the maps in the host's memory for which it runs."""

    program: P
    reads: tuple[MapChannels, ...]
    """Its images, channels behind channels."""
    gives: MapChannels
    """Where its outputs are."""


class CompiledNetwork(ABC, Generic[P]):
    """A compiled network.

    Attributes
    ----------
    name
        The network's name.
    design_digest, model_digest
        Of the design that it runs on, and of the network and its arrays: 64 hex digits each.
    input
        Map of one image.
    host
        The host's part of an imported network; None for others.
    classes
        Names of the output's channels, or ().
    output_maps
        Maps that leave for a frame.
    ideal_cycles
        Beats of the busiest NPU in a frame, of all programs together: no frame takes fewer cycles.
    layers
        (name, ideal cycles) of each layer that the device computes.
    """

    name: str
    design_digest: str
    model_digest: str
    input: Map
    host: Host | None
    classes: tuple[str, ...]
    output_maps: int
    ideal_cycles: int
    layers: tuple[tuple[str, int], ...]

    @property
    @abstractmethod
    def turns(self) -> tuple[Turn[P], ...]:
        """The programs that run for each image, one after another; the last one ends the output."""

    @property
    @abstractmethod
    def network_shape(self) -> tuple[int, int, int]:
        """(height, width, channels) of the network's output."""

    @property
    @abstractmethod
    def weighted_mapping(self) -> tuple[int, ...] | None:
        """NPU of each weighted layer, without copies: what compiles the network as it was. None: the compiler
        chooses."""

    @property
    def programs(self) -> tuple[P, ...]:
        """All programs, in the order in which they run."""
        return tuple(turn.program for turn in self.turns)

    def only_program(self, user: str) -> P:
        """The network's one program; ValueError, which says that ``user`` needs it, where there are several."""
        self.require(len(self.programs) == 1, f"{user} needs a network of one program, without partitions", "several")
        return self.programs[0]

    @property
    @abstractmethod
    def gives_single_bits(self) -> bool:
        """Whether each value of the network's output is one bit, as the device gives it."""

    @abstractmethod
    def to_bytes(self) -> bytes:
        """Content of the file, which ends with the digest of the rest; equal programs are equal bytes."""

    def save(self, path: str | Path) -> None:
        """Write the file, in one step: a process that is killed leaves the old file."""
        write_bytes(path, self.to_bytes())

    def require(self, ok: bool, rule: str, value: Any) -> None:
        """Raise ValueError with the rule and the value unless ``ok``."""
        if not ok:
            raise ValueError(f"{self.name}: {rule}, got {value}")

    def check_images(self, images: Array) -> None:
        """Raise ValueError unless ``images`` are (n, H, W, C) integers of the input map's encoding."""
        shape = ", ".join(str(n) for n in self.input.shape)
        got = getattr(images, "shape", type(images).__name__)
        ok = isinstance(images, np.ndarray) and images.ndim == 4 and images.shape[1:] == self.input.shape
        self.require(ok, f"images must have shape (N, {shape})", got)
        encoding = self.input.encoding
        count = max(1, CHECKED_VALUES // self.input.size)
        for i in range(0, max(len(images), 1), count):
            encoding.check(f"{self.name}: images", images[i : i + count])

    @property
    def has_classes(self) -> bool:
        """Whether the network has one output, which tells a class."""
        return self.output_maps == 1 if self.host is None else self.host.has_scores

    def require_classes(self) -> None:
        """ValueError unless the network has one output, which tells a class."""
        if self.host is not None:
            self.host.require_classes()
        self.require(self.has_classes, "classes are of networks with one output", self.output_maps)

    def classify(self, outputs: Array) -> Array:
        """Find the class, (n,), of each frame: the number of its largest output value, of equal ones the first.

        That is so if the output is 1 x 1 x classes. Of single bits it is the last one that is set, else 0. Of an
        imported network it is the largest score of its file. ValueError if there are several outputs.
        """
        self.require_classes()
        if self.host is not None:
            return self.host.classes(outputs)
        values = outputs.reshape(len(outputs), prod(self.network_shape))
        return classes.highest_set(values) if self.gives_single_bits else classes.largest(values)

    def to_input(self, images: Array) -> Array:
        """Make values of the input, (n, H, W, C) integers, of an imported network's images as its file has them.

        Parameters
        ----------
        images
            (n, ...) numbers; where the network isn't an imported one, (n, H, W, C) integers, which stay as they are.

        Raises
        ------
        ValueError
            Images have another shape, or give values that aren't the input's.
        """
        if self.host is None:
            return images
        with naming(self.name):
            return input_of(self.host, images, self.input)
