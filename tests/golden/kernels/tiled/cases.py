"""Random binary convolutions beside golden's plain convolution, for every implementation of golden.kernels.tiled."""

from dataclasses import dataclass
from itertools import product

import numpy as np

from bitloom.golden.encoding import BIPOLAR
from bitloom.golden.kernels.tiled import layout
from bitloom.golden.kernels.tiled.conv import PADS, PackedConv
from bitloom.golden.kernels.tiled.plan import plan
from bitloom.golden.layer import Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.window import Pair, Sides, Window


@dataclass(frozen=True)
class Case:
    """A layer, its input, and golden's dots (N, H', W', O) and bits (the same shape, 0 and 1)."""

    layer: PackedConv
    words: np.ndarray
    dots: np.ndarray

    @property
    def bits(self) -> np.ndarray:
        return (self.dots >= self.layer.threshold).astype(np.uint8)

    def check(self, output: np.ndarray) -> None:
        """The output of an implementation is right in every bit, unused ones included."""
        if self.layer.threshold is None:
            assert output.dtype == np.int32
            assert np.array_equal(output, self.dots)
        else:
            assert output.dtype == self.words.dtype
            assert np.array_equal(output, layout.pack(self.bits, self.layer.word_bits))

    @property
    def ties(self) -> int:
        """Dots that equal their threshold."""
        return int((self.dots == self.layer.threshold).sum())


def bipolar(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return 2 * rng.integers(0, 2, shape, np.int8) - 1


def case(
    seed: int = 0,
    *,
    images: int = 1,
    size: Pair = (7, 9),
    channels: int = 33,
    out_channels: int = 33,
    kernel: Pair = (3, 3),
    stride: Pair = (1, 1),
    padding: Sides = (0, 0, 0, 0),
    pad: str = "valid",
    word_bits: int = 32,
    threshold: bool = True,
) -> Case:
    """Thresholds lie near 0, so that many dots equal theirs; those of the first channels are out of reach."""
    rng = np.random.default_rng(seed)
    values = bipolar(rng, images, *size, channels)
    weight = bipolar(rng, out_channels, *kernel, channels)
    reach = channels * kernel[0] * kernel[1] + 1
    limits = rng.integers(-3, 4, out_channels).astype(np.int32)
    limits[1:3] = (-reach, reach)[: len(limits[1:3])]
    layer = PackedConv(
        name="conv",
        channels=channels,
        out_channels=out_channels,
        window=Window(kernel=kernel, stride=stride, padding=padding),
        pad=pad,
        weight=layout.pack(weight, word_bits),
        threshold=limits if threshold else None,
    )
    return Case(layer, layout.pack(values, word_bits), golden_dots(layer, values, weight))


def golden_dots(layer: PackedConv, values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Golden's sums: its padding is that of ``exact``; where taps outside count, they are made part of the map."""
    top, left, bottom, right = padding = layer.window.padding
    if layer.pad in ("-1", "+1"):
        values = np.pad(values, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=int(layer.pad))
        padding = (0, 0, 0, 0)
    _, height, width, channels = values.shape
    source = Map(height=height, width=width, channels=channels, encoding=BIPOLAR)
    window = {"kernel": layer.window.kernel, "stride": layer.window.stride, "padding": padding}
    conv = Conv(name="conv", out_channels=layer.out_channels, **window)
    return conv.forward(values.astype(np.int64), {"weight": weight}, source)


CHANNELS = (1, 3, 31, 32, 33, 64, 65, 128)
KINDS = list(product(CHANNELS, (32, 64), PADS))


def random_case(seed: int, word_bits: int | None = None) -> tuple[Case, np.random.Generator]:
    """A case whose channels, width of words and padding are one of `KINDS`, others for the next seed, all in 64 seeds.

    The rest is drawn: output channels, size, kernel (1 to 7), strides, thresholds or dots. And the generator for more.
    """
    rng = np.random.default_rng(1000 + seed)
    channels, bits, pad = KINDS[37 * seed % len(KINDS)]
    kernel = int(rng.integers(1, 8)), int(rng.integers(1, 8))
    stride = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    down, across = (int(rng.integers(0, k)) for k in kernel), (int(rng.integers(0, k)) for k in kernel)
    top, left = down
    bottom, right = across
    size = int(kernel[0] + rng.integers(0, 12)), int(kernel[1] + rng.integers(0, 12))
    window = {"kernel": kernel, "stride": stride, "pad": pad}
    window["padding"] = (0, 0, 0, 0) if pad == "valid" else (top, left, bottom, right)
    shape = {"images": int(rng.integers(1, 3)), "out_channels": int(rng.choice(CHANNELS))}
    more = {"word_bits": word_bits or bits, "threshold": bool(rng.integers(5))}
    return case(seed, size=size, channels=channels, **shape, **window, **more), rng


def plans(kernels, patches=((4, 4),), word_bits=(32, 64), sizes=(3,)):
    """For square kernels of each size, padding none, on a small map."""
    all_plans = []
    for bits in word_bits:
        for size in sizes:
            conv_case = case(kernel=(size, size), size=(9, 9), word_bits=bits)
            for patch in patches:
                block = (32, 4, 4) if patch == (4, 4) else (32, 2, 2)
                all_plans += [
                    plan(conv_case.layer, conv_case.words, kernel=name, patch=patch, block=block) for name in kernels
                ]
    return all_plans
