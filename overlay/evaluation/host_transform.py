"""Pixels become values of an imported network's input by what its host file says (golden/host/host.py).

A network in a file of others was fed with real numbers, such as a pixel divided by 255. ``host:SCALE:OFFSET`` says
which number a pixel stands for, pixel x SCALE + OFFSET, and the host file how numbers become integers:

    host                images hold the numbers already
    host:1/255          0 .. 255 stand for 0 .. 1
    host:2/255:-1       0 .. 255 stand for -1 .. 1
"""

import re
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.host.host import Host
from bitloom.golden.names import shown
from bitloom.golden.transform import Transform

WORD = "host"
_NUMBER = r"-?\d{1,12}(?:\.\d{1,12}|/[1-9]\d{0,11})?"
_TEXT = re.compile(rf"{WORD}(?::{_NUMBER}){{0,2}}", re.ASCII)


@dataclass(frozen=True)
class HostTransform:
    """A transform of pixels to what an imported network reads, which can be called with an array of them.

    Attributes
    ----------
    text
        As of the module's text.
    host
        What the host does.

    Raises
    ------
    ValueError
        If the text is none of the module's.
    """

    text: str
    host: Host

    def __post_init__(self) -> None:
        if not _TEXT.fullmatch(self.text):
            raise ValueError(f"transform: must be {WORD}, {WORD}:SCALE or {WORD}:SCALE:OFFSET, numbers or fractions, "
                             f"got {shown(self.text)}")  # fmt: skip

    def __call__(self, pixels: Array) -> Array:
        """Transform (N, H, W, C) numbers, in the places of the network's input, to its values: int64."""
        given = [Fraction(number) for number in self.text.split(":")[1:]]
        scale, offset = [*given, *(Fraction(1), Fraction(0))[len(given) :]]
        # A product of integers and one division: so a pixel divided by 255 is rounded as it was when training.
        numbers = pixels.astype(np.float64) * scale.numerator / scale.denominator + float(offset)
        as_in_file = numbers.reshape(len(pixels), -1)[:, self.host.order]
        return self.host.to_input(as_in_file.reshape(len(pixels), *self.host.shape), pixels.shape[1:])

    def __str__(self) -> str:
        return self.text


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
