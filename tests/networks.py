"""Random networks that the binary engine can run, for property tests: whatever is drawn must be bit-exact."""

import numpy as np
from hypothesis import strategies as st

from golden.conv import Conv, Dense, Weighted
from golden.encoding import BIPOLAR, TERNARY, bipolar, signed, unsigned
from golden.layer import Layer, Map
from golden.network import Model, Network
from golden.pool import MaxPool
from golden.threshold import Threshold
from golden.window import Window

MAX_CHANNELS = 70
MAX_MACS = 400_000
"""Products a frame at most, from the second layer on: keeps simulation quick."""
MAX_WEIGHTS = 12_000
"""Weights of a layer at most: keeps kernel memories small."""


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
    source = Map(
        height=draw(st.integers(1, 9)),
        width=draw(st.integers(1, 9)),
        channels=draw(st.integers(1, MAX_CHANNELS)),
        encoding=encoding,
    )
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


def random_model(network: Network, seed: int) -> Model:
    """Random weights, and thresholds among and around the sums that occur, with some far out of reach."""
    rng = np.random.default_rng(seed)
    arrays: dict[str, dict[str, np.ndarray]] = {}
    spread, final = 1, [layer.kind for layer in network.layers[-2:]] == ["max_pool", "threshold"]
    for layer, source in network:
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
