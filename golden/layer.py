"""Base of all layers: a name, the maps that it reads, the map that it makes, arrays with shapes, its arithmetic."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from .encoding import Array, Encoding
from .integers import make_fields_plain
from .names import check_layer_names


@dataclass(frozen=True, kw_only=True)
class Map:
    """The tensor between two layers (spec B), without its values."""

    height: int
    width: int
    """height, width: rows and columns, each >= 1."""
    channels: int
    """Values at each position, >= 1."""
    encoding: Encoding
    """Which integers the values may be."""

    def __post_init__(self) -> None:
        make_fields_plain(self)
        for what in ("height", "width", "channels"):
            value = getattr(self, what)
            if type(value) is not int or value < 1:
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
    """The free parameters of one layer, and what the layer computes.

    A layer doesn't know the maps that it reads: methods get them as ``sources``, in the order of the layer's inputs.
    The layer's arrays, such as weights, lie in the `Model`.
    """

    kind: ClassVar[str]
    """Of the class: its name in files."""
    input_count: ClassVar[int] = 1
    """Of the class: how many maps a layer of this kind reads, >= 1."""
    takes_more: ClassVar[bool] = False
    """Of the class: whether it may read more than these."""
    name: str
    """Unique in the network: a lower-case letter, then lower-case letters, digits and underscores, 64 at most."""
    inputs: tuple[str, ...] = field(default=(), metadata={"written_if_set": True})
    """Names of the maps that the layer reads: of the layers that make them, or `bitloom.golden.graph.INPUT`. By default
    a layer with one input reads the map of the layer that is listed before it."""

    def __post_init__(self) -> None:
        check_layer_names(self.name)
        make_fields_plain(self)
        named = isinstance(self.inputs, tuple) and all(isinstance(name, str) for name in self.inputs)
        count = self.input_count
        default = self.input_count == 1 and self.inputs == ()
        given = len(self.inputs) if named else 0
        if not (default or given == count or (self.takes_more and given > count)):
            maps = "1 map" if count == 1 else f"{count} maps" + " or more" * self.takes_more
            raise ValueError(f"{self.name}: inputs must be a tuple with the names of {maps}, got {self.inputs!r}")

    @abstractmethod
    def output_of(self, sources: Sequence[Map]) -> Map:
        """The map that the layer makes.

        Parameters
        ----------
        sources : sequence of Map
            The maps that the layer reads.

        Raises
        ------
        ValueError
            If the layer can't read such maps.
        """

    @abstractmethod
    def forward_of(self, inputs: Sequence[Array], arrays: Mapping[str, Array], sources: Sequence[Map]) -> Array:
        """The layer's arithmetic: the definition, obvious and not fast.

        Parameters
        ----------
        inputs : sequence of (N, H, W, C) int64
            Values of each map that the layer reads.
        arrays : mapping of str to array
            The layer's arrays by name.
        sources : sequence of Map
            The maps that the layer reads.

        Returns
        -------
        (N, H', W', C') int64
        """

    def array_shapes_of(self, sources: Sequence[Map]) -> dict[str, tuple[int, ...]]:
        """Name and shape of each array that the layer needs."""
        return {}

    @property
    def array_ranges(self) -> dict[str, tuple[int, int]]:
        """Smallest and largest value of arrays by name, where no encoding says which values they have."""
        return {}

    def check_arrays_of(self, arrays: Mapping[str, Array], sources: Sequence[Map]) -> None:
        """Raise ValueError unless the arrays have the right names, shapes, integer dtypes and values."""
        shapes = self.array_shapes_of(sources)
        if set(arrays) != set(shapes):
            raise ValueError(f"{self.name}: arrays must be {sorted(shapes)}, got {sorted(arrays)}")
        for key, shape in shapes.items():
            if arrays[key].shape != shape:
                raise ValueError(f"{self.name}.{key}: shape must be {shape}, got {arrays[key].shape}")
            if not np.issubdtype(arrays[key].dtype, np.integer):
                raise ValueError(f"{self.name}.{key}: dtype must be integer, got {arrays[key].dtype}")
        for key, (low, high) in self.array_ranges.items():
            bad = (arrays[key] < low) | (arrays[key] > high)
            if bad.any():
                raise ValueError(f"{self.name}.{key}: values must be {low}..{high}, got {arrays[key][bad][0]}")


@dataclass(frozen=True, kw_only=True)
class OneInput(Layer):
    """A layer that reads one map, ``source``. Methods are those of `Layer` for one map."""

    @abstractmethod
    def output(self, source: Map) -> Map:
        """The map that the layer makes from ``source``; ValueError if it can't read such a map."""

    @abstractmethod
    def forward(self, x: Array, arrays: Mapping[str, Array], source: Map) -> Array:
        """(N, H, W, C) int64 values of ``source`` -> (N, H', W', C') int64. The definition; obvious, not fast."""

    def array_shapes(self, source: Map) -> dict[str, tuple[int, ...]]:
        """Name and shape of each array that the layer needs."""
        return {}

    def check_arrays(self, arrays: Mapping[str, Array], source: Map) -> None:
        """Raise ValueError unless the arrays have the right names, shapes, integer dtypes and values."""
        super().check_arrays_of(arrays, [source])

    def output_of(self, sources: Sequence[Map]) -> Map:
        return self.output(sources[0])

    def forward_of(self, inputs: Sequence[Array], arrays: Mapping[str, Array], sources: Sequence[Map]) -> Array:
        return self.forward(inputs[0], arrays, sources[0])

    def array_shapes_of(self, sources: Sequence[Map]) -> dict[str, tuple[int, ...]]:
        return self.array_shapes(sources[0])

    def check_arrays_of(self, arrays: Mapping[str, Array], sources: Sequence[Map]) -> None:
        self.check_arrays(arrays, sources[0])
