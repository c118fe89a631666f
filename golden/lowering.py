"""Everything low-bit is XNOR and popcount: a model as passes of a binary engine, exact rewritings of the plain layers.

A pass is a convolution with its thresholds and pooling, one trip through an engine that knows only bits:

    sum   = over valid taps, channels c and planes p of coefficient[p] * XNOR(feature[c, p], weight[o, tap, c, p])
    value = (2 if double else 1) * sum - tap_offset * valid taps
    bit t of channel o = value >= threshold[o, t], then OR over the pool window's valid taps

The rewritings, each of which tests/golden/test_lowering.py shows to be exact:

* *matches*: with bipolar features and weights, matches minus mismatches = 2 * matches - channels, per tap, also beside padding.
* *thermometer*: a bipolar value of k bits is k bipolar channels; its weight is repeated k times.
* *ternary weights* are the sum of two bipolar weights, halved: every tap is visited twice (``visits``). The halving goes into
  the offset, or, where channels are odd, into doubled thresholds.
* *bit planes*: an integer of b bits in two's complement is b planes with coefficients 1, 2, ..., -2^(b-1). With feature bits f and
  weights +-1, sum x w = sum of c_k popcount(XNOR(f_k, w)) + number of -1 weights, since the c_k add up to -1; that number
  is one more plane of coefficient 1, feature 1 and the weight bit inverted. An unsigned b-bit value is a signed one of b + 1 bits.
* *direction*: x <= T is -x >= -T: the kernel's weights change sign. After a max pool, where that is not exact, the complement
  x >= T + 1 is computed instead, and the next layer's weights for that channel are inverted.
"""

from dataclasses import dataclass

import numpy as np

from .conv import Weighted
from .encoding import BIPOLAR, Encoding
from .layer import Map
from .network import Model
from .pool import MaxPool
from .threshold import Threshold
from .window import Window


@dataclass(frozen=True, kw_only=True, eq=False)
class Pass:
    """One trip through the binary engine; see the module's text.

    name : the weighted layer's.  height, width : input map.
    window : of the convolution.  visits : times that each valid tap is visited, one after another.
    weight : (out_channels, taps * visits, channels, planes) of 0 and 1, bit 1 = +1.
    coefficient : (planes,) +-2^k.  double, tap_offset : see above; the offset is per visit.
    threshold : (out_channels, levels) int64, or None: the values themselves are the result.
    pool : window of the max pool over the bits, or None.
    value_range : smallest and largest value, for any features.
    """

    name: str
    height: int
    width: int
    window: Window
    visits: int
    weight: np.ndarray
    coefficient: np.ndarray
    double: bool
    tap_offset: int
    threshold: np.ndarray | None
    pool: Window | None
    value_range: tuple[int, int]

    @property
    def out_channels(self) -> int:
        """Kernels (DON)."""
        return len(self.weight)

    @property
    def levels(self) -> int:
        """Bits that a kernel gives, 1 for values."""
        return 1 if self.threshold is None else self.threshold.shape[1]


@dataclass(frozen=True, kw_only=True, eq=False)
class Lowered:
    """A model as passes. The input's planes are those of ``input_planes``; every other map is plain bits."""

    model: Model
    passes: tuple[Pass, ...]
    input_bits: int
    """Planes of an integer input without the constant one; 0 for a bipolar input, whose channels are thermometer bits."""

    def input_features(self, images: np.ndarray) -> np.ndarray:
        """(N, H, W, C) values -> (N, H, W, channels, planes) of 0 and 1 that the first pass reads."""
        encoding = self.model.network.input.encoding
        if not self.input_bits:
            bits = (2 * np.arange(encoding.bits) < images[..., None] + encoding.bits).astype(np.uint8)
            return bits.reshape(*images.shape[:3], -1, 1)
        planes = (images.astype(np.int64)[..., None] >> np.arange(self.input_bits)) & 1
        return np.concatenate([planes, np.ones_like(planes[..., :1])], axis=-1).astype(np.uint8)

    def forward(self, images: np.ndarray) -> np.ndarray:
        """Result of the last pass by the passes' own rule: values, or bits (N, H, W, channels * levels)."""
        self.model.check_images(images)
        features = self.input_features(images)
        result = features
        for p in self.passes:
            result = run_pass(p, features)
            features = result[..., None]
        return result


def run_pass(p: Pass, features: np.ndarray) -> np.ndarray:
    """(N, H, W, channels, planes) bits -> (N, H', W', out_channels) values or (.., out_channels * levels) bits."""
    positions = p.window.positions(p.height, p.width)
    n = len(features)
    flat = features.reshape(n, p.height * p.width, *features.shape[3:])
    total = np.zeros((n, len(positions), p.out_channels), np.int64)
    for place in range(positions.shape[1] * p.visits):
        position = positions[:, place // p.visits]
        match = flat[:, position, None] == p.weight[:, place]  # (N, outputs, O, channels, planes)
        total += (match.sum(axis=3) @ p.coefficient) * (position >= 0)[:, None]
    value = (1 + p.double) * total - p.tap_offset * p.visits * (positions >= 0).sum(axis=1)[:, None]
    rows, columns = p.window.output_size(p.height, p.width)
    value = value.reshape(n, rows, columns, p.out_channels)
    if p.threshold is None:
        return value
    bits = (value[..., None] >= p.threshold).astype(np.uint8).reshape(n, rows, columns, -1)
    if p.pool is None:
        return bits
    taps = p.pool.positions(rows, columns)
    padded = np.concatenate([bits.reshape(n, rows * columns, -1), np.zeros((n, 1, bits.shape[3]), np.uint8)], axis=1)
    return padded[:, taps].max(axis=2).reshape(n, *p.pool.output_size(rows, columns), -1)


def input_planes(encoding: Encoding) -> int:
    """Bits in two's complement that hold every value of a signed, unsigned or ternary encoding."""
    return encoding.bits + (encoding.kind == "unsigned")


def plane_coefficients(bits: int) -> np.ndarray:
    """(bits + 1,) coefficients of the planes of a two's complement number and of the constant plane."""
    powers = np.left_shift(np.int64(1), np.arange(bits))
    powers[-1] = -powers[-1]
    return np.append(powers, 1)


def lower(model: Model, planes: int | None = None) -> Lowered:
    """Passes of ``model``. ``planes``: bits that an integer input is sign-extended to (as many as it needs by default).

    ValueError, naming layer, rule and value, where the binary engine can't compute the network.
    """
    network = model.network
    needs = 0 if network.input.encoding.kind == "bipolar" else input_planes(network.input.encoding)
    bits = needs if planes is None or not needs else planes
    if bits < needs:
        raise ValueError(f"{network.name}: the input must have at most {bits} bit planes, got {needs}")
    layers = list(network)
    passes: list[Pass] = []
    complemented = np.zeros(network.input.channels * network.input.encoding.bits, bool)
    at = 0
    while at < len(layers):
        layer, source = layers[at]
        if not isinstance(layer, Weighted):
            raise ValueError(
                f"{layer.name}: a pass of the engine must begin with a conv or dense layer, got {layer.kind}"
            )
        tail = []
        while at + 1 < len(layers) and not isinstance(layers[at + 1][0], Weighted):
            at += 1
            tail.append(layers[at][0])
        at += 1
        made, complemented = _pass(
            model, layer, source, tail, complemented, bits if not passes else 0, at == len(layers)
        )
        passes.append(made)
    return Lowered(model=model, passes=tuple(passes), input_bits=bits)


def _pass(
    model: Model, layer: Weighted, source: Map, tail: list, complemented: np.ndarray, planes: int, is_last: bool
) -> tuple[Pass, np.ndarray]:
    """One pass, and which of its output bits are complements."""
    kinds = [t.kind for t in tail]
    if kinds not in ([], ["threshold"], ["threshold", "max_pool"], ["max_pool", "threshold"]):
        raise ValueError(
            f"{layer.name}: what follows must be nothing, threshold, threshold and max_pool, or max_pool and "
            f"threshold, got {', '.join(kinds)}"
        )
    if not kinds and not is_last:
        raise ValueError(f"{layer.name}: a threshold must follow before the next layer, got none")
    if layer.weight not in (BIPOLAR, Encoding("ternary", 2)):
        raise ValueError(f"{layer.name}: weight must be bipolar 1 bit or ternary, got {layer.weight}")
    if source.encoding.kind != "bipolar" and not planes:
        raise ValueError(f"{layer.name}: its map must be bipolar, got {source.encoding}")
    window = layer.window(source)
    weight = (
        model.arrays[layer.name]["weight"].astype(np.int64).reshape(layer.out_channels, window.taps, source.channels)
    )
    low, high = layer.accumulator_range(source)
    out_complemented = np.zeros(layer.out_channels, bool)
    threshold = None
    if kinds:
        act = next(t for t in tail if isinstance(t, Threshold))
        arrays = model.arrays[act.name]
        threshold = arrays["threshold"].astype(np.int64)
        down = arrays["direction"] < 0
        if kinds[0] == "max_pool":
            threshold = np.where(down[:, None], threshold + 1, threshold)
            out_complemented = down
            if is_last and down.any():
                raise ValueError(f"{act.name}: direction after a max pool must be 1 in the last layer, got -1")
        else:
            weight = np.where(down[:, None, None], -weight, weight)
            threshold = np.where(down[:, None], -threshold, threshold)
            low, high = min(low, -high), max(high, -low)
        threshold = np.clip(threshold, low, high + 1)
    ternary = layer.weight.kind == "ternary"
    halves = [np.where(weight > 0, 1, -1), np.where(weight < 0, -1, 1)] if ternary else [weight]  # w = (a + b) / 2
    visits = len(halves)
    weight = np.stack(halves, axis=2).reshape(layer.out_channels, window.taps * visits, source.channels)
    if planes:
        coefficient = plane_coefficients(planes)
        bits = (weight > 0).astype(np.uint8)[..., None]
        lowered = np.concatenate([np.repeat(bits, planes, axis=-1), 1 - bits], axis=-1)
        double, offset = False, 0
    else:
        coefficient = np.ones(1, np.int64)
        lowered = (np.repeat(weight, source.encoding.bits, axis=2) > 0).astype(np.uint8)
        lowered = (lowered ^ complemented.astype(np.uint8))[..., None]
        double, offset = True, lowered.shape[2]
    if ternary:
        low, high, threshold, double, offset = _halve(layer.name, low, high, threshold, double, offset)
    pool = next((t.window for t in tail if isinstance(t, MaxPool)), None)
    made = Pass(
        name=layer.name,
        height=source.height,
        width=source.width,
        window=window,
        visits=visits,
        weight=lowered,
        coefficient=coefficient,
        double=double,
        tap_offset=offset,
        threshold=threshold,
        pool=pool,
        value_range=(low, high),
    )
    return made, np.repeat(out_complemented, 1 if threshold is None else threshold.shape[1])


def _halve(name: str, low: int, high: int, threshold: np.ndarray | None, double: bool, offset: int):
    """The two visits' sum is twice the accumulator: halve sum and offset if that is exact, else double the thresholds."""
    if double and offset % 2 == 0:
        return low, high, threshold, False, offset // 2
    if threshold is None:
        raise ValueError(
            f"{name}: a last layer with ternary weights must read an even number of bipolar channels, got {offset}"
        )
    return 2 * low, 2 * high, 2 * threshold, double, offset
