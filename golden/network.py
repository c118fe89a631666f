"""The one description of a network: an input map and a graph of layers. It says nothing about hardware."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from bitloom.golden.layers.add import Add
from bitloom.golden.layers.affine import Affine
from bitloom.golden.layers.concat import Concat
from bitloom.golden.layers.conv import Conv, Weighted
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.grouped import DepthwiseConv, GroupedConv
from bitloom.golden.layers.lookup import Lookup
from bitloom.golden.layers.multiply import MultiplyMaps
from bitloom.golden.layers.outputs import Outputs
from bitloom.golden.layers.pool import AvgPool, MaxPool, MinPool, SumPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold

from .encoding import Array, Encoding
from .graph import INPUT, final, ordered, readers, walk
from .layer import Layer, Map, OneInput
from .names import check_classes, check_name

MOST_LAYERS = 1024
"""Layers at most: four times what a device can hold, and few enough to be sorted in no time."""
LAYER_KINDS: dict[str, type[Layer]] = {
    c.kind: c
    for c in (
        Conv,
        DepthwiseConv,
        GroupedConv,
        Dense,
        MaxPool,
        MinPool,
        AvgPool,
        SumPool,
        Threshold,
        Requantise,
        Lookup,
        Add,
        MultiplyMaps,
        Concat,
        Outputs,
        Affine,
    )
}


@dataclass(frozen=True, kw_only=True)
class Network:
    """A graph of layers from one input map to one output map, without hardware and without arrays.

    Layers name the maps that they read (`Layer.inputs`); by default each reads the map of the layer that is listed
    before it, and the first one reads the input. The network sorts them: a layer stands behind all whose maps it
    reads, and names its inputs only where these are not the default. So networks that differ in the list alone are
    equal, and a chain of layers names no inputs at all.

    Raises
    ------
    ValueError
        If a name breaks a rule of `bitloom.golden.names`, if there is no layer, if names are not unique, if an input
        doesn't exist, if layers read each other in a circle, if several maps have no reader, if a layer can't read its
        maps, or if there are classes, but not as many as channels.
    """

    name: str
    """Letters, digits, underscores, dashes and dots (`bitloom.golden.names`); ours are lower-case words."""
    input: Map
    """The map of one image."""
    layers: tuple[Layer, ...]
    """All layers, sorted; the last one makes the output."""
    classes: tuple[str, ...] = ()
    """Names of the output's channels, any printable text; empty if these have none."""
    reads: Mapping[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)
    """Layer name -> names of the maps that the layer reads, in the order of the layer's inputs."""
    readers: Mapping[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)
    """Map name -> names of the layers that read the map; none read the output."""
    maps: Mapping[str, Map] = field(init=False, repr=False, compare=False)
    """All maps by name, in the order of the layers; `bitloom.golden.graph.INPUT` is first and the output is last."""

    def __post_init__(self) -> None:
        check_name("network", self.name)
        if not self.layers:
            raise ValueError(f"{self.name}: a network must have at least one layer, got none")
        if len(self.layers) > MOST_LAYERS:
            count = len(self.layers)
            raise ValueError(f"{self.name}: a network must have at most {MOST_LAYERS:,} layers, got {count:,}")
        names = [layer.name for layer in self.layers]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{self.name}: layer names must be unique, got {name!r} twice")
        listed = {layer.name: layer.inputs or (before,) for layer, before in zip(self.layers, [INPUT, *names])}
        order = ordered(self.name, listed)
        object.__setattr__(self, "reads", {name: listed[name] for name in order})
        object.__setattr__(self, "readers", readers(self.name, self.reads))
        by_name = {layer.name: layer for layer in self.layers}
        layers = []
        maps = {INPUT: self.input}
        for name, before in zip(order, [INPUT, *order]):
            layer = by_name[name]
            inputs = () if layer.input_count == 1 and listed[name] == (before,) else listed[name]
            layers.append(layer if layer.inputs == inputs else replace(layer, inputs=inputs))
            maps[name] = layer.output_of([maps[read] for read in listed[name]])
        object.__setattr__(self, "layers", tuple(layers))
        object.__setattr__(self, "maps", maps)
        check_classes(self.name, self.classes, self.output.channels)
        object.__setattr__(self, "classes", tuple(str(label) for label in self.classes))

    @property
    def output(self) -> Map:
        """The map that no layer reads."""
        return self.maps[self.layers[-1].name]

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the maps that leave: those that a last layer `Outputs` reads, else the map of the last layer."""
        last = self.layers[-1]
        return last.inputs if isinstance(last, Outputs) else (last.name,)

    def sources(self, layer: Layer) -> tuple[Map, ...]:
        """The maps that a layer of this network reads, in the order of the layer's inputs."""
        return tuple(self.maps[name] for name in self.reads[layer.name])

    def next_layer(self, name: str) -> Layer | None:
        """The one layer that reads the map of that name; None where several do, or none."""
        names = self.readers[name]
        return next(layer for layer in self.layers if layer.name == names[0]) if len(names) == 1 else None

    def with_real_weights(self, names: Collection[str]) -> "Network":
        """The network, its conv and dense layers of these names being those that take the signs of real numbers."""
        layers = (
            replace(layer, real_weights=True) if isinstance(layer, Weighted) and layer.name in names else layer
            for layer in self.layers
        )
        return replace(self, layers=tuple(layers))

    def chain(self, user: str) -> list[tuple[OneInput, Map]]:
        """The layers, each with the map that it reads, for what computes chains of layers only.

        Parameters
        ----------
        user : str
            Command or task that needs a chain, for the message, such as ``"training"``.

        Raises
        ------
        ValueError
            If a map has several readers, and so some layer joins maps.
        """
        for name, layers in self.readers.items():
            if len(layers) > 1:
                raise ValueError(
                    f"{self.name}: {user} takes a chain of layers, where one layer reads each map, "
                    f"got {name} read by {' and '.join(layers)}"
                )
        one_input = [layer for layer in self.layers if isinstance(layer, OneInput)]  # all: a join needs a fork
        return [(layer, self.maps[self.reads[layer.name][0]]) for layer in one_input]

    def to_dict(self) -> dict[str, Any]:
        """The description as plain JSON data; `from_dict` is the inverse."""
        return {
            "name": self.name,
            "input": {**_plain(self.input), "encoding": _plain(self.input.encoding)},
            "layers": [{"kind": layer.kind, **_plain(layer)} for layer in self.layers],
            "classes": list(self.classes),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Network":
        """Build a network from the data that `to_dict` gives.

        Raises
        ------
        ValueError
            That names the first thing that is wrong.
        """
        try:
            source = Map(**{**data["input"], "encoding": Encoding(**data["input"]["encoding"])})
            layers = tuple(_layer(entry) for entry in data["layers"])
            return cls(name=data["name"], input=source, layers=layers, classes=data["classes"])
        except (KeyError, TypeError, AttributeError) as e:  # AttributeError: a list where a mapping should be
            raise ValueError(f"network description: a field is missing or unknown: {e}") from e


@dataclass(frozen=True)
class Model:
    """A network with its arrays.

    Raises
    ------
    ValueError
        Unless the arrays are those that the layers need, with right shapes and values.
    """

    network: Network
    arrays: Mapping[str, Mapping[str, Array]]
    """``arrays[layer name][array name]``, integers; real numbers where a layer has ``real_weights``."""

    def __post_init__(self) -> None:
        names = {layer.name for layer in self.network.layers}
        for name in self.arrays:
            if name not in names:
                raise ValueError(f"{self.network.name}: arrays must belong to a layer, got {name!r}")
        for layer in self.network.layers:
            layer.check_arrays_of(self.arrays.get(layer.name, {}), self.network.sources(layer))

    def weights(self, name: str) -> Array:
        """The weights that count of the conv or dense layer of that name, int64: of real numbers their signs."""
        layer = next(layer for layer in self.network.layers if layer.name == name and isinstance(layer, Weighted))
        return layer.weights(self.arrays[name])

    def check_images(self, images: Array) -> None:
        """Raise ValueError unless ``images`` are (N, H, W, C) integers of the input map's size and encoding."""
        source = self.network.input
        if not isinstance(images, np.ndarray) or images.ndim != 4 or images.shape[1:] != source.shape:
            got = getattr(images, "shape", type(images).__name__)
            raise ValueError(
                f"{self.network.name}: images must have shape (N, {source.height}, {source.width}, "
                f"{source.channels}), got {got}"
            )
        source.encoding.check(f"{self.network.name}: images", images)

    def walk(self, images: Array) -> Iterator[tuple[str, Array]]:
        """Compute layer after layer; a map is held no longer than until its last reader is done.

        Parameters
        ----------
        images : (N, H, W, C) integers
            Values of the input map.

        Yields
        ------
        tuple of str and (N, H', W', C') int64
            Each layer's name and its output, in the order of `Network.layers`.

        Raises
        ------
        ValueError
            If the images are not of the input map.
        """
        self.check_images(images)
        layers = {layer.name: layer for layer in self.network.layers}

        def compute(name: str, inputs: list[Array]) -> Array:
            return layers[name].forward_of(inputs, self.arrays.get(name, {}), self.network.sources(layers[name]))

        return walk(self.network.reads, {INPUT: images.astype(np.int64)}, compute)

    def trace(self, images: Array) -> list[Array]:
        """Every layer's output for (N, H, W, C) images: the definition.

        Each is (N, H', W', C') int64; they come in the order of `Network.layers`.
        """
        return [output for _, output in self.walk(images)]

    def forward(self, images: Array) -> Array:
        """The network's output for (N, H, W, C) images: (N, H', W', C') int64."""
        return final(output for _, output in self.walk(images))


def _plain(item: Any) -> dict[str, Any]:
    """Fields of a dataclass as JSON data.

    A field with the metadata ``written_if_set`` is left out at its default: what it says is rare.
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
