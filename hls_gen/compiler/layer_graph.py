"""Networks while they are rewritten, exactly, into what the engines take: how a rule changes one, copies of maps, and
the check of each step (golden/rewrite.py).

A *copy* is a convolution of 1 x 1 taps whose kernel k is 1 for channel k and 0 for all others. Its sums are the values;
in front of a requantisation or thresholds of one reader no more is needed, else one that changes nothing follows.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bitloom.golden.encoding import TERNARY, Array, Encoding, signed, unsigned
from bitloom.golden.graph import INPUT, ordered, readers, walk
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.names import NAME_LENGTH
from bitloom.golden.network import Network
from bitloom.golden.rewrite import Inexact

ModelArrays = Mapping[str, Mapping[str, Array]]
"""``arrays[layer name][array name]``, as of `bitloom.golden.network.Model`."""
MOST_PRODUCTS = 10_000_000
"""Products up to which a step's values are compared, a tenth of a second: a board compiles, too."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerGraph:
    """Layers with their arrays, or without most of them."""

    name: str
    """Of the network."""
    input: Map
    """The network's input."""
    layers: Mapping[str, Layer]
    """By name, in the order in which a network would list them: new layers come last. Each one names the maps that it
    reads."""
    arrays: ModelArrays
    """By layer. Where a network is rewritten without its arrays, only copies have arrays."""

    @classmethod
    def of(cls, network: Network, arrays: ModelArrays) -> "LayerGraph":
        """The graph of a network."""
        layers = {layer.name: replace(layer, inputs=network.reads[layer.name]) for layer in network.layers}
        return cls(name=network.name, input=network.input, layers=layers, arrays=arrays)

    @cached_property
    def maps(self) -> Mapping[str, Map]:
        """All maps by name, each behind those that it is made of."""
        reads = {layer.name: layer.inputs for layer in self.layers.values()}
        order = {name: reads[name] for name in ordered(self.name, reads)}
        sources = {INPUT: self.input}
        return {**sources, **dict(walk(order, sources, lambda name, read: self.layers[name].output_of(read)))}

    @cached_property
    def readings(self) -> Mapping[str, Sequence[str]]:
        """Map -> names of the layers that read it. A layer that reads a map twice stands there twice."""
        return readers(self.name, {layer.name: layer.inputs for layer in self.layers.values()})

    @cached_property
    def output(self) -> str:
        """Name of the map that no layer reads."""
        return next(name for name, layers in self.readings.items() if not layers)

    def readers(self, name: str) -> list[Layer]:
        """The layers that read a map, each of them once."""
        return [self.layers[reader] for reader in dict.fromkeys(self.readings[name])]

    def sources(self, layer: Layer) -> list[Map]:
        """The maps that a layer reads."""
        return [self.maps[name] for name in layer.inputs]

    def with_layers(self, layers: Mapping[str, Layer], arrays: ModelArrays) -> "LayerGraph":
        """The graph of other layers.

        Parameters
        ----------
        layers : mapping of str to Layer
            All layers by name.
        arrays : mapping of str to mapping of str to array
            Of layers that are new or have other arrays than before. Layers of the same name and kind keep theirs.
        """
        kept = {name: layer.kind for name, layer in self.layers.items()}
        old = {name: parts for name, parts in self.arrays.items() if name in layers and layers[name].kind == kept[name]}
        return replace(self, layers=layers, arrays={**old, **{name: parts for name, parts in arrays.items() if parts}})


def free_name(layers: Collection[str], name: str, ending: str) -> str:
    """A name that no layer has: ``name`` with an ending, such as ``conv_1_copy``, and with a number where it must."""
    endings = (f"_{ending}", *(f"_{ending}_{number}" for number in range(2, len(layers) + 3)))
    names = (name[: NAME_LENGTH - len(end)] + end for end in endings)
    return next(free for free in names if free not in layers)


@dataclass(frozen=True)
class CopyLayers:
    """The layers of a copy."""

    layers: Mapping[str, Layer]
    arrays: ModelArrays


def copy_of_sums(source: Map, reads: str, name: str, weight: Encoding | None = None) -> CopyLayers:
    """A convolution whose sums are the values of a map.

    Parameters
    ----------
    source : Map
        The map.
    reads : str
        Its name.
    name : str
        Of the convolution.
    weight : Encoding, optional
        Of the weights; by default an encoding that every engine takes which reads such values between two layers.
    """
    weight = weight or (TERNARY if source.encoding.kind == "bipolar" else unsigned(1))
    conv = Conv(name=name, inputs=(reads,), out_channels=source.channels, kernel=(1, 1), weight=weight)
    return CopyLayers({name: conv}, {name: {"weight": np.eye(source.channels, dtype=np.int64)[:, None, None]}})


def copy_of_values(source: Map, reads: str, sums: str, name: str) -> CopyLayers:
    """A convolution ``sums``, and behind it an activation ``name`` that gives the values of a map in its encoding.

    Parameters
    ----------
    source : Map
        The map.
    reads : str
        Its name.
    sums, name : str
        Of the layers.
    """
    conv = copy_of_sums(source, reads, sums)
    encoding = source.encoding
    channels = source.channels
    activation: Layer
    if encoding.kind == "bipolar":
        levels = 2 * np.arange(encoding.bits) + 1 - encoding.bits  # a value k steps up reaches k of them
        activation = Threshold(name=name, inputs=(sums,), levels=encoding.bits)
        arrays = {"threshold": np.tile(levels, (channels, 1)), "direction": np.ones(channels, np.int64)}
    else:
        feature = encoding if encoding.kind == "unsigned" else signed(encoding.bits)  # ternary values are signed ones
        activation = Requantise(name=name, inputs=(sums,), encoding=feature)
        values = {"bias": 0, "multiplier": 1, "shift": 0}
        arrays = {array: np.full(channels, value, np.int64) for array, value in values.items()}
    return CopyLayers({**conv.layers, name: activation}, {**conv.arrays, name: arrays})


def check_same(before: LayerGraph, after: LayerGraph) -> None:
    """Raise Inexact unless the layers that a step took out and those that it put in make the same maps.

    Sizes are compared in any case. Values for a random image are compared, too, where all arrays are known and there
    are at most MOST_PRODUCTS products to compute: rules are the same for maps of any size.
    """
    kept = {name for name in before.layers if name in after.layers and _unchanged(name, before, after)}
    gone = [layer for name, layer in before.layers.items() if name not in kept]
    come = [layer for name, layer in after.layers.items() if name not in kept]
    output = before.output
    read = {name for layer in after.layers.values() if layer.name in kept for name in layer.inputs}
    ends = {layer.name for layer in gone} & {*read, output}
    for name in sorted({*ends, output}):
        size = before.maps[name].shape
        if name not in after.maps or after.maps[name].shape != size:
            raise Inexact(f"{name} must stay a map of {size}")
    new = {layer.name for layer in (*gone, *come)}
    inputs = {name for layer in (*gone, *come) for name in layer.inputs} - new
    if not (_has_arrays(before, gone) and _has_arrays(after, come)):
        return
    if _products(before, gone) + _products(after, come) > MOST_PRODUCTS:
        return
    rng = np.random.default_rng(len(before.layers))
    values = {name: _random_values(rng, before.maps[name]) for name in sorted(inputs)}
    wanted = _computed(before, gone, values)
    got = _computed(after, come, values)
    for name in sorted(ends):
        if not np.array_equal(wanted[name], got[name]):
            raise Inexact(f"{name} must stay the same")


def _unchanged(name: str, before: LayerGraph, after: LayerGraph) -> bool:
    """Whether a layer of two graphs is the same, with the same arrays and sizes."""
    same_arrays = before.arrays.get(name) is after.arrays.get(name)
    return (
        before.layers[name] == after.layers[name] and same_arrays and before.maps[name].shape == after.maps[name].shape
    )


def _has_arrays(graph: LayerGraph, layers: Sequence[Layer]) -> bool:
    """Whether a graph has all arrays of some layers."""
    return all(
        graph.arrays.get(layer.name, {}).keys() == layer.array_shapes_of(graph.sources(layer)).keys()
        for layer in layers
    )


def _products(graph: LayerGraph, layers: Sequence[Layer]) -> int:
    """Products of features and weights that some layers of a graph compute."""
    weighted = [layer.name for layer in layers if "weight" in graph.arrays.get(layer.name, {})]
    return sum(graph.maps[name].positions * graph.arrays[name]["weight"].size for name in weighted)


def _random_values(rng: np.random.Generator, source: Map) -> Array:
    """(1, H, W, C) values that a map may have."""
    encoding = source.encoding
    steps: Array = rng.integers(0, (encoding.high - encoding.low) // encoding.step, (1, *source.shape), endpoint=True)
    return encoding.low + encoding.step * steps


def _computed(graph: LayerGraph, layers: Sequence[Layer], inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The maps that some layers of a graph make of others."""
    values = dict(inputs)
    by_name = {layer.name: layer for layer in layers}
    for layer in (by_name[name] for name in graph.maps if name in by_name):
        read = [values[name] for name in layer.inputs]
        values[layer.name] = layer.forward_of(read, graph.arrays.get(layer.name, {}), graph.sources(layer))
    return values
