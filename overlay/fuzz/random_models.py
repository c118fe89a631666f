"""Random arrays for a network: whatever is drawn, hardware must equal golden."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bitloom.golden.encoding import BIPOLAR
from bitloom.golden.graph import INPUT
from bitloom.golden.kernels import packed
from bitloom.golden.layer import Layer, Map, OneInput
from bitloom.golden.layers.add import FACTOR_BITS, MAX_ADD_SHIFT, OFFSET_BITS, Add
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.lookup import Lookup
from bitloom.golden.layers.multiply import MultiplyMaps
from bitloom.golden.layers.pool import MinPool, Pool, SumPool
from bitloom.golden.layers.requantise import (
    FIRST_SHIFT,
    MAX_SHIFT,
    PRODUCT_BITS,
    SUM_BITS,
    Requantise,
    scale_to_multiplier,
)
from bitloom.golden.layers.roles import FeatureLayer
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.overlay.build.images import random_images


def random_integer_model(network: Network, seed: int, acc_bits: int, multiplier_bits: int = 16) -> Model:
    """Random weights, one layer in four all corner values; requantisations as ``_requantisation`` draws them;
    thresholds among the values that occur.

    Parameters
    ----------
    network
        Of integer layers, or of integer and binary ones.
    seed
        The same one gives the same model.
    acc_bits
        Of the engine: no sum, biased or not, leaves -2^(acc_bits - 1) + 1 .. 2^(acc_bits - 1) - 2.
    multiplier_bits
        Of the engine, >= 8.
    """
    rng = np.random.default_rng(seed)
    arrays: dict[str, dict[str, np.ndarray]] = {}
    values_of = {INPUT: random_images(network, 4, seed + 1)}  # map -> its values for some images
    integers = {layer.name for layer in network.layers if isinstance(layer, FeatureLayer)}
    reach = (0, 0)
    mixed = any(isinstance(layer, Threshold) for layer in network.layers)
    for layer in network.layers:
        read = [values_of[name] for name in network.reads[layer.name]]
        source = network.sources(layer)[0]
        if isinstance(layer, Add):
            arrays[layer.name] = _addition(layer, network.sources(layer), rng)
        if isinstance(layer, MultiplyMaps):
            arrays[layer.name] = _product(layer, network.sources(layer), rng)
        if layer.input_count > 1:
            values_of[layer.name] = layer.forward_of(read, arrays.get(layer.name, {}), network.sources(layer))
            continue
        assert isinstance(layer, OneInput)
        (x,) = read
        if isinstance(layer, Weighted):
            low = layer.weight.low
            high = layer.weight.high
            step = layer.weight.step
            low += mixed and layer.weight.kind == "signed"  # so that all may change their sign
            values = [low, high] if rng.random() < 0.25 else np.arange(low, high + 1, step)
            arrays[layer.name] = {"weight": rng.choice(values, layer.array_shapes(source)["weight"])}
            reach = layer.accumulator_range(source)
        elif isinstance(layer, Lookup):
            shape = layer.array_shapes(source)["entries"]
            arrays[layer.name] = {"entries": rng.integers(layer.low, layer.high, shape, endpoint=True)}
        elif isinstance(layer, Threshold) and network.reads[layer.name][0] in integers:
            arrays[layer.name] = _signs(network.next_layer(layer.name), source, rng)
        elif isinstance(layer, Threshold):
            arrays[layer.name] = _thresholds(x, layer, rng)
            if layer is network.layers[-1]:
                arrays[layer.name]["direction"][:] = 1  # after a max pool the last layer can't be a complement
        elif isinstance(layer, Requantise):
            room = 1 << min(acc_bits, SUM_BITS) - 1
            ends = (source.encoding.low, source.encoding.high)
            if _of_features(network, layer.name):  # behind a copy, whose sums count as those of all channels
                ends = (-2 * source.channels << source.encoding.bits, 2 * source.channels << source.encoding.bits)
            bounds = (1 - room - min(ends[0], reach[0]), room - 2 - max(ends[1], reach[1]))
            drawn = [_requantisation(c, layer, bounds, multiplier_bits, rng) for c in x.reshape(-1, source.channels).T]
            if layer.rounding == "twice":
                drawn = [_shifted_twice(row, multiplier_bits) for row in drawn]
            rows = [_behind_the_point(row, layer, source, rng) for row in drawn]
            arrays[layer.name] = dict(zip(("bias", "multiplier", "shift"), np.array(rows, np.int64).T))
        single = Network(name=layer.name, input=source, layers=(replace(layer, inputs=()),))
        values_of[layer.name] = packed.forward(Model(single, {k: v for k, v in arrays.items() if k == layer.name}), x)
    return Model(network, arrays)


def _of_features(network: Network, name: str) -> bool:
    """Whether a layer reads features, perhaps pooled ones, and not sums."""
    layers = {layer.name: layer for layer in network.layers}
    while isinstance(layer := layers.get(network.reads[name][0]), Pool):
        name = layer.name
    return not isinstance(layer, Weighted)


def _thresholds(x: np.ndarray, layer: Threshold, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Arrays for values (N, H, W, C): thresholds that they are equal to, or next to, and some far out of reach."""
    values = x.reshape(-1, x.shape[-1])
    threshold = rng.permuted(values, axis=0)[rng.integers(0, len(values), layer.levels)].T + rng.integers(-1, 2)
    far = rng.random(threshold.shape) < 0.05
    threshold[far] = rng.choice([-(2**31) + 1, 2**31 - 1], far.sum())
    return {"threshold": threshold, "direction": rng.choice([-1, 1], len(threshold))}


def _signs(after: Layer | None, source: Map, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Arrays of a threshold that makes signs of integers, or their complements, as the layer ``after`` it wants."""
    drawn = {MinPool: [-1], Weighted: [-1, 1]}
    kinds = next((values for kind, values in drawn.items() if isinstance(after, kind)), [1])
    direction = rng.choice(kinds, source.channels)
    return {"threshold": np.minimum(direction, 0)[:, None], "direction": direction}


def _requantisation(
    sums: np.ndarray, layer: Requantise, bounds: tuple[int, int], multiplier_bits: int, rng: np.random.Generator
) -> tuple[int, int, int]:
    """(bias, multiplier, shift) of a channel whose sums are (samples,), without bits behind the point.

    In half of all channels values use the encoding's range; in the others most saturate, or many are exact halves, or
    bias, multiplier or shift is as large as it may be. The bias keeps within ``bounds``.
    """
    middle = int(sums.mean())
    spread = max(1, int(np.abs(sums - sums.mean()).mean()))
    bias = min(max(int(spread * rng.uniform(-1, 1)) - middle, bounds[0]), bounds[1])
    top = max(1, layer.high, -layer.low)
    scale = (top + 0.5) / spread * rng.uniform(0.2, 0.8)
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


def _addition(layer: Add, sources: Sequence[Map], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Arrays of an addition: mostly factors with which sums use the encoding's range, in one of four as large as they
    may be; one of four factors is negative."""
    most = (1 << FACTOR_BITS - 1) - 1
    shift = int(rng.integers(0, MAX_ADD_SHIFT + 1))
    top = max(1, layer.high, -layer.low)
    ends = [max(source.encoding.high, -source.encoding.low) for source in sources]
    factors = [int(min(most, top / end * rng.uniform(0.2, 1.5) * 2.0**shift)) for end in ends]
    if rng.random() < 0.25:
        factors = [most, int(rng.integers(-most, most + 1))]
    factors = [int(factor) * int(rng.choice([1, 1, 1, -1])) for factor in factors]
    bias = int(rng.integers(-1, 2) * rng.uniform(0, 1) * min(top * 2.0**shift, 1 << OFFSET_BITS - 2))
    return {"multiplier": np.array(factors), "bias": np.array([bias]), "shift": np.array([shift])}


def _product(layer: MultiplyMaps, sources: Sequence[Map], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Arrays of a product of maps: mostly a factor with which results use the encoding's range, in one of four as large
    as it may be; the bias is often half of what the first of two roundings takes off, or 0."""
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


def random_model(network: Network, seed: int) -> Model:
    """Random weights, and thresholds among and around the sums that occur, with some far out of reach."""
    rng = np.random.default_rng(seed)
    arrays: dict[str, dict[str, np.ndarray]] = {}
    final = [layer.kind for layer in network.layers[-2:]] == ["max_pool", "threshold"]
    spread = 1 + network.input.encoding.high // 2
    for layer, source in network.chain("a random model"):
        shapes = layer.array_shapes(source)
        if "weight" in shapes:
            values = [-1, 1] if layer.weight == BIPOLAR else [-1, 0, 1]
            arrays[layer.name] = {"weight": rng.choice(values, shapes["weight"]).astype(np.int8)}
            spread = max(1, int(layer.fan_in(source) ** 0.5 * source.encoding.high))
        elif isinstance(layer, SumPool):
            spread *= layer.window.taps
        elif "threshold" in shapes:
            threshold = np.rint(rng.normal(0, spread, shapes["threshold"])).astype(np.int64)
            far = rng.random(shapes["threshold"]) < 0.05
            threshold[far] = rng.choice([-(2**31) + 1, 2**31 - 1], far.sum())
            direction = rng.choice([-1, 1], shapes["direction"])
            if final and layer is network.layers[-1]:
                direction[:] = 1  # after a max pool the last layer can't be a complement
            arrays[layer.name] = {"threshold": threshold, "direction": direction}
    return Model(network, arrays)
