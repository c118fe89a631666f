"""Random networks whose layers count products, take their OR, or the OR of each word."""

import numpy as np

from bitloom.golden.encoding import BIPOLAR, TERNARY, bipolar, signed
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.reducer import OrWords, Popcount
from bitloom.overlay.fuzz.pick import Pick
from tests.cases import random_images, random_model


def accumulated_network(pick: Pick, npu: Npu) -> Network:
    """2 to 4 weighted layers that an NPU with this ``accumulate`` and ``collect`` can compute."""
    encoding = BIPOLAR
    reducer = npu.array.reducer
    collect = npu.value("collect")
    if isinstance(reducer, Popcount):
        planes = npu.array.planes or (4 if npu.value("shift_bits") else 0)
        encoding = pick.of([BIPOLAR, bipolar(2), *([signed(planes)] if planes else [])])
    source = at = Map(
        height=pick.integer(1, 6), width=pick.integer(1, 6), channels=pick.integer(1, 9), encoding=encoding
    )
    layers: list[Layer] = []
    count = pick.integer(2, 4)
    for i in range(count):
        accumulate = pick.of(list(reducer.accumulations) if at.encoding == BIPOLAR else ["popcount"])
        by_or = accumulate == "or"
        ternary = accumulate == "popcount" and at.encoding.kind == "bipolar" and pick.integer(0, 3) == 0
        settings = {"name": f"layer_{i}", "weight": TERNARY if ternary else BIPOLAR, "accumulate": accumulate}
        settings["word_channels"] = npu.value("word_lanes") if accumulate == "or_words" else 0
        kernel = (pick.integer(1, min(3, at.height)), pick.integer(1, min(3, at.width)))
        if pick.integer(0, 3) == 0 or at.positions == 1:
            kernel = (at.height, at.width)
        most = 9 if collect else 14
        words = at.channels * at.encoding.bits // npu.array.kfp + 4  # steps of ol and words of pfp leave lanes unused
        if collect and kernel[0] * kernel[1] * (1 + ternary) * words * npu.array.kfp > collect:
            kernel = (1, 1)
        channels = pick.integer(1, most)
        if kernel == (at.height, at.width) and pick.flip():
            layers.append(Dense(out_channels=channels, **settings))
        else:
            padding = tuple(pick.integer(0, min(1, k - 1)) for k in (*kernel, *kernel))
            stride = pick.of([(1, 1), (1, 2), (2, 1)])
            layers.append(Conv(out_channels=channels, kernel=kernel, padding=padding, stride=stride, **settings))
        at = layers[-1].output(at)
        if i == count - 1 and not by_or and not ternary and pick.flip():
            break
        if not by_or:
            levels = pick.of([1, 1, 2]) if not isinstance(reducer, OrWords) else 1
            layers.append(Threshold(name=f"act_{i}", levels=levels))
            at = layers[-1].output(at)
        if at.height > 1 and pick.flip():
            layers.append(MaxPool(name=f"pool_{i}", kernel=(2, 1), stride=pick.of([(1, 1), (2, 1)])))
            at = layers[-1].output(at)
    return Network(name="random", input=source, layers=tuple(layers))


def accumulated_model(network: Network, seed: int) -> Model:
    """A random model in which half the kernels that accumulate by OR are the opposite of a window that occurs."""
    rng = np.random.default_rng(seed)
    model = random_model(network, rng)
    x = random_images(model, 3, rng)
    by_words = False
    for layer, source in network.chain("a test"):
        arrays = model.arrays.get(layer.name, {})
        if isinstance(layer, Threshold) and by_words:
            arrays["direction"][:] = 1  # what a pool and the last layer need (test_lowering.py has the rest)
        by_words = getattr(layer, "accumulate", "") == "or_words"
        if getattr(layer, "accumulate", "popcount") == "or":
            positions = layer.window(source).positions(source.height, source.width)
            flat = x.reshape(len(x), source.positions, source.channels)
            weight = arrays["weight"].reshape(layer.out_channels, positions.shape[1], source.channels)
            for kernel in range(0, layer.out_channels, 2):
                taps = positions[rng.integers(len(positions))]
                weight[kernel, taps >= 0] = -flat[rng.integers(len(x)), taps[taps >= 0]]
            arrays["weight"][:] = weight.reshape(arrays["weight"].shape)
        x = layer.forward(x, arrays, source)
    return model
