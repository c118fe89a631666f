"""A model as passes (hls_gen/compiler/passes.py), each of the engine of the NPU that computes it.

    network --> weighted layers, each with what follows it --> binary pass (hls_gen/compiler/lowering_binary.py)
                                                          `--> integer pass (hls_gen/compiler/lowering_integer.py)

Between passes of different engines lie bits, some of which are complements; the reader's weights know which.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.flatten import flat
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.golden.packing import to_bits

from . import lowering_binary, lowering_integer
from .lowering_binary import input_planes, plane_coefficients
from .passes import IntegerPass, Pass, run_integer_pass, run_pass

__all__ = ["Engine", "Lowered", "engine_kinds", "input_planes", "lower", "lower_integer", "plane_coefficients"]


@dataclass(frozen=True)
class Engine:
    """What computes a pass. kind : "binary" or "integer".  feature_bits, weight_bits : of the integer engine, in two's
    complement."""

    kind: str = "binary"
    feature_bits: int = 1
    weight_bits: int = 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Lowered:
    """A model as passes. Only the input may have planes; other maps are bits, or integers between integer passes."""

    model: Model
    source: Map
    """The input as the first pass reads it (golden/flatten.py)."""
    passes: tuple[Pass | IntegerPass, ...]
    input_bits: int
    """Planes of an integer input to a binary pass, without the constant one; 0 for a bipolar input, whose channels are
    thermometer bits, and for an input that is made binary."""
    binariser: Array | None = None
    """(channels,) thresholds that make the input binary before the first pass (spec A9), or None."""

    def input_features(self, images: Array) -> Array:
        """(N, H, W, C) values -> what the first pass reads: (N, H, W, channels, planes) of 0 and 1, or (N, H, W, C)
        integers."""
        images = images.reshape(len(images), *self.source.shape)
        if isinstance(self.passes[0], IntegerPass):
            return images
        if self.binariser is not None:
            return (images >= self.binariser).astype(np.uint8)[..., None]
        if not self.input_bits:
            return to_bits(images, self.source.encoding).reshape(*images.shape[:3], -1, 1)
        planes: Array = (images.astype(np.int64)[..., None] >> np.arange(self.input_bits)) & 1
        features: Array = np.concatenate([planes, np.ones_like(planes[..., :1])], axis=-1)
        return features.astype(np.uint8)

    def forward(self, images: Array) -> Array:
        """Result of the last pass by the passes' own rule: values, or bits (N, H, W, channels * levels)."""
        self.model.check_images(images)
        return self.trace(images)[-1]

    def trace(self, images: Array) -> list[Array]:
        """Result of every pass, as ``forward``."""
        results: list[Array] = []
        features, bits = self.input_features(images), False
        for p in self.passes:
            if isinstance(p, IntegerPass):
                result = run_integer_pass(p, 2 * features.astype(np.int64) - 1 if bits else features)
                features, bits = result, p.signs
            else:
                result = run_pass(p, features[..., None] if results else features)
                features, bits = result, True
            results.append(result)
        return results


def lower(
    model: Model,
    planes: int | None = None,
    binariser_bits: int = 0,
    lanes: int = 1,
    *,
    engines: Sequence[Engine] | None = None,
) -> Lowered:
    """Passes of ``model``. ``planes``: bits that an integer input is sign-extended to (as many as it needs by default).

    binariser_bits : of the features that a binariser in front of the engine takes; 0: there is none.
    lanes : channels of an input word, by which a dense layer's input is one tuple or many
        (golden/flatten.py).
    engines : of each weighted layer; all binary by default.
    ValueError, naming layer, rule and value, where an engine can't compute its layers.
    """
    given, model = model, flat(model, lanes)
    network = model.network
    source = network.input
    first = engines[0] if engines else Engine()
    entry = network.layers[0] if isinstance(network.layers[0], Threshold) and binariser_bits else None
    needs = input_planes(source.encoding)
    if entry or source.encoding.kind == "bipolar" or first.kind == "integer":
        needs = 0
    bits = needs if planes is None or not needs else planes
    if bits < needs:
        raise ValueError(f"{network.name}: the input must have at most {bits} bit planes, got {needs}")
    chain = _chain(network, 1 if entry else 0)
    engines = engines or [first] * len(chain)
    passes: list[Pass | IntegerPass] = []
    complement = np.zeros(source.channels * source.encoding.bits, bool)
    limits = None
    if entry:
        limits, complement = lowering_binary.binariser(model, entry, binariser_bits)
    for number, (layer, read, tail) in enumerate(chain):
        here, is_last = engines[number], number == len(chain) - 1
        made: Pass | IntegerPass
        if here.kind == "binary":
            lowering_binary.check(layer, read, tail, is_last)
            made, complement = lowering_binary.binary_pass(
                model, layer, read, tail, complement, bits if number == 0 else 0
            )
        else:
            from_bits = number > 0 and engines[number - 1].kind == "binary"
            to_bits = not is_last and engines[number + 1].kind == "binary"
            widths = here.feature_bits, here.weight_bits
            lowering_integer.check(layer, read, tail, is_last, *widths, from_bits=from_bits, to_bits=to_bits)
            made, complement = lowering_integer.integer_pass(model, layer, read, tail, complement, here.weight_bits)
        passes.append(made)
    if complement.any():
        last = network.layers[-1].name
        raise ValueError(f"{last}: direction after a max pool must be 1 in the last layer, got -1")
    return Lowered(model=given, source=source, passes=tuple(passes), input_bits=bits, binariser=limits)


def lower_integer(model: Model, feature_bits: int, weight_bits: int, lanes: int = 1) -> Lowered:
    """Passes of ``model`` for the integer engine alone; ValueError as ``lower``."""
    engine = Engine("integer", feature_bits, weight_bits)
    return lower(model, lanes=lanes, engines=[engine] * len(engine_kinds(model.network)))


def engine_kinds(network: Network) -> list[str]:
    """The kind of engine that each weighted layer is for: integer, if it has weights of several bits, reads a map of
    integers, other than the input, or is requantised; else binary."""
    kinds: list[str] = []
    for layer, source in network.chain("the compiler"):
        if isinstance(layer, Weighted):
            integers = layer.weight.kind in ("signed", "unsigned") or (kinds and source.encoding.kind != "bipolar")
            kinds.append("integer" if integers else "binary")
        elif isinstance(layer, Requantise) and kinds:
            kinds[-1] = "integer"
    return kinds


def _chain(network: Network, first: int) -> list[tuple[Weighted, Map, list[Layer]]]:
    """Each weighted layer from number ``first`` on, the map that it reads, and the layers up to the next one."""
    chain: list[tuple[Weighted, Map, list[Layer]]] = []
    for layer, source in network.chain("the compiler")[first:]:
        if isinstance(layer, Weighted):
            chain.append((layer, source, []))
        elif chain:
            chain[-1][2].append(layer)
        else:
            raise ValueError(
                f"{layer.name}: a pass of the engine must begin with a conv or dense layer, got {layer.kind}"
            )
    return chain
