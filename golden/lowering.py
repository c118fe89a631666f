"""Everything low-bit is XNOR and popcount: a model as passes of a binary engine, exact rewritings of the plain layers.

A pass is a convolution with its thresholds and pooling, one trip through an engine that knows only bits:

    sum   = over valid taps, channels c and planes p of coefficient[p] * XNOR(feature[c, p], weight[o, tap, c, p])
    value = (2 if double else 1) * sum - tap_offset * valid taps
    bit t of channel o = value >= threshold[o, t], then OR over the pool window's valid taps

A pass that accumulates by OR has in place of the sum 1 where any XNOR of a valid tap is 1, else 0; the value is that
bit, its threshold 1.

The rewritings, each of which tests/golden/test_lowering.py shows to be exact:

* *matches*: with bipolar features and weights, matches minus mismatches = 2 * matches - channels, per tap, also
  beside padding.
* *thermometer*: a bipolar value of k bits is k bipolar channels; its weight is repeated k times.
* *ternary weights* are the sum of two bipolar weights, halved: every tap is visited twice (``visits``). The halving
  goes into sum and offset, or, where that is not exact, into doubled thresholds.
* *bit planes*: an integer of b bits in two's complement is b planes with coefficients 1, 2, ..., -2^(b-1). With
  feature bits f and weights +-1, sum x w = sum of c_k popcount(XNOR(f_k, w)) + number of -1 weights, since the c_k add
  up to -1; that number is one more plane of coefficient 1, feature 1 and the weight bit inverted. An unsigned b-bit
  value is a signed one of b + 1 bits.
* *direction*: x <= T is -x >= -T: the kernel's weights change sign. After a max pool, where that is not exact, the
  complement x >= T + 1 is computed instead, and the next layer's weights for that channel are inverted.
"""

from dataclasses import dataclass

import numpy as np

from .conv import Weighted
from .encoding import BIPOLAR, TERNARY, Array, Encoding
from .flat import flat
from .layer import Layer, Map
from .network import Model, Network
from .packing import to_bits
from .pool import MaxPool
from .threshold import Threshold
from .window import Window

TAILS = ((), ("threshold",), ("threshold", "max_pool"), ("max_pool", "threshold"))
"""Kinds of layers that may follow a weighted one in its pass."""

OR_TAILS = ((), ("max_pool",))
"""The same where it accumulates by OR: what it gives are bits."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pass:
    """One trip through the binary engine; see the module's text.

    name : the weighted layer's.  height, width : input map.
    window : of the convolution.  visits : times that each valid tap is visited, one after another.
    weight : (out_channels, taps * visits, channels, planes) of 0 and 1, bit 1 = +1.
    coefficient : (planes,) +-2^k.  double, tap_offset : see above; the offset is per visit.
    any_match : the products are accumulated by OR; double is False, tap_offset 0, threshold 1.
    threshold : (out_channels, levels) int64, or None: the values themselves are the result.
    pool : window of the max pool over the bits, or None.
    value_range : smallest and largest value, for any features.
    """

    name: str
    height: int
    width: int
    window: Window
    visits: int
    weight: Array
    coefficient: Array
    double: bool
    tap_offset: int
    threshold: Array | None
    pool: Window | None
    value_range: tuple[int, int]
    any_match: bool = False

    @property
    def out_channels(self) -> int:
        """Kernels (DON)."""
        return len(self.weight)

    @property
    def raw(self) -> bool:
        """Whether values are the result."""
        return self.threshold is None

    @property
    def levels(self) -> int:
        """Bits that a kernel gives, 1 for values."""
        return 1 if self.threshold is None else int(self.threshold.shape[1])


@dataclass(frozen=True, kw_only=True, eq=False)
class Lowered:
    """A model as passes. Only the input may have planes; every other map is plain bits."""

    model: Model
    source: Map
    """The input as the first pass reads it (golden/flat.py)."""
    passes: tuple[Pass, ...]
    input_bits: int
    """Planes of an integer input without the constant one; 0 for a bipolar input, whose channels are thermometer
    bits, and for an input that is made binary."""
    binariser: Array | None = None
    """(channels,) thresholds that make the input binary before the first pass (spec A9), or None."""

    def input_features(self, images: Array) -> Array:
        """(N, H, W, C) values -> (N, H, W, channels, planes) of 0 and 1 that the first pass reads."""
        images = images.reshape(len(images), *self.source.shape)
        encoding = self.model.network.input.encoding
        if self.binariser is not None:
            return (images >= self.binariser).astype(np.uint8)[..., None]
        if not self.input_bits:
            return to_bits(images, encoding).reshape(*images.shape[:3], -1, 1)
        planes: Array = (images.astype(np.int64)[..., None] >> np.arange(self.input_bits)) & 1
        features: Array = np.concatenate([planes, np.ones_like(planes[..., :1])], axis=-1)
        return features.astype(np.uint8)

    def forward(self, images: Array) -> Array:
        """Result of the last pass by the passes' own rule: values, or bits (N, H, W, channels * levels)."""
        self.model.check_images(images)
        features = self.input_features(images)
        for p in self.passes:
            result = run_pass(p, features)
            features = result[..., None]
        return result


def run_pass(p: Pass, features: Array) -> Array:
    """(N, H, W, channels, planes) bits -> (N, H', W', out_channels) values or (.., out_channels * levels) bits."""
    positions = p.window.positions(p.height, p.width)
    n = len(features)
    flat = features.reshape(n, p.height * p.width, *features.shape[3:])
    total = np.zeros((n, len(positions), p.out_channels), np.int64)
    for place in range(positions.shape[1] * p.visits):
        position = positions[:, place // p.visits]
        match = flat[:, position, None] == p.weight[:, place]  # (N, outputs, O, channels, planes)
        total += (match.sum(axis=3) @ p.coefficient) * (position >= 0)[:, None]
    if p.any_match:
        total = np.minimum(total, 1)
    value: Array = (1 + p.double) * total - p.tap_offset * p.visits * (positions >= 0).sum(axis=1)[:, None]
    rows, columns = p.window.output_size(p.height, p.width)
    value = value.reshape(n, rows, columns, p.out_channels)
    if p.threshold is None:
        return value
    bits: Array = (value[..., None] >= p.threshold).astype(np.uint8).reshape(n, rows, columns, -1)
    if p.pool is None:
        return bits
    taps = p.pool.positions(rows, columns)
    padded = np.concatenate([bits.reshape(n, rows * columns, -1), np.zeros((n, 1, bits.shape[3]), np.uint8)], axis=1)
    pooled: Array = padded[:, taps].max(axis=2)
    return pooled.reshape(n, *p.pool.output_size(rows, columns), -1)


def input_planes(encoding: Encoding) -> int:
    """Bits in two's complement that hold every value of a signed, unsigned or ternary encoding."""
    return encoding.bits + (encoding.kind == "unsigned")


def plane_coefficients(bits: int) -> Array:
    """(bits + 1,) coefficients of the planes of a two's complement number and of the constant plane."""
    powers = np.left_shift(np.int64(1), np.arange(bits))
    powers[-1] = -powers[-1]
    return np.append(powers, 1)


def lower(model: Model, planes: int | None = None, binariser_bits: int = 0, lanes: int = 1) -> Lowered:
    """Passes of ``model``. ``planes``: bits that an integer input is sign-extended to (as many as it needs by default).

    binariser_bits : of the features that a binariser in front of the engine takes; 0: there is none.
    lanes : channels of an input word, by which a dense layer's input is one tuple or many (golden/flat.py).
    ValueError, naming layer, rule and value, where the binary engine can't compute the network.
    """
    given, model = model, flat(model, lanes)
    network = model.network
    source = network.input
    entry = network.layers[0] if isinstance(network.layers[0], Threshold) and binariser_bits else None
    needs = 0 if source.encoding.kind == "bipolar" or entry else input_planes(source.encoding)
    bits = needs if planes is None or not needs else planes
    if bits < needs:
        raise ValueError(f"{network.name}: the input must have at most {bits} bit planes, got {needs}")
    chain = _chain(network, 1 if entry else 0)
    passes: list[Pass] = []
    complement = np.zeros(source.channels * source.encoding.bits, bool)
    limits = None
    if entry:
        limits, complement = _binariser(model, entry, binariser_bits)
    for number, (layer, read, tail) in enumerate(chain):
        _check(layer, read, tail, is_last=number == len(chain) - 1)
        made, complement = _pass(model, layer, read, tail, complement, bits if number == 0 else 0)
        passes.append(made)
    if complement.any():
        last = network.layers[-1].name
        raise ValueError(f"{last}: direction after a max pool must be 1 in the last layer, got -1")
    return Lowered(model=given, source=source, passes=tuple(passes), input_bits=bits, binariser=limits)


def _binariser(model: Model, layer: Threshold, bits: int) -> tuple[Array, Array]:
    """((channels,) thresholds of bit = x >= threshold, which of the bits are complements)."""
    source = model.network.input.encoding
    if source.kind == "bipolar" or input_planes(source) > bits or layer.levels != 1:
        raise ValueError(
            f"{layer.name}: the binariser makes one bit of integers of {bits} bits in two's complement, "
            f"got {layer.levels} levels of {source}"
        )
    arrays = model.arrays[layer.name]
    down = arrays["direction"] < 0
    limits = arrays["threshold"][:, 0].astype(np.int64) + down
    return np.clip(limits, -(1 << (bits - 1)), 1 << (bits - 1)), down


def _chain(network: Network, first: int) -> list[tuple[Weighted, Map, list[Layer]]]:
    """Each weighted layer from number ``first`` on, the map that it reads, and the layers up to the next one."""
    chain: list[tuple[Weighted, Map, list[Layer]]] = []
    for layer, source in list(network)[first:]:
        if isinstance(layer, Weighted):
            chain.append((layer, source, []))
        elif chain:
            chain[-1][2].append(layer)
        else:
            raise ValueError(
                f"{layer.name}: a pass of the engine must begin with a conv or dense layer, got {layer.kind}"
            )
    return chain


def _check(layer: Weighted, source: Map, tail: list[Layer], is_last: bool) -> None:
    """Raise ValueError unless the engine can compute this layer and what follows it."""
    kinds = tuple(t.kind for t in tail)
    if layer.accumulate == "or":
        if kinds not in OR_TAILS:
            raise ValueError(
                f"{layer.name}: what follows accumulate or must be nothing or max_pool, got {', '.join(kinds)}"
            )
        return
    if kinds not in TAILS:
        raise ValueError(
            f"{layer.name}: what follows must be nothing, threshold, threshold and max_pool, or max_pool and "
            f"threshold, got {', '.join(kinds)}"
        )
    if not kinds and not is_last:
        raise ValueError(f"{layer.name}: a threshold must follow before the next layer, got none")
    if layer.weight not in (BIPOLAR, TERNARY):
        raise ValueError(f"{layer.name}: weight must be bipolar 1 bit or ternary, got {layer.weight}")
    even = source.encoding.kind == "bipolar" and source.channels * source.encoding.bits % 2 == 0
    if not kinds and layer.weight == TERNARY and not even:
        raise ValueError(
            f"{layer.name}: ternary weights without a threshold need a bipolar map with an even number of bits at "
            f"each position, got {source.channels} channels of {source.encoding}"
        )


def _pass(
    model: Model, layer: Weighted, source: Map, tail: list[Layer], inverted: Array, planes: int
) -> tuple[Pass, Array]:
    """One pass, and which of its output bits are complements.

    inverted : which of its input bits are complements.  planes : of an integer input, or 0.
    """
    window, arrays = layer.window(source), model.arrays
    weight = arrays[layer.name]["weight"].astype(np.int64).reshape(layer.out_channels, window.taps, source.channels)
    low, high = layer.accumulator_range(source)
    threshold, complement = None, np.zeros(0, bool)
    for act in tail:
        if isinstance(act, Threshold):
            threshold = arrays[act.name]["threshold"].astype(np.int64)
            down = arrays[act.name]["direction"] < 0
            complement = np.repeat(down & isinstance(tail[0], MaxPool), act.levels)
            if isinstance(tail[0], MaxPool):
                threshold = threshold + down[:, None]
            else:
                weight = np.where(down[:, None, None], -weight, weight)
                threshold = np.where(down[:, None], -threshold, threshold)
                low, high = min(low, -high), max(high, -low)
            threshold = np.clip(threshold, low, high + 1)
    any_match = layer.accumulate == "or"
    if any_match:
        low, high, threshold = 0, 1, np.ones((layer.out_channels, 1), np.int64)
        complement = np.zeros(layer.out_channels, bool)
    halves = [weight]
    if layer.weight == TERNARY:
        halves = [np.where(weight > 0, 1, -1), np.where(weight < 0, -1, 1)]  # w = (a + b) / 2
    weight = np.stack(halves, axis=2).reshape(layer.out_channels, -1, source.channels)  # (O, taps * visits, C)
    lanes = _lanes(weight, source.encoding, planes, inverted)
    double, offset = (False, 0) if planes or any_match else (True, lanes.shape[2])
    if len(halves) == 2 and double and offset % 2 == 0:  # the visits' sum is twice the accumulator: halve both terms
        double, offset = False, offset // 2
    elif len(halves) == 2 and threshold is not None:
        low, high, threshold = 2 * low, 2 * high, np.minimum(2 * threshold, 2 * high + 1)  # high + 1: out of reach
    made = Pass(
        name=layer.name,
        height=source.height,
        width=source.width,
        window=window,
        visits=len(halves),
        weight=lanes,
        coefficient=plane_coefficients(planes) if planes else np.ones(1, np.int64),
        double=double,
        tap_offset=offset,
        threshold=threshold,
        pool=next((t.window for t in tail if isinstance(t, MaxPool)), None),
        value_range=(low, high),
        any_match=any_match,
    )
    return made, complement


def _lanes(weight: Array, encoding: Encoding, planes: int, inverted: Array) -> Array:
    """(O, places, C) weights of +-1 for a map of ``encoding`` -> (O, places, channels, planes) bits of ``Pass``."""
    bits: Array = weight > 0
    if planes:
        lanes: Array = np.concatenate([np.repeat(bits[..., None], planes, axis=3), ~bits[..., None]], axis=3)
    else:
        lanes = (np.repeat(bits, encoding.bits, axis=2) ^ inverted)[..., None]
    return lanes.astype(np.uint8)
