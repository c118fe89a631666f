"""Random arrays for a network: whatever is drawn, hardware must equal golden."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, singledispatch

import numpy as np

from bitloom.golden.graph import INPUT
from bitloom.golden.kernels import packed
from bitloom.golden.layer import Layer, Map, OneInput
from bitloom.golden.layers.add import FACTOR_BITS, MAX_ADD_SHIFT, OFFSET_BITS, Pairwise
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.multiply import MultiplyMaps
from bitloom.golden.layers.pool import MinPool, Pool
from bitloom.golden.layers.requantise import MAX_SHIFT, SUM_BITS, Requantise, scale_to_multiplier
from bitloom.golden.layers.roles import FeatureLayer
from bitloom.golden.layers.rounding import FIRST_SHIFT, PRODUCT_BITS
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.overlay.build.images import random_images

DRAWS = 4
"""Draws of a layer's arrays at most."""
Arrays = dict[str, np.ndarray]
"""Arrays of a layer by name."""


@dataclass
class ArrayDrawing:
    """The state by which arrays of a network's layers are drawn, one layer after another."""

    network: Network
    rng: np.random.Generator
    acc_bits: int
    multiplier_bits: int
    """acc_bits, multiplier_bits: of the engine."""
    values: Arrays = field(default_factory=dict)
    """By name, the values of the maps so far for some images."""
    reach: tuple[int, int] = (0, 0)
    """Smallest and largest sum of the last weighted layer."""

    @cached_property
    def mixed(self) -> bool:
        """Whether binary layers read maps of the network."""
        return any(isinstance(layer, Threshold) for layer in self.network.layers)

    def source(self, layer: Layer) -> Map:
        """The first map that a layer reads."""
        return self.network.sources(layer)[0]


def random_model(network: Network, seed: int, acc_bits: int = 32, multiplier_bits: int = 16) -> Model:
    """Random weights, one layer in four all corner values; requantisations as ``_requantisation`` draws them;
    thresholds among the values that occur.

    A layer whose map is the same for some random images, and whose inputs are not, is drawn again, up to DRAWS times:
    behind a constant no fault in front of it is seen.

    Parameters
    ----------
    network
        Of any layers.
    seed
        The same one gives the same model.
    acc_bits
        Of an integer engine: no sum, biased or not, leaves -2^(acc_bits - 1) + 1 .. 2^(acc_bits - 1) - 2.
    multiplier_bits
        Of an integer engine, >= 8.
    """
    drawing = ArrayDrawing(network, np.random.default_rng(seed), acc_bits, multiplier_bits)
    arrays: dict[str, Arrays] = {}
    values = drawing.values
    values[INPUT] = random_images(network, 4, seed + 1)
    for layer in network.layers:
        read = [values[name] for name in network.reads[layer.name]]
        sources = network.sources(layer)
        for _ in range(DRAWS):
            drawn = arrays_of(layer, drawing)
            values[layer.name] = _outputs(layer, drawn, sources, read)
            if not drawn or _varies(values[layer.name]) or not any(map(_varies, read)):
                break
        if drawn:
            arrays[layer.name] = drawn
    return Model(network, arrays)


def _outputs(layer: Layer, arrays: Arrays, sources: Sequence[Map], inputs: list[np.ndarray]) -> np.ndarray:
    """The map that a layer with these arrays makes of some inputs."""
    if not isinstance(layer, OneInput):
        return layer.forward_of(inputs, arrays, sources)
    single = Network(name=layer.name, input=sources[0], layers=(replace(layer, inputs=()),))
    return packed.forward(Model(single, {layer.name: arrays} if arrays else {}), inputs[0])


def _varies(images: np.ndarray) -> bool:
    """Whether maps of several images are not all the same."""
    return bool((images != images[:1]).any())


@singledispatch
def arrays_of(layer: Layer, drawing: ArrayDrawing) -> Arrays:
    """Random arrays of a layer: by a function that is registered for its kind, else of values in its ranges."""
    shapes = layer.array_shapes_of(drawing.network.sources(layer))
    return {
        name: drawing.rng.integers(low, high, shapes[name], endpoint=True)
        for name, (low, high) in layer.array_ranges.items()
    }


@arrays_of.register
def _weights(layer: Weighted, drawing: ArrayDrawing) -> Arrays:
    source = drawing.source(layer)
    rng = drawing.rng
    low = layer.weight.low
    high = layer.weight.high
    low += drawing.mixed and layer.weight.kind == "signed"  # so that all may change their sign
    values = [low, high] if rng.random() < 0.25 else np.arange(low, high + 1, layer.weight.step)
    drawing.reach = layer.accumulator_range(source)
    return {"weight": rng.choice(values, layer.array_shapes(source)["weight"])}


@arrays_of.register
def _bits(layer: Threshold, drawing: ArrayDrawing) -> Arrays:
    """Of sums thresholds among and around the values that occur, of features their signs."""
    network = drawing.network
    reads = network.reads[layer.name][0]
    if any(other.name == reads and isinstance(other, FeatureLayer) for other in network.layers):
        return _signs(network.next_layer(layer.name), drawing.source(layer), drawing.rng)
    arrays = _thresholds(drawing.values[reads], layer, drawing.rng)
    if [other.kind for other in network.layers[-2:]] == ["max_pool", "threshold"] and layer is network.layers[-1]:
        arrays["direction"][:] = 1  # after a max pool the last layer can't be a complement
    return arrays


@arrays_of.register
def _scales(layer: Requantise, drawing: ArrayDrawing) -> Arrays:
    network = drawing.network
    source = drawing.source(layer)
    rng = drawing.rng
    bits = drawing.multiplier_bits
    room = 1 << min(drawing.acc_bits, SUM_BITS) - 1
    low, high = source.encoding.low, source.encoding.high
    if _of_features(network, layer.name):  # behind a copy, whose sums count as those of all channels
        high = 2 * source.channels << source.encoding.bits
        low = -high
    bounds = (1 - room - min(low, drawing.reach[0]), room - 2 - max(high, drawing.reach[1]))
    channels = drawing.values[network.reads[layer.name][0]].reshape(-1, source.channels).T
    drawn = [_requantisation(sums, layer, bounds, bits, rng) for sums in channels]
    if layer.rounding == "twice":
        drawn = [_shifted_twice(row, bits) for row in drawn]
    rows = [_behind_the_point(row, layer, source, rng) for row in drawn]
    return dict(zip(("bias", "multiplier", "shift"), np.array(rows, np.int64).T))


def _of_features(network: Network, name: str) -> bool:
    """Whether a layer reads features, perhaps pooled ones, and not sums."""
    layers = {layer.name: layer for layer in network.layers}
    while isinstance(layer := layers.get(network.reads[name][0]), Pool):
        name = layer.name
    return not isinstance(layer, Weighted)


def _thresholds(x: np.ndarray, layer: Threshold, rng: np.random.Generator) -> Arrays:
    """Arrays for values (N, H, W, C): thresholds that they are equal to, or next to, and some far out of reach."""
    values = x.reshape(-1, x.shape[-1])
    threshold = rng.permuted(values, axis=0)[rng.integers(0, len(values), layer.levels)].T + rng.integers(-1, 2)
    far = rng.random(threshold.shape) < 0.05
    threshold[far] = rng.choice([-(2**31) + 1, 2**31 - 1], far.sum())
    return {"threshold": threshold, "direction": rng.choice([-1, 1], len(threshold))}


def _signs(after: Layer | None, source: Map, rng: np.random.Generator) -> Arrays:
    """Arrays of a threshold that makes signs of integers, or their complements, as the layer ``after`` it wants."""
    drawn = {MinPool: [-1], Weighted: [-1, 1]}
    kinds = next((values for kind, values in drawn.items() if isinstance(after, kind)), [1])
    direction = rng.choice(kinds, source.channels)
    return {"threshold": np.minimum(direction, 0)[:, None], "direction": direction}


def _requantisation(
    sums: np.ndarray, layer: Requantise, bounds: tuple[int, int], multiplier_bits: int, rng: np.random.Generator
) -> tuple[int, int, int]:
    """(bias, multiplier, shift) of a channel whose sums are (samples,), without bits behind the point.

    In half of all channels values use the layer's range; in the others most saturate, or many are exact halves, or
    bias, multiplier or shift is as large as it may be. The bias keeps within ``bounds``.
    """
    spread = max(1, int(np.abs(sums - sums.mean()).mean()))
    top = max(1, layer.high, -layer.low)
    scale = (layer.high - layer.low + 1) / 2 / spread * rng.uniform(0.2, 0.8)
    middle = sums.mean() - (layer.high + layer.low) / 2 / scale
    bias = min(max(int(spread * rng.uniform(-1, 1) - middle), bounds[0]), bounds[1])
    bits = min(multiplier_bits, int(rng.choice([16, 31])))
    largest = (1 << bits) - 1
    case = rng.integers(0, 12)
    if case < 6:
        return bias, *scale_to_multiplier(scale, bits)
    return [
        (bias, *scale_to_multiplier(min(scale * 20, largest), bits)),
        (bias, 1, max(1, int(spread / top).bit_length())),
        (bounds[rng.integers(0, 2)], largest, int(rng.integers(16, MAX_SHIFT + 1))),
        (bounds[rng.integers(0, 2)], *scale_to_multiplier(top / max(abs(b) for b in bounds), bits)),
        (bias, largest, 0),
        (0, 1, int(rng.choice([0, MAX_SHIFT]))),
    ][case - 6]


def _shifted_twice(row: tuple[int, int, int], multiplier_bits: int) -> tuple[int, int, int]:
    """(bias, multiplier, shift) with the shift of at least 31 that two roundings take, and nearly the same scale."""
    bias, multiplier, shift = row
    more = max(0, FIRST_SHIFT - shift)
    return bias, min(multiplier << more, (1 << multiplier_bits) - 1), shift + more


@arrays_of.register
def _pair(layer: Pairwise, drawing: ArrayDrawing) -> Arrays:
    """Of two maps with a factor each: mostly factors with which sums use the encoding's range, in one of four as large
    as they may be; one of four factors is negative."""
    rng = drawing.rng
    most = (1 << FACTOR_BITS - 1) - 1
    shift = int(rng.integers(0, MAX_ADD_SHIFT + 1))
    top = max(1, layer.high, -layer.low)
    ends = [max(source.encoding.high, -source.encoding.low) for source in drawing.network.sources(layer)]
    factors = [int(min(most, top / end * rng.uniform(0.2, 1.5) * 2.0**shift)) for end in ends]
    if rng.random() < 0.25:
        factors = [most, int(rng.integers(-most, most + 1))]
    factors = [int(factor) * int(rng.choice([1, 1, 1, -1])) for factor in factors]
    bias = int(rng.integers(-1, 2) * rng.uniform(0, 1) * min(top * 2.0**shift, 1 << OFFSET_BITS - 2))
    return {"multiplier": np.array(factors), "bias": np.array([bias]), "shift": np.array([shift])}


@arrays_of.register
def _product(layer: MultiplyMaps, drawing: ArrayDrawing) -> Arrays:
    """Mostly a factor with which results use the encoding's range, in one of four as large
    as it may be; the bias is often half of what the first of two roundings takes off, or 0."""
    rng = drawing.rng
    sources = drawing.network.sources(layer)
    first, second = (max(source.encoding.high, -source.encoding.low) for source in sources)
    most = (1 << FACTOR_BITS - 1) - 1
    shift = int(rng.integers(0, MAX_ADD_SHIFT + 1))
    top = max(1, layer.high, -layer.low)
    factor = most if rng.random() < 0.25 else int(min(most, top / (first * second) * rng.uniform(0.2, 3) * 2.0**shift))
    biases = 0, 1 << int(rng.integers(0, shift + 1)), int(rng.uniform(0, 1) * top * 2.0**shift)
    bias = min(int(rng.choice(biases)), (1 << OFFSET_BITS - 2) - 1)
    return {"multiplier": np.array([factor]), "bias": np.array([bias]), "shift": np.array([shift])}


def _behind_the_point(
    row: tuple[int, int, int], layer: Requantise, source: Map, rng: np.random.Generator
) -> tuple[int, int, int]:
    """(bias, multiplier, shift) with the layer's bits behind the point, the multiplier as small as the rule wants."""
    bias, multiplier, shift = row
    bias = (bias << layer.fraction) + int(rng.integers(0, 1 << layer.fraction))
    ends = ((end << layer.fraction) + bias for end in (source.encoding.low, source.encoding.high))
    most = ((1 << PRODUCT_BITS - 1) - 1) // max(1, *(abs(end) for end in ends))
    return bias, min(multiplier, most), min(shift + layer.fraction, MAX_SHIFT)
