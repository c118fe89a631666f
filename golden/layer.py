"""What every layer has: a name, a map in, a map out, arrays with shapes, and its arithmetic."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .encoding import Array, Encoding


@dataclass(frozen=True, kw_only=True)
class Map:
    """The H x W x C tensor between two layers (spec B)."""

    height: int
    width: int
    channels: int
    encoding: Encoding

    def __post_init__(self) -> None:
        for what in ("height", "width", "channels"):
            value = getattr(self, what)
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"map: {what} must be an integer >= 1, got {value!r}")

    @property
    def shape(self) -> tuple[int, int, int]:
        """(height, width, channels)."""
        return self.height, self.width, self.channels

    @property
    def positions(self) -> int:
        """Number of (row, column) positions."""
        return self.height * self.width

    @property
    def size(self) -> int:
        """Number of values."""
        return self.positions * self.channels


@dataclass(frozen=True, kw_only=True)
class Layer(ABC):
    """Free parameters of one layer. What can be derived is a method of the input map; arrays live in the Model.

    name : unique in the network: a lower-case letter, then lower-case letters, digits and underscores.
    """

    kind: ClassVar[str]
    name: str

    def __post_init__(self) -> None:
        word = self.name.replace("_", "a") if isinstance(self.name, str) else ""
        if not (word.isascii() and word.isalnum() and word == word.lower() and self.name[:1].isalpha()):
            raise ValueError(f"layer: name must be lower_snake_case, got {self.name!r}")

    @abstractmethod
    def output(self, source: Map) -> Map:
        """Map that the layer makes from ``source``; ValueError if it can't read such a map."""

    @abstractmethod
    def forward(self, x: Array, arrays: Mapping[str, Array], source: Map) -> Array:
        """(N, H, W, C) int64 of ``source`` -> (N, H', W', C') int64. The definition; obvious, not fast."""

    def array_shapes(self, source: Map) -> dict[str, tuple[int, ...]]:
        """Arrays that the layer needs: name -> shape."""
        return {}

    def check_arrays(self, arrays: Mapping[str, Array], source: Map) -> None:
        """Raise ValueError unless the arrays have the right names, shapes, integer dtypes and values."""
        shapes = self.array_shapes(source)
        if set(arrays) != set(shapes):
            raise ValueError(f"{self.name}: arrays must be {sorted(shapes)}, got {sorted(arrays)}")
        for key, shape in shapes.items():
            if arrays[key].shape != shape:
                raise ValueError(f"{self.name}.{key}: shape must be {shape}, got {arrays[key].shape}")
            if not np.issubdtype(arrays[key].dtype, np.integer):
                raise ValueError(f"{self.name}.{key}: dtype must be integer, got {arrays[key].dtype}")
