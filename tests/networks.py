"""Random networks for property tests of the binary and of the integer engine, and of both in turn: whatever is drawn
must be bit-exact."""

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from bitloom.golden.encoding import BIPOLAR, TERNARY, Encoding, bipolar, signed, unsigned
from bitloom.golden.kernels import packed
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.conv import Conv, Weighted
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import AvgPool, MaxPool, Pool
from bitloom.golden.layers.requantise import MAX_SHIFT, MULTIPLIER_BITS, SUM_BITS, Requantise, scale_to_multiplier
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.golden.window import Window

MAX_CHANNELS = 70
MAX_MACS = 400_000
"""Products a frame at most, from the second layer on: keeps simulation quick."""
MAX_WEIGHTS = 12_000
"""Weights of a layer at most: keeps kernel memories small."""
MAX_POOL_TAPS = 4_000
"""Taps of all windows of a pool wider than 3."""


@st.composite
def spans(draw: st.DrawFn, size: int, largest: int) -> tuple[int, int, int, int]:
    """One direction of a window that fits ``size``: kernel 1..largest, stride 1..3, padding before and after 0..2."""
    kernel, stride = draw(st.integers(1, largest)), draw(st.integers(1, 3))
    before, after = (draw(st.integers(0, min(kernel - 1, 2))) for _ in range(2))
    if kernel > size + before + after:
        return size, stride, 0, 0
    return kernel, stride, before, after


@st.composite
def windows(draw: st.DrawFn, source: Map, largest: int) -> Window:
    """A window that fits the map; the two directions have nothing to do with each other."""
    (kh, sy, top, bottom), (kw, sx, left, right) = (
        draw(spans(source.height, largest)),
        draw(spans(source.width, largest)),
    )
    return Window(kernel=(kh, kw), stride=(sy, sx), padding=(top, left, bottom, right))


@st.composite
def maps(draw: st.DrawFn, encoding: Encoding) -> Map:
    """An input map."""
    height, width, channels = draw(st.integers(1, 9)), draw(st.integers(1, 9)), draw(st.integers(1, MAX_CHANNELS))
    return Map(height=height, width=width, channels=channels, encoding=encoding)


@st.composite
def networks(draw: st.DrawFn, input_bits: int = 8) -> Network:
    """1 to 4 weighted layers, thresholds, max pools; the last may be raw. Inputs of at most ``input_bits`` planes."""
    kind = draw(st.sampled_from(["bipolar", "signed", "unsigned"]))
    if kind == "bipolar":
        encoding = bipolar(draw(st.integers(1, 3)))
    else:
        encoding = (
            signed(draw(st.integers(2, input_bits)))
            if kind == "signed"
            else unsigned(draw(st.integers(1, input_bits - 1)))
        )
    source = draw(maps(encoding))
    at, macs = source, 0
    layers: list[Layer] = []
    count = draw(st.integers(1, 4))
    for i in range(count):
        dense = draw(st.integers(0, 3)) == 0
        channels = draw(st.integers(1, MAX_CHANNELS))
        is_last = i == count - 1
        raw = is_last and draw(st.booleans())
        plain = at.encoding.kind == "bipolar" and (at.channels * at.encoding.bits % 2 == 0 or not raw)
        weight = draw(st.sampled_from([BIPOLAR, BIPOLAR, TERNARY])) if plain else BIPOLAR
        window = Window(kernel=(at.height, at.width)) if dense else draw(windows(at, 5))
        channels = min(channels, max(1, MAX_WEIGHTS // (window.taps * at.channels)))
        if dense:
            layer: Weighted = Dense(name=f"layer_{i}", out_channels=channels, weight=weight)
        else:
            shape = {"kernel": window.kernel, "stride": window.stride, "padding": window.padding}
            layer = Conv(name=f"layer_{i}", out_channels=channels, weight=weight, **shape)
        out = layer.output(at)
        macs += out.size * layer.fan_in(at)
        if macs > MAX_MACS and layers:
            break
        layers.append(layer)
        at = out
        if raw:
            break
        levels = draw(st.sampled_from([1, 1, 1, 2, 3]))
        tail: list[Layer] = [Threshold(name=f"act_{i}", levels=levels)]
        pooled = draw(st.integers(0, 2)) == 0
        if pooled:
            w = draw(windows(at, 3))
            tail.insert(
                draw(st.integers(0, 1)), MaxPool(name=f"pool_{i}", kernel=w.kernel, stride=w.stride, padding=w.padding)
            )
        for t in tail:
            at = t.output(at)
        layers += tail
    return Network(name="random", input=source, layers=tuple(layers))


@st.composite
def weighted(draw: st.DrawFn, at: Map, name: str, weight: Encoding) -> Weighted:
    """A dense layer (one of four) or a convolution."""
    dense = draw(st.integers(0, 3)) == 0
    window = Window(kernel=(at.height, at.width)) if dense else draw(windows(at, 5))
    channels = min(draw(st.integers(1, MAX_CHANNELS)), max(1, MAX_WEIGHTS // (window.taps * at.channels)))
    if dense:
        return Dense(name=name, out_channels=channels, weight=weight)
    shape = {"kernel": window.kernel, "stride": window.stride, "padding": window.padding}
    return Conv(name=name, out_channels=channels, weight=weight, **shape)


@st.composite
def encodings(draw: st.DrawFn, bits: int) -> Encoding:
    """Values that fit ``bits`` bits in two's complement."""
    kind = draw(st.sampled_from(["signed", "signed", "unsigned", "ternary"]))
    if kind == "ternary":
        return TERNARY
    return signed(draw(st.integers(2, bits))) if kind == "signed" else unsigned(draw(st.integers(1, bits - 1)))


@st.composite
def pools(draw: st.DrawFn, at: Map, name: str, kinds: Sequence[type[Pool]]) -> Pool:
    """A pool of one of these kinds, of at most 9 x 9 taps, that fits the map."""
    w = draw(windows(at, 9))
    if int(np.prod(w.output_size(at.height, at.width))) * w.taps > MAX_POOL_TAPS:
        w = draw(windows(at, 3))
    return draw(st.sampled_from(kinds))(name=name, kernel=w.kernel, stride=w.stride, padding=w.padding)


@st.composite
def integer_networks(draw: st.DrawFn, feature_bits: int = 8, weight_bits: int = 8) -> Network:
    """1 to 4 weighted layers for an integer engine with these widths; the last may be raw. Pools of at most 81 taps."""
    source = draw(maps(draw(encodings(feature_bits))))
    at, macs = source, 0
    layers: list[Layer] = []
    count = draw(st.integers(1, 4))
    for i in range(count):
        layer = draw(weighted(at, f"layer_{i}", draw(encodings(weight_bits))))
        out = layer.output(at)
        macs += out.size * layer.fan_in(at)
        if macs > MAX_MACS and layers:
            break
        layers.append(layer)
        if i == count - 1 and draw(st.booleans()):
            break
        encoding = draw(encodings(feature_bits).filter(lambda e: e.kind != "ternary"))
        layers.append(Requantise(name=f"act_{i}", encoding=encoding, relu=draw(st.booleans())))
        at = layers[-1].output(out)
        kind: type[Pool] | None = draw(st.sampled_from([None, MaxPool, AvgPool]))
        if kind:
            layers.append(draw(pools(at, f"pool_{i}", (kind,))))
            at = layers[-1].output(at)
    return Network(name="random", input=source, layers=tuple(layers))


@st.composite
def mixed_networks(draw: st.DrawFn, kinds: Sequence[str], poolable: Sequence[bool] | None = None) -> Network:
    """A weighted layer for the engine of each of ``kinds``, "binary" or "integer" of 8 bits; the last may be raw.

    poolable : which of the layers may have a pool behind them; by default all.
    """
    binary = st.sampled_from([BIPOLAR, bipolar(2), signed(8)])
    source = draw(maps(draw(binary if kinds[0] == "binary" else encodings(8))))
    at, macs = source, 0
    layers: list[Layer] = []
    for i, kind in enumerate(kinds):
        is_last = i == len(kinds) - 1
        raw = is_last and draw(st.booleans())
        if kind == "integer":
            weight = draw(st.one_of(encodings(8), st.just(BIPOLAR)))
        else:
            plain = at.encoding.kind == "bipolar" and (at.channels * at.encoding.bits % 2 == 0 or not raw)
            weight = draw(st.sampled_from([BIPOLAR, BIPOLAR, TERNARY])) if plain else BIPOLAR
        layer = draw(weighted(at, f"layer_{i}", weight))
        if macs + layer.output(at).size * layer.fan_in(at) > MAX_MACS and layers:
            layer = Dense(name=f"layer_{i}", out_channels=draw(st.integers(1, 3)), weight=weight)
        out = layer.output(at)
        macs += out.size * layer.fan_in(at)
        layers.append(layer)
        if raw:
            break
        pooled, tail = (poolable is None or poolable[i]) and draw(st.booleans()), list[Layer]()
        if kind == "integer" and (is_last or kinds[i + 1] == "integer"):
            encoding = draw(encodings(8).filter(lambda e: e.kind != "ternary"))
            tail.append(Requantise(name=f"act_{i}", encoding=encoding, relu=draw(st.booleans())))
            if pooled:
                tail.append(draw(pools(tail[0].output(out), f"pool_{i}", (MaxPool, AvgPool))))
        else:
            tail.append(Threshold(name=f"act_{i}", levels=draw(st.sampled_from([1, 1, 1, 2, 3]))))
            if pooled:
                tail.insert(draw(st.integers(0, 1)), draw(pools(out, f"pool_{i}", (MaxPool,))))
        at = out
        for part in tail:
            at = part.output(at)
        layers += tail
    return Network(name="random", input=source, layers=tuple(layers))


def random_integer_model(network: Network, seed: int, acc_bits: int) -> Model:
    """Random weights, one layer in four all corner values; requantisations as ``_requantisation`` draws them;
    thresholds among the values that occur.

    acc_bits : of the engine: no sum, biased or not, leaves -2^(acc_bits - 1) + 1 .. 2^(acc_bits - 1) - 2.
    """
    rng = np.random.default_rng(seed)
    arrays: dict[str, dict[str, np.ndarray]] = {}
    x = random_images(network, 4, seed + 1)
    reach, mixed = (0, 0), any(isinstance(layer, Threshold) for layer in network.layers)
    for layer, source in network.chain("a test"):
        if isinstance(layer, Weighted):
            low, high, step = layer.weight.low, layer.weight.high, layer.weight.step
            low += mixed and layer.weight.kind == "signed"  # so that all may change their sign
            values = [low, high] if rng.random() < 0.25 else np.arange(low, high + 1, step)
            arrays[layer.name] = {"weight": rng.choice(values, layer.array_shapes(source)["weight"])}
            reach = layer.accumulator_range(source)
        elif isinstance(layer, Threshold):
            arrays[layer.name] = _thresholds(x, layer, rng)
            if layer is network.layers[-1]:
                arrays[layer.name]["direction"][:] = 1  # after a max pool the last layer can't be a complement
        elif isinstance(layer, Requantise):
            room = 1 << min(acc_bits, SUM_BITS) - 1
            bounds = (1 - room - min(source.encoding.low, reach[0]), room - 2 - max(source.encoding.high, reach[1]))
            rows = [_requantisation(sums, layer, bounds, rng) for sums in x.reshape(-1, source.channels).T]
            arrays[layer.name] = dict(zip(("bias", "multiplier", "shift"), np.array(rows, np.int64).T))
        one = Network(name=layer.name, input=source, layers=(layer,))
        x = packed.forward(Model(one, {k: v for k, v in arrays.items() if k == layer.name}), x)
    return Model(network, arrays)


def _thresholds(x: np.ndarray, layer: Threshold, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Arrays for values (N, H, W, C): thresholds that they are equal to, or next to, and some far out of reach."""
    values = x.reshape(-1, x.shape[-1])
    threshold = rng.permuted(values, axis=0)[rng.integers(0, len(values), layer.levels)].T + rng.integers(-1, 2)
    far = rng.random(threshold.shape) < 0.05
    threshold[far] = rng.choice([-(2**31) + 1, 2**31 - 1], far.sum())
    return {"threshold": threshold, "direction": rng.choice([-1, 1], len(threshold))}


def _requantisation(
    sums: np.ndarray, layer: Requantise, bounds: tuple[int, int], rng: np.random.Generator
) -> tuple[int, int, int]:
    """(bias, multiplier, shift) of a channel whose sums are (samples,).

    In half of all channels values use the encoding's range; in the others most saturate, or many are exact halves, or
    bias, multiplier or shift is as large as it may be. bounds : of the bias.
    """
    middle, spread = int(sums.mean()), max(1, int(np.abs(sums - sums.mean()).mean()))
    bias = min(max(int(spread * rng.uniform(-1, 1)) - middle, bounds[0]), bounds[1])
    scale = (layer.high + 0.5) / spread * rng.uniform(0.2, 0.8)
    largest = (1 << MULTIPLIER_BITS) - 1
    case = rng.integers(0, 12)
    if case < 6:
        return bias, *scale_to_multiplier(scale)
    return [
        (bias, *scale_to_multiplier(min(scale * 20, largest))),
        (bias, 1, max(1, int(spread / max(1, layer.high)).bit_length())),
        (bounds[rng.integers(0, 2)], largest, int(rng.integers(16, MAX_SHIFT + 1))),
        (bounds[rng.integers(0, 2)], *scale_to_multiplier(layer.high / max(abs(b) for b in bounds))),
        (bias, largest, 0),
        (0, 1, int(rng.choice([0, MAX_SHIFT]))),
    ][case - 6]


def random_model(network: Network, seed: int) -> Model:
    """Random weights, and thresholds among and around the sums that occur, with some far out of reach."""
    rng = np.random.default_rng(seed)
    arrays: dict[str, dict[str, np.ndarray]] = {}
    spread, final = 1, [layer.kind for layer in network.layers[-2:]] == ["max_pool", "threshold"]
    for layer, source in network.chain("a test"):
        shapes = layer.array_shapes(source)
        if "weight" in shapes:
            values = [-1, 1] if layer.weight == BIPOLAR else [-1, 0, 1]
            arrays[layer.name] = {"weight": rng.choice(values, shapes["weight"]).astype(np.int8)}
            spread = max(1, int(layer.fan_in(source) ** 0.5 * source.encoding.high))
        elif "threshold" in shapes:
            threshold = np.rint(rng.normal(0, spread, shapes["threshold"])).astype(np.int64)
            far = rng.random(shapes["threshold"]) < 0.05
            threshold[far] = rng.choice([-(2**31) + 1, 2**31 - 1], far.sum())
            direction = rng.choice([-1, 1], shapes["direction"])
            if final and layer is network.layers[-1]:
                direction[:] = 1  # after a max pool the last layer can't be a complement
            arrays[layer.name] = {"threshold": threshold, "direction": direction}
    return Model(network, arrays)


def random_images(network: Network, count: int, seed: int) -> np.ndarray:
    """(count, H, W, C) legal values, extremes included."""
    encoding = network.input.encoding
    legal = np.arange(encoding.low, encoding.high + 1, encoding.step)
    return np.random.default_rng(seed).choice(legal, (count, *network.input.shape))
