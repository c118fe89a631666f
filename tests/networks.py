"""Random networks that the binary engine can run, for property tests: whatever is drawn must be bit-exact."""

import numpy as np
from hypothesis import strategies as st

from golden.conv import Conv, Dense
from golden.encoding import BIPOLAR, TERNARY, Encoding, bipolar, signed, unsigned
from golden.layer import Layer, Map
from golden.network import Model, Network
from golden.pool import MaxPool
from golden.threshold import Threshold
from golden.window import Window

MAX_CHANNELS = 70
MAX_MACS = 400_000
"""Products a frame at most: keeps the plain golden model quick."""


@st.composite
def windows(draw: st.DrawFn, height: int, width: int, largest: int, pool: bool = False) -> Window:
    """A window that fits the map; kernels 1..largest, unequal strides, paddings on any side."""
    kernel = (draw(st.integers(1, largest)), draw(st.integers(1, largest)))
    stride = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    sides = [draw(st.integers(0, min(k - 1, 2))) for k in (*kernel, *kernel)]
    if pool:
        sides[0] = sides[1] = 0 if draw(st.booleans()) else sides[0]
        sides[1] = min(sides[1], kernel[1] - 1)
    rows = min(kernel[0], height + sides[0] + sides[2])
    columns = min(kernel[1], width + sides[1] + sides[3])
    padding = (min(sides[0], rows - 1), min(sides[1], columns - 1), min(sides[2], rows - 1), min(sides[3], columns - 1))
    rows = min(rows, height + padding[0] + padding[2])
    columns = min(columns, width + padding[1] + padding[3])
    padding = (min(padding[0], rows - 1), min(padding[1], columns - 1), min(padding[2], rows - 1), min(padding[3], columns - 1))
    if rows > height + padding[0] + padding[2] or columns > width + padding[1] + padding[3]:
        padding, rows, columns = (0, 0, 0, 0), min(rows, height), min(columns, width)
    return Window(kernel=(rows, columns), stride=stride, padding=padding)


@st.composite
def networks(draw: st.DrawFn, input_bits: int = 8) -> Network:
    """1 to 4 weighted layers with thresholds and max pools; the last may be raw. Inputs of at most ``input_bits`` planes."""
    encodings: list[Encoding] = [BIPOLAR, bipolar(2), *(signed(b) for b in range(2, input_bits + 1))]
    encodings += [unsigned(b) for b in range(1, input_bits)]
    source = Map(
        height=draw(st.integers(1, 9)),
        width=draw(st.integers(1, 9)),
        channels=draw(st.integers(1, MAX_CHANNELS)),
        encoding=draw(st.sampled_from(encodings)),
    )
    at, layers, macs = source, [], 0
    count = draw(st.integers(1, 4))
    for i in range(count):
        dense = draw(st.integers(0, 3)) == 0
        channels = draw(st.integers(1, MAX_CHANNELS))
        is_last = i == count - 1
        raw = is_last and draw(st.booleans())
        plain = at.encoding.kind == "bipolar" and (at.channels * at.encoding.bits % 2 == 0 or not raw)
        weight = draw(st.sampled_from([BIPOLAR, BIPOLAR, TERNARY])) if plain else BIPOLAR
        if dense:
            layer: Layer = Dense(name=f"layer_{i}", out_channels=channels, weight=weight)
        else:
            w = draw(windows(at.height, at.width, 5))
            layer = Conv(name=f"layer_{i}", out_channels=channels, weight=weight, kernel=w.kernel, stride=w.stride, padding=w.padding)
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
            w = draw(windows(at.height, at.width, 3, pool=True))
            tail.insert(draw(st.integers(0, 1)), MaxPool(name=f"pool_{i}", kernel=w.kernel, stride=w.stride, padding=w.padding))
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
