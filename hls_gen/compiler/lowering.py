"""A model as lowered layers (hls_gen/compiler/lowered_layers.py), each of the engine of the NPU that computes it.

    network --> parts (hls_gen/compiler/parts.py) --> binary layer (hls_gen/compiler/lowering_binary.py)
                                                 `--> integer layer (hls_gen/compiler/lowering_integer.py)

Between lowered layers of different engines lie bits, some of which are complements; the reader's weights know which.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.flatten import flat
from bitloom.golden.graph import INPUT
from bitloom.golden.layer import Map
from bitloom.golden.layers.depthwise import DepthwiseConv, as_plain
from bitloom.golden.layers.grouped import GroupedConv
from bitloom.golden.layers.pool import MaxPool, MinPool
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.golden.packing import to_bits
from bitloom.golden.window import Window
from bitloom.hls_gen.design.widths import FEATURE_BITS, WEIGHT_BITS

from . import lowering_binary, lowering_integer
from .depthwise import joined
from .host_tail import on_device, split
from .lowered_layers import BinaryLayer, IntegerLayer
from .lowered_rules import binary_result, binary_values, run_integer_layer
from .lowering_binary import input_planes, plane_coefficients
from .parts import Engine, Part, parts
from .placing import placed, placed_network
from .pools import canonical

__all__ = [
    "Engine", "Lowered", "check_engines", "engines_of", "input_planes", "lower", "lower_integer", "plane_coefficients",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Lowered:
    """A model as lowered layers. Only the input may have planes; other maps are bits, or integers between integer
    layers.

    Attributes
    ----------
    model : Model
        What was lowered.
    source : Map
        The input as the first lowered layer reads it (golden/flatten.py).
    layers : tuple of BinaryLayer and IntegerLayer
        Each behind those that it reads and adds: the order in which they are computed.
    input_bits : int
        Planes of an integer input to a binary layer, without the constant one. 0 for a bipolar input, whose channels
        are thermometer bits, and for an input that is made binary.
    binariser : (channels,) int64 or None
        Thresholds that make the input binary before the first lowered layer (spec A9).
    joined : Window or None
        The window of the first layer, where a window former joins its taps (hls_gen/compiler/joined_taps.py): the
        lowered layer then reads a map of windows, whose channels are taps times channels.
    """

    model: Model
    source: Map
    layers: tuple[BinaryLayer | IntegerLayer, ...]
    input_bits: int
    binariser: Array | None = None
    joined: Window | None = None

    def input_features(self, images: Array) -> Array:
        """What the first lowered layer reads.

        Parameters
        ----------
        images : (N, H, W, C) integers
            Of the network's input map.

        Returns
        -------
        (N, H, W, channels, planes) uint8 or (N, H, W, C) integers
            Bits for the binary engine, integers for the integer engine.
        """
        features = self._features(images)
        if self.joined is None:
            return features
        size = self.joined.output_size(*features.shape[1:3])
        beside = np.zeros((len(features), 1, *features.shape[3:]), features.dtype)
        if self.input_bits:
            beside[..., -1] = 1  # the constant plane: the value is 0
        flat_map = features.reshape(len(features), -1, *features.shape[3:])
        padded = np.concatenate([flat_map, beside], axis=1)  # position -1: beside the map
        taps = padded[:, self.joined.positions(*features.shape[1:3])]  # (N, windows, taps, C, ...)
        joined: Array = taps.reshape(len(features), *size, -1, *features.shape[4:])
        return joined

    def _features(self, images: Array) -> Array:
        """What a first layer reads whose taps are not joined."""
        images = images.reshape(len(images), *self.source.shape)
        if isinstance(self.layers[0], IntegerLayer):
            return images
        if self.binariser is not None:
            return (images >= self.binariser).astype(np.uint8)[..., None]
        if not self.input_bits:
            return to_bits(images, self.source.encoding).reshape(*images.shape[:3], -1, 1)
        planes: Array = (images.astype(np.int64)[..., None] >> np.arange(self.input_bits)) & 1
        features: Array = np.concatenate([planes, np.ones_like(planes[..., :1])], axis=-1)
        return features.astype(np.uint8)

    def forward(self, images: Array) -> Array:
        """Result of the last lowered layer for (N, H, W, C) images; rules: `run_binary_layer`, `run_integer_layer`."""
        self.model.check_images(images)
        return self.trace(images)[-1]

    def trace(self, images: Array) -> list[Array]:
        """Result of every lowered layer for (N, H, W, C) images, in the order of the lowered layers."""
        results: dict[str, Array] = {}
        values_of: dict[str, Array] = {}  # of binary layers, for additions
        bits = {p.name for p in self.layers if isinstance(p, BinaryLayer) or p.signs}
        for p in self.layers:
            features = self.input_features(images) if p.reads == INPUT else results[p.reads]
            features = features if p.joins is None else np.concatenate([features, results[p.joins]], axis=3)
            if isinstance(p, IntegerLayer):
                values = 2 * features.astype(np.int64) - 1 if p.reads in bits else features
                results[p.name] = run_integer_layer(p, values, results[p.adds] if p.adds else None)
            else:
                read = features if p.reads == INPUT else features[..., None]
                values_of[p.name] = binary_values(p, read, values_of[p.adds] if p.adds else None)
                results[p.name] = binary_result(p, values_of[p.name])
        return list(results.values())


def lower(
    model: Model,
    planes: int | None = None,
    binariser_bits: int = 0,
    lanes: int = 1,
    *,
    engines: Sequence[Engine] | None = None,
) -> Lowered:
    """Rewrite a model as lowered layers.

    Parameters
    ----------
    model : Model
        The layers with their arrays; what the host computes behind them (`split`) is left out.
    planes : int, optional
        Bits that an integer input is sign-extended to, where the binary engine reads it; by default as many as it
        needs.
    binariser_bits : int
        Bits of the features that a binariser in front of the engine takes; 0: there is none.
    lanes : int
        Channels of an input word, by which a dense layer's input is one tuple or many (golden/flatten.py).
    engines : sequence of Engine, optional
        The engine of each weighted layer in the order in which they are computed; by default all are binary. Where one
        takes depthwise convolutions, of each part that is left then (`bitloom.hls_gen.compiler.depthwise.joined`).

    Returns
    -------
    Lowered

    Raises
    ------
    ValueError
        If an engine can't compute its layers. The message names the layer, the rule and the value.
    """
    given, _ = split(model)
    model = flat(placed(given), lanes)
    network = model.network
    entry = network.next_layer(INPUT) if binariser_bits else None
    entry = entry if isinstance(entry, Threshold) else None
    cut = _cut(model, entry, engines or ())
    engine = dict(zip((part.name for part in cut), engines or [Engine()] * len(cut)))
    bits = _input_planes(network, planes, needed=entry is None and engine[cut[0].name].name == "binary")
    complement = {INPUT: np.zeros(network.input.channels * network.input.encoding.bits, bool)}
    limits = None
    if entry:
        limits, complement[INPUT] = lowering_binary.binariser(model, entry, binariser_bits)
    layers: list[BinaryLayer | IntegerLayer] = []
    for part in cut:
        inverted = np.concatenate([complement[name] for name in (part.reads, part.joins) if name])
        made, complement[part.name] = _lowered(model, part, engine, inverted, bits)
        layers.append(made)
    if complement[layers[-1].name].any():
        _refuse_complements(network.layers[-1].name, cut[-1])
    return Lowered(model=given, source=network.input, layers=tuple(layers), input_bits=bits, binariser=limits)


def _refuse_complements(last: str, part: Part) -> NoReturn:
    """Raise ValueError: the last part makes complements, which no weights of a next layer take back."""
    if any(isinstance(t, MinPool) for t in part.tail):
        raise ValueError(
            f"{last}: a min pool gives complements, which only the weights of a next layer take back, got one in the "
            "last layer"
        )
    after = "a max pool" if any(isinstance(t, MaxPool) for t in part.tail) else "accumulate or_words"
    raise ValueError(f"{last}: direction after {after} must be 1 in the last layer, got -1")


def _cut(model: Model, entry: Threshold | None, engines: Sequence[Engine]) -> list[Part]:
    """The parts of a model, in which depthwise convolutions have joined the part before if the engines take them."""
    cut = parts(model.network, entry)
    cut = joined(cut, model) if any(engine.depthwise for engine in engines) else cut
    return [canonical(part) for part in cut]


def _lowered(
    model: Model, part: Part, engines: Mapping[str, Engine], inverted: Array, planes: int
) -> tuple[BinaryLayer | IntegerLayer, Array]:
    """The lowered layer of a part on its engine, and which of the bits that it makes are complements.

    ``engines`` has the engine of each part by name, ``inverted`` tells which of the bits that the part reads are
    complements, and ``planes`` is the number of bit planes of the network's input.
    """
    own, binary = engines[part.name], {name for name, engine in engines.items() if engine.name == "binary"}
    if part.name in binary:
        if isinstance(part.layer, DepthwiseConv | GroupedConv):
            part = replace(part, layer=as_plain(part.layer))
        lowering_binary.check(part)
        return lowering_binary.binary_layer(model, part, inverted, planes if part.reads == INPUT else 0)
    lowering_integer.check(part, own, from_bits=part.reads in binary, to_bits=not binary.isdisjoint(part.readers))
    return lowering_integer.integer_layer(model, part, inverted, own.weight_bits)


def _input_planes(network: Network, planes: int | None, needed: bool) -> int:
    """Planes of the input: ``planes``, or as many as its encoding needs; 0 where it is bipolar or none are needed."""
    encoding = network.input.encoding
    if encoding.kind == "bipolar" or not needed:
        return 0
    needs = input_planes(encoding)
    if planes is not None and planes < needs:
        raise ValueError(f"{network.name}: the input must have at most {planes} bit planes, got {needs}")
    return needs if planes is None else planes


def lower_integer(model: Model, feature_bits: int, weight_bits: int, lanes: int = 1) -> Lowered:
    """Rewrite a model as lowered layers of the integer engine alone; parameters and errors are those of `lower`."""
    engine = Engine("integer", feature_bits, weight_bits)
    return lower(model, lanes=lanes, engines=[engine] * len(engines_of(model.network)))


def check_engines(network: Network, engines: Sequence[str]) -> None:
    """Check that weighted layers, which come in the order of computing, are computed by these engines by default.
    Copies of maps, which the network doesn't have, are computed by the engine that they are for.

    Raises
    ------
    ValueError
        If a layer is for another engine, or can't be computed by its own, whatever the NPU's widths. The message names
        the layer, the rule and the value.
    """
    names = {layer.name for layer in network.layers}
    network = placed_network(on_device(network))
    cut = [canonical(part) for part in parts(network)]
    given, defaults = iter(engines), engines_of(network)
    engines = [next(given) if part.name in names else default for part, default in zip(cut, defaults, strict=True)]
    for part, engine, default in zip(cut, engines, defaults):
        if engine != default:
            raise ValueError(f"{part.name}: its engine must be the {default} one, got {engine}")
    binary = {part.name for part, engine in zip(cut, engines) if engine == "binary"}
    widest = Engine("integer", FEATURE_BITS, WEIGHT_BITS)
    for part in cut:
        if part.name in binary:
            lowering_binary.check(part)
        else:
            to_bits = not binary.isdisjoint(part.readers)
            lowering_integer.check(part, widest, from_bits=part.reads in binary, to_bits=to_bits)


def engines_of(network: Network) -> list[str]:
    """The engine that each weighted layer is for, "binary" or "integer", in the order in which they are computed.

    That is the integer one if the layer has weights of several bits, reads a map of integers that is not the input,
    or is requantised, unless signs of what was requantised go on.

    Raises
    ------
    ValueError
        If no engine can compute the network.
    """
    network = placed_network(on_device(network))
    entry = network.next_layer(INPUT)
    engines: list[str] = []
    for part in parts(network, entry if isinstance(entry, Threshold) else None):
        integers = part.layer.weight.kind in ("signed", "unsigned")
        integers |= "requantise" in part.tail_kinds and "threshold" not in part.tail_kinds
        integers |= part.reads != INPUT and part.source.encoding.kind != "bipolar"
        engines.append("integer" if integers else "binary")
    return engines
