"""Residual networks of bits: golden against the definition in real numbers, as Bi-Real nets have it."""

import numpy as np

from bitloom.golden.encoding import signed, unsigned
from bitloom.golden.kernels import packed
from bitloom.golden.layer import Map
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network

CHANNELS, BLOCKS = 5, 3
RNG = np.random.default_rng(5)
MEAN = RNG.integers(-6, 7, (BLOCKS + 1, CHANNELS))
GAIN = RNG.integers(1, 32, (BLOCKS + 1, CHANNELS))
"""Normalisation is (x - MEAN) * GAIN / 16: with powers of two real numbers of 64 bits are exact."""
WEIGHTS = [RNG.choice([-1, 1], (CHANNELS, 3, 3, c)) for c in (2, *[CHANNELS] * BLOCKS)]
DENSE = RNG.choice([-1, 1], (4, 5, 7, CHANNELS))


def net():
    """The network with BLOCKS residual convolutions."""
    padded = {"out_channels": CHANNELS, "kernel": (3, 3), "padding": (1, 1, 1, 1)}
    layers = []
    arrays = {}
    for k in range(BLOCKS + 1):
        layers += [Conv(name=f"conv_{k}", **padded), Requantise(name=f"act_{k}", encoding=signed(6))]
        arrays[f"conv_{k}"] = {"weight": WEIGHTS[k]}
        arrays[f"act_{k}"] = {"bias": -MEAN[k], "multiplier": GAIN[k], "shift": np.full(CHANNELS, 4)}
        v = f"act_{k}"
        if k:
            v = f"add_{k}"
            before = f"add_{k - 1}" if k > 1 else "act_0"
            layers.append(Add(name=v, encoding=signed(7), inputs=(f"act_{k}", before)))
            arrays[v] = {"multiplier": np.array([1, 1]), "bias": np.array([0]), "shift": np.array([0])}
        layers.append(Threshold(name=f"sign_{k}", inputs=(v,)))
        arrays[f"sign_{k}"] = {"threshold": np.zeros((CHANNELS, 1), int), "direction": np.ones(CHANNELS, int)}
    layers.append(Dense(name="dense", out_channels=4))
    arrays["dense"] = {"weight": DENSE}
    source = Map(height=5, width=7, channels=2, encoding=unsigned(3))
    return Model(Network(name="bi_real", input=source, layers=tuple(layers)), arrays)


def convolved(x, weight):
    """(N, H, W, C) real numbers, a 3 x 3 kernel and zeros around the map."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))  # (N, H, W, C, 3, 3)
    return np.einsum("nhwcyx,oyxc->nhwo", windows, weight.astype(float))


def nearest(x):
    """The nearest integers, halves away from zero."""
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def test_golden_is_the_definition():
    """v' = BN(conv(sign(v))) + v, limited; sign(v') goes on, v' waits for the next addition."""
    images = np.random.default_rng(6).integers(0, 8, (20, 5, 7, 2))
    x = images.astype(float)
    v = None
    seen = set()
    for k in range(BLOCKS + 1):
        normalised = (convolved(x, WEIGHTS[k]) - MEAN[k]) * (GAIN[k] / 16)
        features = np.clip(nearest(normalised), -32, 31)
        v = features if v is None else np.clip(features + v, -64, 63)
        seen |= {int(v.min()), int(v.max())}
        x = np.where(v >= 0, 1.0, -1.0)
    expected = np.einsum("nhwc,ohwc->no", x, DENSE.astype(float))
    assert seen >= {-32, 31, -64, 63}  # both limits are reached
    model = net()
    np.testing.assert_array_equal(model.forward(images).reshape(20, 4), expected)
    np.testing.assert_array_equal(packed.forward(model, images).reshape(20, 4), expected)
