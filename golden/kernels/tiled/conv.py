"""A binary convolution of packed words, whatever runs it (spec E8 to E12).

    mismatches of a window = sum over valid taps and word groups of popcount(input ^ weight)
    dot = K_bits - 2 * mismatches             K_bits = C * valid taps
    output bit of a channel = dot >= its threshold

Threshold 1 is a majority of matches with ties negative, 0 is sign with sign(0) = +1. Taps outside the map are one of

========  ======================================================================
``valid``  there are none: the padding is 0 on all sides
``-1``     they count as -1 in every channel
``+1``     they count as +1 in every channel
``exact``  they don't count: golden's zero padding, K_bits counts valid taps only
========  ======================================================================
"""

from dataclasses import dataclass

import numpy as np

from bitloom.golden.encoding import BIPOLAR, Array
from bitloom.golden.integers import make_fields_plain
from bitloom.golden.layer import Map
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.packing import word_count
from bitloom.golden.window import Pair, Window

from . import layout

PADS = ("valid", "-1", "+1", "exact")


@dataclass(frozen=True, kw_only=True, eq=False)
class PackedConv:
    """A binary convolution in layout N(C/B)HWB (golden/kernels/tiled/layout.py); B is the width of the weight words."""

    name: str
    """Of the layer, for messages."""
    channels: int
    out_channels: int
    """channels, out_channels: C and O, each >= 1."""
    window: Window
    """Kernel, strides and padding."""
    pad: str = "valid"
    """How taps outside the map count, one of `PADS`."""
    weight: Array
    """(O, ceil(C/B), kernel rows, kernel columns) uint32 or uint64: bits of missing channels are 0."""
    threshold: Array | None
    """(O,) int32 or None: none: the output are the dots themselves. Spec E's default rule is 1 for every channel."""

    def __post_init__(self) -> None:
        make_fields_plain(self)
        for what in ("channels", "out_channels"):
            value = getattr(self, what)
            if type(value) is not int or value < 1:
                raise ValueError(f"{self.name}: {what} must be an integer >= 1, got {value!r}")
        self.window.check(self.name)
        if self.pad not in PADS:
            raise ValueError(f"{self.name}: pad must be one of {', '.join(PADS)}, got {self.pad!r}")
        if self.pad == "valid" and any(self.window.padding):
            raise ValueError(f"{self.name}: pad valid needs padding (0, 0, 0, 0), got {self.window.padding}")
        if self.channels * self.window.taps >= 1 << 30:  # twice that fits an int32
            raise ValueError(f"{self.name}: channels x taps must be < 2^30, got {self.channels} x {self.window.taps}")
        layout.word_bits_of(f"{self.name}.weight", self.weight)
        _check_shape(f"{self.name}.weight", self.weight, (self.out_channels, self.groups, *self.window.kernel))
        layout.check_unused(f"{self.name}.weight", self.weight, self.channels)
        if self.threshold is not None:
            _check_shape(f"{self.name}.threshold", self.threshold, (self.out_channels,))
            if self.threshold.dtype != np.int32:
                raise ValueError(f"{self.name}.threshold: dtype must be int32, got {self.threshold.dtype}")

    @property
    def word_bits(self) -> int:
        """B, bits of a word."""
        return 8 * self.weight.dtype.itemsize

    @property
    def groups(self) -> int:
        """Number of words at a position of the input, ceil(C/B)."""
        return word_count(self.channels, self.word_bits)

    @property
    def out_groups(self) -> int:
        """Number of words at a position of the output, ceil(O/B)."""
        return word_count(self.out_channels, self.word_bits)

    @property
    def filler(self) -> Array:
        """The words that stand for a position outside the map, (groups,). With ``exact`` padding they don't count."""
        ones = layout.used_bits(self.channels, self.word_bits)
        return ones if self.pad == "+1" else np.zeros_like(ones)

    def output_size(self, height: int, width: int) -> Pair:
        """Rows and columns of the output; ValueError if the window doesn't fit the padded map."""
        return self.window.checked_output_size(self.name, height, width)

    def check_input(self, words: Array) -> None:
        """Raise ValueError unless ``words`` is (N, ceil(C/B), H, W) of the weights' dtype, N >= 1, and windows fit."""
        layout.word_bits_of(f"{self.name}: input", words)
        if words.dtype != self.weight.dtype:
            raise ValueError(f"{self.name}: input must be {self.weight.dtype}, as the weights, got {words.dtype}")
        if words.ndim != 4 or words.shape[1] != self.groups or min(words.shape) < 1:
            raise ValueError(f"{self.name}: input must have shape (N, {self.groups}, H, W), got {words.shape}")
        self.output_size(*words.shape[2:])
        layout.check_unused(f"{self.name}: input", words, self.channels)


def from_golden(
    layer: Weighted,
    source: Map,
    weight: Array,
    threshold: Array | None = None,
    direction: Array | None = None,
    *,
    word_bits: int,
) -> PackedConv:
    """Pack a convolution or dense layer of golden, with the threshold layer that follows it.

    A direction of -1 turns the signs of the channel's weights and threshold: x <= t is -x >= -t. Thresholds out of the
    dot's reach are brought next to it, where they decide the same and fit an int32.

    Parameters
    ----------
    layer : Weighted
    source : Map
        The map that the layer reads.
    weight : (O, kernel rows, kernel columns, C) integers
    threshold : (O, 1) integers, optional
        Without it the output are the dots.
    direction : (O,) integers, optional
        +1 and -1; by default all are +1.
    word_bits : int
        B, 32 or 64.

    Raises
    ------
    ValueError
        If a layer is no conv or dense one of single bits, or an array is not golden's. The message names the layer.
    """
    if source.encoding != BIPOLAR or layer.weight != BIPOLAR:
        raise ValueError(
            f"{layer.name}: features and weights must be {BIPOLAR}, got {source.encoding} and {layer.weight}"
        )
    if layer.kind not in ("conv", "dense"):
        raise ValueError(f"{layer.name}: kind must be conv or dense, got {layer.kind}")
    if layer.accumulate != "popcount":
        raise ValueError(f"{layer.name}: accumulate must be popcount, got {layer.accumulate}")
    window = layer.window(source)
    if window.growth != (1, 1):
        raise ValueError(f"{layer.name}: growth must be (1, 1), got {window.growth}")
    if window.beside != "nothing":
        raise ValueError(f"{layer.name}: beside must be nothing, got {window.beside}")
    if window.dilated:
        raise ValueError(f"{layer.name}: dilation must be (1, 1), got {window.dilation}")
    _check_shape(f"{layer.name}.weight", weight, (layer.out_channels, *window.kernel, source.channels))
    BIPOLAR.check(f"{layer.name}.weight", weight)
    packed_threshold = None
    if threshold is not None:
        sign = _sign(layer, threshold, direction)
        weight = weight * sign[:, None, None, None]
        reach = layer.fan_in(source) + 1
        packed_threshold = (sign * np.clip(threshold[:, 0].astype(np.int64), -reach, reach)).astype(np.int32)
    return PackedConv(
        name=layer.name,
        channels=source.channels,
        out_channels=layer.out_channels,
        window=window,
        pad="exact" if any(window.padding) else "valid",
        weight=layout.pack(weight, word_bits),
        threshold=packed_threshold,
    )


def _sign(layer: Weighted, threshold: Array, direction: Array | None) -> Array:
    """The direction of each channel, (O,) int64; ValueError unless it and the threshold are golden's arrays."""
    sign = np.ones(layer.out_channels, np.int64) if direction is None else direction
    _check_shape(f"{layer.name}.threshold", threshold, (layer.out_channels, 1))
    if not np.issubdtype(threshold.dtype, np.signedinteger):
        raise ValueError(f"{layer.name}.threshold: dtype must be of signed integers, got {threshold.dtype}")
    _check_shape(f"{layer.name}.direction", sign, (layer.out_channels,))
    BIPOLAR.check(f"{layer.name}.direction", sign)
    return sign.astype(np.int64)


def _check_shape(name: str, array: Array, shape: tuple[int, ...]) -> None:
    """ValueError, naming ``name``, unless it is an array of that shape."""
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{name}: must be an array of shape {shape}, got {type(array).__name__}")
    if array.shape != shape:
        raise ValueError(f"{name}: shape must be {shape}, got {array.shape}")
