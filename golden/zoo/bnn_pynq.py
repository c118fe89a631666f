"""CNV W1A1 (CIFAR-10) and LFC W1A1 (MNIST) of Xilinx/BNN-PYNQ: from a file of trained weights, or with seeded ones; and
CNV W2A2, with seeded ones alone.

The files hold, for each weighted layer l, ``W{l}_shape`` = (outputs, inputs), ``W{l}_bits`` = packbits of that matrix
along its rows, little-endian, bit 1 = +1, columns (ky, kx, channel) with channel fastest, and ``T{l}``: (outputs, 1)
int32; an output bit is T < accumulator. The accumulator is the number of XNOR matches, but in layer 0 of CNV, whose
input are integers, the sum of products, and there the bit is T0 < 2 * sum. ``classes`` are the names of the outputs.

Here the networks are without the files' padding (`PADDED`): outputs that are no classes are left out, and inputs that
are always 0 go into the thresholds, exactly: such an input matches where its weight is 0.

Seeded weights are the same on every machine: the highest bit of each of `golden.training.reproducible.random_words`, 1
= +1; ternary ones are their highest byte modulo 3, less 1. Thresholds come from calibration images, all values of the
input equally likely (golden/zoo/calibrated.py). So each map that a layer reads has about half of its bits set, and one
before a 2 x 2 max pool about a sixth.
"""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from bitloom.golden.encoding import BIPOLAR, TERNARY, Array, Encoding, signed
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.conv import Conv, Weighted
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.names import shown
from bitloom.golden.network import Model, Network
from bitloom.golden.reading.archive import Archive, read_archive
from bitloom.golden.reading.file import naming
from bitloom.golden.transform import Transform

from .calibrated import output_of, random_bytes, thresholds

CIFAR = ("Airplane", "Automobile", "Bird", "Cat", "Deer", "Dog", "Frog", "Horse", "Ship", "Truck")
DIGITS = tuple("0123456789")
PADDED = {("cnv-w1a1", 8): (64, 512), ("lfc-w1a1", 0): (1024, 832), ("lfc-w1a1", 3): (64, 1024)}
"""(outputs, inputs) in the file, of the layers that it holds with padding."""
CNV_TRANSFORM, LFC_TRANSFORM = Transform("fixed:8"), Transform("threshold:128")
"""How a pixel of 0 .. 255 becomes a value of the networks' input."""

KEYS = {"cnv-w1a1": 3, "lfc-w1a1": 4, "cnv-w2a2": 5}
"""First part of the keys of random streams; then IMAGES, or WEIGHTS and the number of the weighted layer."""
IMAGES = 1
WEIGHTS = 2
CALIBRATION_IMAGES = {"cnv-w1a1": 64, "lfc-w1a1": 256, "cnv-w2a2": 64}

ModelArrays = dict[str, dict[str, Array]]


def cnv() -> Network:
    """The network CNV: it reads signed 8 bit (`cnv_images`) and gives 10 signed sums; the largest one is the class."""
    return _cnv("cnv-w1a1", BIPOLAR, 1)


def cnv_w2a2() -> Network:
    """CNV with ternary weights and activations of 2 bits (-2, 0, 2); input and output are those of `cnv`."""
    return _cnv("cnv-w2a2", TERNARY, 2)


def _cnv(name: str, weight: Encoding, levels: int) -> Network:
    """The layers of CNV, with these weights and so many thresholds a channel."""
    layers: list[Layer] = []
    for i, channels in enumerate((64, 64, 128, 128, 256, 256)):
        layers += [
            Conv(name=f"conv_{i}", out_channels=channels, kernel=(3, 3), weight=weight),
            Threshold(name=f"threshold_{i}", levels=levels),
        ]
        if i in (1, 3):
            layers.append(MaxPool(name=f"pool_{i}", kernel=(2, 2), stride=(2, 2)))
    for i in (6, 7):
        layers += [
            Dense(name=f"dense_{i}", out_channels=512, weight=weight),
            Threshold(name=f"threshold_{i}", levels=levels),
        ]
    layers.append(Dense(name="dense_8", out_channels=10, weight=weight))
    source = Map(height=32, width=32, channels=3, encoding=signed(8))
    return Network(name=name, input=source, layers=tuple(layers), classes=CIFAR)


def lfc() -> Network:
    """The network LFC: it reads bipolar bits (`lfc_images`) and gives 10 bipolar values; the class is `highest_set`."""
    layers: list[Layer] = []
    for i, channels in enumerate((1024, 1024, 1024, 10)):
        layers += [Dense(name=f"dense_{i}", out_channels=channels), Threshold(name=f"threshold_{i}")]
    source = Map(height=28, width=28, channels=1, encoding=BIPOLAR)
    return Network(name="lfc-w1a1", input=source, layers=tuple(layers), classes=DIGITS)


def cnv_images(pixels: Array) -> Array:
    """Turn (N, 32, 32, 3) uint8 RGB pixels into the input of CNV: int8 of the same shape, in units of 2^-7."""
    return CNV_TRANSFORM(pixels).astype(np.int8)


def lfc_images(pixels: Array) -> Array:
    """Turn (N, 784) or (N, 28, 28) uint8 pixels, row by row, into the input of LFC.

    That is (N, 28, 28, 1) int8: +1 where a pixel is >= 128, else -1.
    """
    return LFC_TRANSFORM(pixels.reshape(-1, 28, 28, 1)).astype(np.int8)


def trained(network: Network, path: str | os.PathLike[str]) -> Model:
    """Read trained weights.

    Parameters
    ----------
    network : Network
        Result of `cnv` or `lfc`.
    path : path
        The file.

    Raises
    ------
    OSError
        If there is no file.
    ValueError
        If the file is damaged or not of this network. The message is one line, ``path: rule, got value``.
    """
    data = read_archive(path)
    with naming(path):
        if (classes := tuple(data.array("classes", "U").ravel().tolist())) != network.classes:
            raise ValueError(f"classes must be {network.classes}, got {shown(classes)}")
        arrays: ModelArrays = {}
        for i, (layer, source, threshold) in enumerate(_weighted(network)):
            needed = (layer.out_channels, layer.fan_in(source))
            bits = _weights(data, i, PADDED.get((network.name, i), needed))  # (outputs, inputs)
            kept = bits[: needed[0], : needed[1]]
            padding = bits[: needed[0], needed[1] :]
            arrays[layer.name] = {"weight": _signs(kept, layer, source)}
            if threshold is not None:
                limit = _checked(data, f"T{i}", np.int32, (len(bits), 1))[: needed[0]].astype(np.int64)
                if source.encoding == BIPOLAR:  # matches >= limit + 1, without those of the padding; as signed sums
                    limit = 2 * (limit + 1 - (padding == 0).sum(axis=1, keepdims=True)) - needed[1]
                else:
                    limit = limit // 2 + 1
                arrays[threshold.name] = _threshold(limit)
        return Model(network, arrays)


def seeded(network: Network, images: Array | None = None) -> Model:
    """Give the network, which `cnv`, `lfc` or `cnv_w2a2` makes, its seeded weights; takes about a second.

    Parameters
    ----------
    network : Network
    images : (N, H, W, C) integers, optional
        From which the thresholds come, by default `calibration_images`.
    """
    key = KEYS[network.name]
    weights = {}
    for i, (weighted, source, _) in enumerate(_weighted(network)):
        drawn = random_bytes(weighted.array_shapes(source)["weight"], key, WEIGHTS, i).view(np.uint8)
        if weighted.weight == TERNARY:
            weights[weighted.name] = (drawn % 3).astype(np.int8) - 1
        else:
            weights[weighted.name] = _signs(drawn >> 7, weighted, source)
    arrays: ModelArrays = {}
    x = calibration_images(network) if images is None else images
    for layer, source in network.chain("calibration"):
        if isinstance(layer, Weighted):
            arrays[layer.name] = {"weight": weights[layer.name]}
        elif isinstance(layer, Threshold):
            arrays[layer.name] = thresholds(network, layer, source, x)
        x = output_of(layer, source, arrays.get(layer.name, {}), x)
    return Model(network, arrays)


def calibration_images(network: Network) -> Array:
    """The images from which the thresholds of seeded weights come: (N, H, W, C) int8."""
    source = network.input
    count = CALIBRATION_IMAGES[network.name]
    drawn = random_bytes((count, *source.shape), KEYS[network.name], IMAGES)
    return np.where(drawn < 0, np.int8(1), np.int8(-1)) if source.encoding == BIPOLAR else drawn


def _weighted(network: Network) -> Iterator[tuple[Weighted, Map, Threshold | None]]:
    """Weighted layers, the maps that they read, and the thresholds after them."""
    for layer, source in network.chain("a file of BNN-PYNQ"):
        if isinstance(layer, Weighted):
            after = network.next_layer(layer.name)
            yield layer, source, after if isinstance(after, Threshold) else None


def _checked(data: Archive, name: str, dtype: Any, shape: tuple[int, ...]) -> Array:
    array = data.array(name)
    if array.dtype != dtype or array.shape != shape:
        raise ValueError(f"{name} must be {np.dtype(dtype)} of shape {shape}, got {array.dtype} of {array.shape}")
    return array


def _weights(data: Archive, i: int, shape: tuple[int, int]) -> Array:
    """(outputs, inputs) of 0 and 1, weighted layer ``i``."""
    if (got := tuple(data.array(f"W{i}_shape").ravel().tolist())) != shape:
        raise ValueError(f"W{i}_shape must be {shape}, got {shown(got)}")
    bits = _checked(data, f"W{i}_bits", np.uint8, (shape[0], -(-shape[1] // 8)))
    return np.unpackbits(bits, axis=1, count=shape[1], bitorder="little")


def _signs(bits: Array, layer: Weighted, source: Map) -> Array:
    """0 and 1, in the order of the weights -> +-1 in their shape."""
    return (2 * bits.astype(np.int8) - 1).reshape(layer.array_shapes(source)["weight"])


def _threshold(limit: Array) -> dict[str, Array]:
    """ModelArrays of a Threshold from below for (C, levels) limits."""
    return {"threshold": limit, "direction": np.ones(len(limit), np.int8)}
