"""Convolution and dense layer: exact integer sums over the valid taps of a window (spec A1, A2, B11).

Or, in binary layers, one bit a window: the OR of its products (A2). That bit is -1 for one pattern only, the one that
is opposite to the kernel in every valid tap and channel. Or both: the OR of the products of each word, which is some
channels of a tap, and the sum of the words' bits.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from bitloom.golden.encoding import BIPOLAR, MOST_BITS, Array, Encoding, signed, signed_bits
from bitloom.golden.layer import Map, OneInput
from bitloom.golden.window import Pair, Sides, Window, with_invalid

ACCUMULATIONS = ("popcount", "or", "or_words")
"""How the products of a window become one value (spec A2)."""


def product_range(source: Encoding, weight: Encoding) -> tuple[int, int]:
    """Smallest and largest product of a feature and a weight."""
    corners = [x * w for x in (source.low, source.high) for w in (weight.low, weight.high)]
    return min(corners), max(corners)


@dataclass(frozen=True, kw_only=True)
class Weighted(OneInput):
    """A layer that multiplies features by weights, and accumulates the products of each window.

    Its one array is ``weight``: (out_channels, kernel rows, kernel columns, in_channels), channel fastest (spec A4).
    """

    out_channels: int
    """Number of kernels (DON), >= 1."""
    weight: Encoding = BIPOLAR
    """Which integers the weights may be."""
    accumulate: str = field(default="popcount", metadata={"written_if_set": True})
    """With "popcount" the output are the sums, exact signed integers. With "or", for bipolar features and weights of 1
    bit, the output is a bipolar bit, +1 where any product of a valid tap is +1; it needs no threshold. With "or_words",
    for the same features and weights, each word of a valid tap gives such a bit, and the output are the sums of these
    bits."""
    word_channels: int = field(default=0, metadata={"written_if_set": True})
    """Channels of a word, >= 1: word i of a tap are those from i * word_channels on, the last one what is left. 0
    unless accumulate is "or_words"."""
    real_weights: bool = field(default=False, metadata={"written_if_set": True})
    """Whether the array ``weight`` holds real numbers, finite ones of any dtype, of which the layer takes the signs: a
    number z is the weight +1 where z >= 0, 0 and -0 among them, and -1 where z < 0. The encoding ``weight`` must be
    bipolar then. `weights` gives the weights that count."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.out_channels) is not int or self.out_channels < 1:
            raise ValueError(f"{self.name}: out_channels must be an integer >= 1, got {self.out_channels!r}")
        if type(self.real_weights) is not bool:
            raise ValueError(f"{self.name}: real_weights must be True or False, got {self.real_weights!r}")
        if self.real_weights and self.weight != BIPOLAR:
            raise ValueError(f"{self.name}: real_weights need weights of {BIPOLAR}, got {self.weight}")
        if self.accumulate not in ACCUMULATIONS:
            rule = f"must be one of {', '.join(ACCUMULATIONS)}"
            raise ValueError(f"{self.name}: accumulate {rule}, got {self.accumulate!r}")
        if self.accumulate != "popcount" and self.weight != BIPOLAR:
            raise ValueError(f"{self.name}: accumulate {self.accumulate} needs weights of {BIPOLAR}, got {self.weight}")
        if self.accumulate == "or_words":
            if type(self.word_channels) is not int or self.word_channels < 1:
                raise ValueError(f"{self.name}: word_channels must be an integer >= 1, got {self.word_channels!r}")
        elif self.word_channels != 0:
            rule = f"word_channels must be 0 for accumulate {self.accumulate}"
            raise ValueError(f"{self.name}: {rule}, got {self.word_channels!r}")

    @abstractmethod
    def window(self, source: Map) -> Window:
        """The window that slides over ``source``."""

    def fan_in(self, source: Map) -> int:
        """Products of a whole window."""
        return self.window(source).taps * source.channels

    def terms(self, source: Map) -> int:
        """Terms of the sum of a whole window: its products, or with accumulate "or_words" its words."""
        if self.accumulate == "or_words":
            return self.window(source).taps * -(-source.channels // self.word_channels)
        return self.fan_in(source)

    def accumulator_range(self, source: Map) -> tuple[int, int]:
        """Smallest and largest sum that any weights and any features can give; with accumulate "or" -1 and +1."""
        if self.accumulate == "or":
            return BIPOLAR.low, BIPOLAR.high
        low, high = product_range(source.encoding, self.weight)
        return min(low * self.terms(source), 0), max(high * self.terms(source), 0)

    def output(self, source: Map) -> Map:
        window = self.window(source)
        rows, columns = window.checked_output_size(self.name, source.height, source.width)
        if not window.plain and not window.reaches(source.height, source.width):
            apart = f"growth {window.growth}" if window.growth != (1, 1) else f"dilation {window.dilation}"
            got = f"{apart} on {source.height} x {source.width}"
            raise ValueError(f"{self.name}: every window must have a tap on the map, got {got}")
        return Map(height=rows, width=columns, channels=self.out_channels, encoding=self._output_encoding(source))

    def _output_encoding(self, source: Map) -> Encoding:
        if self.accumulate != "popcount" and source.encoding != BIPOLAR:
            rule = f"accumulate {self.accumulate} needs a map of {BIPOLAR}"
            raise ValueError(f"{self.name}: {rule}, got {source.encoding}")
        if self.accumulate == "or":
            return BIPOLAR
        bits = signed_bits(*self.accumulator_range(source))
        if bits > MOST_BITS:
            got = f"{bits} for fan-in {self.fan_in(source)}"
            raise ValueError(f"{self.name}: accumulators must fit {MOST_BITS} bits, got {got}")
        return signed(bits)

    def array_shapes(self, source: Map) -> dict[str, tuple[int, ...]]:
        return {"weight": (self.out_channels, *self.window(source).kernel, source.channels)}

    def check_arrays(self, arrays: Mapping[str, Array], source: Map) -> None:
        given = arrays.get("weight")
        if self.real_weights and given is not None and given.dtype in (np.float16, np.float32, np.float64):
            super().check_arrays({**arrays, "weight": np.zeros(given.shape, np.int8)}, source)
        else:
            super().check_arrays(arrays, source)
        if not self.real_weights:
            self.weight.check(f"{self.name}.weight", arrays["weight"])
        elif not np.isfinite(arrays["weight"]).all():
            wrong = arrays["weight"][~np.isfinite(arrays["weight"])][0]
            raise ValueError(f"{self.name}.weight: real numbers must be finite, got {wrong}")

    def weights(self, arrays: Mapping[str, Array]) -> Array:
        """The weights that count, int64, in the shape of the array: the array's values, or their signs."""
        given = arrays["weight"]
        return np.where(given >= 0, 1, -1) if self.real_weights else given.astype(np.int64)

    def forward(self, x: Array, arrays: Mapping[str, Array], source: Map) -> Array:
        target = self.output(source)
        positions = self.window(source).positions(source.height, source.width)  # (outputs, taps)
        value = self.accumulated(with_invalid(x), positions, self.weights(arrays))  # (N, outputs, O)
        return value.reshape(len(x), *target.shape)

    def accumulated(self, padded: Array, positions: Array, weights: Array) -> Array:
        """Numbers that the products of each window give. Shapes are those of `signed_sum`; weights have the array's."""
        weight = weights.reshape(self.out_channels, positions.shape[1], -1)  # (O, taps, C)
        if self.accumulate == "or_words":
            return words_sum(padded, positions, weight, self.word_channels)
        return (any_match if self.accumulate == "or" else signed_sum)(padded, positions, weight)


def signed_sum(padded: Array, positions: Array, weight: Array) -> Array:
    """Add up the products of each window.

    Parameters
    ----------
    padded : (N, H * W + 1, C) integers
        Features; the last position is 0 and stands for all invalid taps.
    positions : (outputs, taps) integers
        Position of each tap, -1 where invalid (`bitloom.golden.window.Window.positions`).
    weight : (O, taps, C) integers

    Returns
    -------
    (N, outputs, O) int64
    """
    total = np.zeros((len(padded), len(positions), len(weight)), np.int64)
    for tap in range(positions.shape[1]):
        total += padded[:, positions[:, tap]] @ weight[:, tap].T
    return total


def any_match(padded: Array, positions: Array, weight: Array) -> Array:
    """+1 where any product of a window is +1, else -1; shapes are those of `signed_sum`.

    An invalid tap's 0 equals no weight, so it makes no +1.
    """
    match = np.zeros((len(padded), len(positions), len(weight)), bool)
    for tap in range(positions.shape[1]):
        features = padded[:, positions[:, tap], None]  # (N, outputs, 1, C)
        match |= (features == weight[:, tap]).any(axis=3)  # XNOR, then OR over C
    return np.where(match, 1, -1)


def words_sum(padded: Array, positions: Array, weight: Array, word_channels: int) -> Array:
    """Add up, over the valid taps of a window and the words of a tap, +1 where any product of the word is +1, else -1.

    Shapes are those of `signed_sum`; a word has ``word_channels`` channels, the last one of a tap what is left.
    """
    total = np.zeros((len(padded), len(positions), len(weight)), np.int64)
    for tap in range(positions.shape[1]):
        valid = positions[:, tap, None] >= 0  # (outputs, 1)
        for first in range(0, weight.shape[2], word_channels):
            word = slice(first, first + word_channels)
            features = padded[:, positions[:, tap], None, word]  # (N, outputs, 1, channels of the word)
            match = (features == weight[:, tap, word]).any(axis=3)  # XNOR, then OR
            total += np.where(match, 1, -1) * valid
    return total


@dataclass(frozen=True, kw_only=True)
class Conv(Weighted):
    """Convolution in two dimensions. Further attributes and the array are those of `Weighted`."""

    kind: ClassVar[str] = "conv"
    kernel: Pair
    """Rows and columns."""
    stride: Pair = (1, 1)
    """Rows and columns from one window to the next."""
    padding: Sides = (0, 0, 0, 0)
    """Rows or columns at top, left, bottom and right that add 0 to the sums, unless they are clamped."""
    dilation: Pair = field(default=(1, 1), metadata={"written_if_set": True})
    """Rows and columns from one tap to the next; every window must have a tap on the map."""
    growth: Pair = field(default=(1, 1), metadata={"written_if_set": True})
    """Rows and columns from one position of the map to the next when it has grown (`bitloom.golden.window`), as in a
    transposed convolution, or behind nearest upsampling. Kernel, stride, padding and dilation are those of a plain
    convolution of the grown map."""
    repeats: bool = field(default=False, metadata={"written_if_set": True})
    """Whether positions are repeated where the map grows; else taps between them add 0."""
    beside: str = field(default="nothing", metadata={"written_if_set": True})
    """Values of the padding, one of BESIDE (`bitloom.golden.window`): "nothing" adds 0; "nearest" reads the nearest
    position of the map, as padding with the map's edge, and bilinear upsampling; "mirrored" the mirrored position, as
    padding that reflects."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.window(None).check(self.name)

    def window(self, source: Map | None) -> Window:
        names = ("kernel", "stride", "padding", "dilation", "growth", "repeats", "beside")
        return Window(**{name: getattr(self, name) for name in names})
