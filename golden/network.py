"""The one description of a network: an input map and a list of layers. It says nothing about hardware."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from bitloom.golden.layers.conv import Conv, Dense
from bitloom.golden.layers.pool import AvgPool, MaxPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold

from .encoding import Array, Encoding
from .layer import Layer, Map

LAYER_KINDS: dict[str, type[Layer]] = {c.kind: c for c in (Conv, Dense, MaxPool, AvgPool, Threshold, Requantise)}


@dataclass(frozen=True, kw_only=True)
class Network:
    """``layers`` are computed in order, each reading the map before it.

    name : lower_snake_case or with dashes.  input : the map of one image.  classes : names of the outputs, if any.
    """

    name: str
    input: Map
    layers: tuple[Layer, ...]
    classes: tuple[str, ...] = ()
    maps: tuple[Map, ...] = field(init=False, repr=False, compare=False)
    """maps[i] is read by layers[i]; maps[-1] is the output."""

    def __post_init__(self) -> None:
        if not self.layers:
            raise ValueError(f"{self.name}: a network must have at least one layer, got none")
        names = [layer.name for layer in self.layers]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{self.name}: layer names must be unique, got {name!r} twice")
        maps = [self.input]
        for layer in self.layers:
            maps.append(layer.output(maps[-1]))
        object.__setattr__(self, "maps", tuple(maps))

    @property
    def output(self) -> Map:
        """The last map."""
        return self.maps[-1]

    def __iter__(self) -> Iterator[tuple[Layer, Map]]:
        """Layers with the maps that they read."""
        return iter(zip(self.layers, self.maps))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data; ``from_dict`` is its inverse."""
        return {
            "name": self.name,
            "input": {**_plain(self.input), "encoding": _plain(self.input.encoding)},
            "layers": [{"kind": layer.kind, **_plain(layer)} for layer in self.layers],
            "classes": list(self.classes),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Network":
        """Network of ``to_dict``'s data; ValueError that names the first thing that is wrong."""
        try:
            source = Map(**{**data["input"], "encoding": Encoding(**data["input"]["encoding"])})
            layers = tuple(_layer(entry) for entry in data["layers"])
            return cls(name=data["name"], input=source, layers=layers, classes=tuple(data["classes"]))
        except (KeyError, TypeError, AttributeError) as e:  # AttributeError: a list where a mapping should be
            raise ValueError(f"network description: a field is missing or unknown: {e}") from e


@dataclass(frozen=True)
class Model:
    """A network with its arrays: ``arrays[layer name][array name]``, integers."""

    network: Network
    arrays: Mapping[str, Mapping[str, Array]]

    def __post_init__(self) -> None:
        names = {layer.name for layer in self.network.layers}
        for name in self.arrays:
            if name not in names:
                raise ValueError(f"{self.network.name}: arrays must belong to a layer, got {name!r}")
        for layer, source in self.network:
            layer.check_arrays(self.arrays.get(layer.name, {}), source)

    def check_images(self, images: Array) -> None:
        """Raise ValueError unless ``images`` is (N, H, W, C) integers of the input map's encoding."""
        source = self.network.input
        if not isinstance(images, np.ndarray) or images.ndim != 4 or images.shape[1:] != source.shape:
            got = getattr(images, "shape", type(images).__name__)
            raise ValueError(
                f"{self.network.name}: images must have shape (N, {source.height}, {source.width}, "
                f"{source.channels}), got {got}"
            )
        source.encoding.check(f"{self.network.name}: images", images)

    def trace(self, images: Array) -> list[Array]:
        """Every layer's output for (N, H, W, C) images, each (N, H', W', C') int64: the definition."""
        self.check_images(images)
        x, outputs = images.astype(np.int64), []
        for layer, source in self.network:
            x = layer.forward(x, self.arrays.get(layer.name, {}), source)
            outputs.append(x)
        return outputs

    def forward(self, images: Array) -> Array:
        """The last layer's output: (N, H', W', C') int64."""
        return self.trace(images)[-1]


def _plain(item: Any) -> dict[str, Any]:
    """Fields of a dataclass as JSON data.

    A field that a layer got after files existed has the metadata ``written_if_set``: its default is left out, so that
    older networks keep their description, and with it their digest.
    """
    out: dict[str, Any] = {}
    for f in fields(item):
        value = getattr(item, f.name)
        if f.metadata.get("written_if_set") and value == f.default:
            continue
        if isinstance(value, Encoding):
            value = _plain(value)
        out[f.name] = list(value) if isinstance(value, tuple) else value
    return out


def _layer(entry: Mapping[str, Any]) -> Layer:
    data: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in entry.items()}
    kind = data.pop("kind")
    if kind not in LAYER_KINDS:
        raise ValueError(f"network description: layer kind must be one of {', '.join(LAYER_KINDS)}, got {kind!r}")
    for key in {"weight", "encoding"} & set(data):
        data[key] = Encoding(**data[key])
    return LAYER_KINDS[kind](**data)
