"""How the pixels of a data set become values of a network's input: a few steps of integers, written as a text.

none                the values are the input's own already
minus:128           each less 128: 0 .. 255 becomes -128 .. 127
shift:4             without its lowest 4 bits: 0 .. 255 becomes 0 .. 15
threshold:128       +1 where it is at least 128, else -1
fixed:8             0 .. 255 as a real number from -1 to 1, in fixed point: signed 8 bit with 7 of them behind the
                    point, floor((2 p / 255 - 1) * 2^7 + 1/2), and 127 where that is 128
shift:4,minus:8     one after the other
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .encoding import Array
from .names import shown

NONE = "none"
MOST_STEPS = 4
LARGEST_PIXEL = 255
"""The pixel that `fixed` takes for 1."""
LIMIT = 1 << 31
"""Pixels and arguments are from -LIMIT to LIMIT - 1."""


def _fixed(pixels: Array, bits: int) -> Array:
    half = 1 << (bits - 1)
    if pixels.size and not 0 <= int(pixels.min()) <= int(pixels.max()) <= LARGEST_PIXEL:
        raise ValueError(
            f"transform fixed:{bits}: pixels must be 0..{LARGEST_PIXEL}, got {pixels.min()}..{pixels.max()}"
        )
    scaled = np.floor((2 * pixels.astype(np.float64) / LARGEST_PIXEL - 1) * half + 0.5)
    values: Array = np.minimum(scaled, half - 1).astype(np.int64)
    return values


STEPS: dict[str, tuple[int, int, Callable[[Array, int], Array]]] = {
    "minus": (-LIMIT, LIMIT - 1, lambda pixels, value: pixels - value),
    "shift": (1, 31, lambda pixels, bits: pixels >> bits),
    "threshold": (-LIMIT, LIMIT - 1, lambda pixels, least: np.where(pixels >= least, 1, -1)),
    "fixed": (2, 16, _fixed),
}
"""Smallest and largest argument of a step, and the step as a function of integers of 64 bits."""


@dataclass(frozen=True)
class Transform:
    """A transform of pixels, which can be called with an array of them.

    Raises
    ------
    ValueError
        If the text is none of these. One line that begins with ``transform:``.
    """

    text: str
    """``none``, or up to MOST_STEPS steps of the module's text, separated by commas."""

    def __post_init__(self) -> None:
        steps = self.text.split(",")
        if self.text != NONE and not (len(steps) <= MOST_STEPS and all(map(_is_step, steps))):
            raise ValueError(
                f"transform: must be none, or up to {MOST_STEPS} of minus:V, shift:1..31, threshold:T, fixed:2..16 "
                f"with commas between them, got {shown(self.text)}"
            )

    def __call__(self, pixels: Array) -> Array:
        """Transform pixels.

        Parameters
        ----------
        pixels : array of integers
            Of any shape.

        Returns
        -------
        array
            Of the same shape: int64, or with ``none`` the pixels themselves.

        Raises
        ------
        ValueError
            If pixels are no integers, or out of the range that a step takes.
        """
        if self.text == NONE:
            return pixels
        if pixels.dtype.kind not in "biu":
            raise ValueError(f"transform {self.text}: pixels must be integers, got dtype {pixels.dtype}")
        if pixels.size and not -LIMIT <= int(pixels.min()) <= int(pixels.max()) < LIMIT:
            raise ValueError(
                f"transform {self.text}: pixels must be {-LIMIT}..{LIMIT - 1}, got {pixels.min()}..{pixels.max()}"
            )
        values: Array = pixels.astype(np.int64)
        for step in self.text.split(","):
            name, _, argument = step.partition(":")
            values = STEPS[name][2](values, int(argument))
        return values

    def __str__(self) -> str:
        return self.text


def _is_step(step: str) -> bool:
    """Whether the text is one of STEPS with an argument in its range."""
    name, _, argument = step.partition(":")
    digits = argument.removeprefix("-")
    if name not in STEPS or not (digits.isascii() and digits.isdigit() and len(digits) <= 10):
        return False
    low, high, _ = STEPS[name]
    return low <= int(argument) <= high
