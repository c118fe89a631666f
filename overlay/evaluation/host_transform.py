"""Pixels become values of an imported network's input by what its host file says (golden/host/host.py).

A network in a file of others was trained on real numbers, such as a pixel divided by 255. ``host:SCALE:OFFSET`` says
which real number a pixel stands for, pixel x SCALE + OFFSET:

    host                a pixel is the number itself
    host:1/255          0 .. 255 stand for 0 .. 1
    host:2/255:-1       0 .. 255 stand for -1 .. 1

That holds for files of every format. Where a file's input takes integers, as int8 TFLite has it, the host makes them of
the real numbers with the file's scale and zero point, and what lies beyond the input's range becomes its end.
"""

import re
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.host.host import Host
from bitloom.golden.names import shown
from bitloom.golden.transform import LARGEST_PIXEL, Transform

from .input_use import LEAST_SHARE

WORD = "host"
_NUMBER = r"-?\d{1,12}(?:\.\d{1,12}|/[1-9]\d{0,11})?"
_TEXT = re.compile(rf"{WORD}(?::{_NUMBER}){{0,2}}", re.ASCII)
USUAL = ("host", "host:1/255", "host:2/255:-1", "host:1:-128")
"""Transforms that suit most networks: texts for the real numbers for which pixels of 0..255 stand."""


@dataclass(frozen=True)
class HostTransform:
    """A transform of pixels to what an imported network reads, which can be called with an array of them.

    Raises
    ------
    ValueError
        If the text is none of the module's.
    """

    text: str
    """As of the module's text."""
    host: Host
    """The host's part, which quantises the real numbers."""

    def __post_init__(self) -> None:
        check_transform(self.text)

    def __call__(self, pixels: Array) -> Array:
        """Transform (N, H, W, C) numbers, in the places of the network's input, to its values: int64."""
        numbers = self.numbers(pixels)
        as_in_file = numbers.reshape(len(pixels), -1)[:, self.host.order].reshape(len(pixels), *self.host.shape)
        return self.host.to_input(self.host.as_file(as_in_file), pixels.shape[1:])

    def numbers(self, pixels: Array) -> Array:
        """The real numbers that pixels stand for: float64 of the same shape."""
        given = [Fraction(number) for number in self.text.split(":")[1:]]
        scale, offset = [*given, *(Fraction(1), Fraction(0))[len(given) :]]
        # A product of integers and one division: so a pixel divided by 255 is rounded as it was when training.
        numbers: Array = pixels.astype(np.float64) * scale.numerator / scale.denominator + float(offset)
        return numbers

    def __str__(self) -> str:
        return self.text


def fitting_transforms(host: Host) -> tuple[str, ...]:
    """Those of USUAL that fit the range of the host's input: pixels of 0..255 use at least a quarter of the range, and
    nine tenths of the part that any other of these transforms uses, and none is clipped. None where the range is not
    known."""
    real = host.real_range()
    if real is None:
        return ()
    shares = {}
    for text in USUAL:
        ends = HostTransform(text, host).numbers(np.array([0, LARGEST_PIXEL])[:, None])  # (2, 1), or a column a channel
        step = (ends[1] - ends[0]) / LARGEST_PIXEL
        if (ends[0] >= real.low - real.slack - step).all() and (ends[1] <= real.high + real.slack + step).all():
            shares[text] = float(((ends[1] - ends[0]) / (real.high - real.low)).min())
    most = max(shares.values(), default=0.0)
    return tuple(text for text, share in shares.items() if share >= max(LEAST_SHARE, 0.9 * most))


def check_transform(text: str) -> None:
    """ValueError for a text that is neither of `bitloom.golden.transform` nor of this module."""
    if text.partition(":")[0] != WORD:
        Transform(text)
    elif not _TEXT.fullmatch(text):
        raise ValueError(
            f"transform: must be {WORD}, {WORD}:SCALE or {WORD}:SCALE:OFFSET, numbers or fractions, got {shown(text)}"
        )


def transform_of(text: str, host: Host | None) -> Transform | HostTransform:
    """The transform that a text means.

    Parameters
    ----------
    text
        Of `bitloom.golden.transform`, or of this module.
    host
        The network's host file; None if it has none.

    Raises
    ------
    ValueError
        If the text is neither, or there is no host file that it needs.
    """
    if text.partition(":")[0] != WORD:
        return Transform(text)
    if host is None:
        raise ValueError(f"transform {text}: needs the network's host file, NAME.host.json beside the model, got none")
    return HostTransform(text, host)
