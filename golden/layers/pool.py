"""Max, min, average and sum pooling over the valid taps of a window (spec A11, B14).

The average rounds half away from zero and divides by the number of values really summed. The sum divides by nothing:
what follows it, a threshold or a requantisation, takes up the division, exactly.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import numpy as np

from bitloom.golden.encoding import MOST_BITS, Array, signed, signed_bits
from bitloom.golden.layer import Map, OneInput
from bitloom.golden.window import Pair, Sides, Window, with_invalid

from .rounding import rounded_quotient

PoolKind = TypeVar("PoolKind", bound="Pool")


@dataclass(frozen=True, kw_only=True)
class Pool(OneInput):
    """A layer that makes one value a channel of the values in a window."""

    kernel: Pair
    """Rows and columns."""
    stride: Pair
    """Rows and columns from one window to the next."""
    padding: Sides = (0, 0, 0, 0)
    """Rows or columns at top, left, bottom and right, whose taps are invalid: they take no part."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.window.check(self.name)

    @classmethod
    def of(cls: type[PoolKind], name: str, window: Window) -> PoolKind:
        """The pool with this window, which is not dilated."""
        return cls(name=name, kernel=window.kernel, stride=window.stride, padding=window.padding)

    @property
    def window(self) -> Window:
        """The window that slides over the map."""
        return Window(kernel=self.kernel, stride=self.stride, padding=self.padding)

    def output(self, source: Map) -> Map:
        rows, columns = self.window.checked_output_size(self.name, source.height, source.width)
        return Map(height=rows, width=columns, channels=source.channels, encoding=source.encoding)

    @staticmethod
    @abstractmethod
    def reduced(taps: Array, valid: Array) -> Array:
        """The value that each window's taps give.

        Parameters
        ----------
        taps : (N, outputs, taps, C) integers
            Values that the windows read; 0 at invalid taps.
        valid : (outputs, taps) bool
            Which taps are valid.

        Returns
        -------
        (N, outputs, C) integers
        """

    def forward(self, x: Array, arrays: Mapping[str, Array], source: Map) -> Array:
        positions = self.window.positions(source.height, source.width)
        taps = with_invalid(x)[:, positions]  # (N, outputs, taps, C)
        return self.reduced(taps, positions >= 0).reshape(len(x), *self.output(source).shape)


@dataclass(frozen=True, kw_only=True)
class MaxPool(Pool):
    """The maximum of a window's valid taps, channel by channel; of bipolar bits that is OR."""

    kind: ClassVar[str] = "max_pool"

    @staticmethod
    def reduced(taps: Array, valid: Array) -> Array:
        largest: Array = np.where(valid[..., None], taps, np.iinfo(taps.dtype).min).max(axis=2)
        return largest


@dataclass(frozen=True, kw_only=True)
class MinPool(Pool):
    """The minimum of a window's valid taps, channel by channel; of bipolar bits that is AND."""

    kind: ClassVar[str] = "min_pool"

    @staticmethod
    def reduced(taps: Array, valid: Array) -> Array:
        smallest: Array = np.where(valid[..., None], taps, np.iinfo(taps.dtype).max).min(axis=2)
        return smallest


@dataclass(frozen=True, kw_only=True)
class AvgPool(Pool):
    """The average of a window's valid taps, channel by channel, rounded to the nearest, halves away from zero.

    It can read maps of kind signed and unsigned only.
    """

    kind: ClassVar[str] = "avg_pool"

    def output(self, source: Map) -> Map:
        _check_integers(self.name, "an average", source)
        return super().output(source)

    @staticmethod
    def reduced(taps: Array, valid: Array) -> Array:
        return rounded_quotient(taps.sum(axis=2), valid.sum(axis=1)[:, None])


@dataclass(frozen=True, kw_only=True)
class SumPool(Pool):
    """The sum of a window's valid taps, channel by channel: an average that is neither divided nor rounded.

    It can read maps of kind signed and unsigned only. Its own map is signed, with as many bits as the sum of a whole
    window needs, at most MOST_BITS.
    """

    kind: ClassVar[str] = "sum_pool"

    def output(self, source: Map) -> Map:
        _check_integers(self.name, "a sum", source)
        low = source.encoding.low
        high = source.encoding.high
        bits = signed_bits(low * self.window.taps, high * self.window.taps)
        if bits > MOST_BITS:
            raise ValueError(f"{self.name}: sums must fit {MOST_BITS} bits, got {bits} for {self.window.taps} taps")
        return replace(super().output(source), encoding=signed(bits))

    @staticmethod
    def reduced(taps: Array, valid: Array) -> Array:
        total: Array = taps.sum(axis=2)
        return total


def _check_integers(name: str, what: str, source: Map) -> None:
    """Raise ValueError unless the map's values are integers that add up."""
    if source.encoding.kind not in ("signed", "unsigned"):
        raise ValueError(f"{name}: {what} needs a signed or unsigned map, got {source.encoding}")
