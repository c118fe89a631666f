"""Transforms: each step against its formula for every pixel; what is no transform is refused."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest

from bitloom.golden.transform import Transform
from tests.errors import value_error

PIXELS = np.arange(256, dtype=np.uint8)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("minus:128", lambda p: p - 128),
        ("minus:-3", lambda p: p + 3),
        ("shift:3", lambda p: p // 8),
        ("threshold:128", lambda p: 1 if p >= 128 else -1),
        ("threshold:0", lambda p: 1),
        ("shift:4,minus:8", lambda p: p // 16 - 8),
        ("minus:8,shift:4", lambda p: (p - 8) // 16),
        ("fixed:8", lambda p: min(127, floor((Fraction(2 * p, 255) - 1) * 128 + Fraction(1, 2)))),
        ("fixed:2", lambda p: min(1, floor((Fraction(2 * p, 255) - 1) * 2 + Fraction(1, 2)))),
    ],
)
def test_every_pixel(text, rule):
    numbers = Transform(text)(PIXELS.reshape(2, 8, 16))
    assert numbers.shape == (2, 8, 16)
    assert numbers.dtype == np.int64
    assert numbers.ravel().tolist() == [rule(p) for p in range(256)]
    assert str(Transform(text)) == text


def test_none_leaves_pixels_as_they_are():
    assert Transform("none")(PIXELS) is PIXELS


REFUSED = ["", "None", "minus", "minus:", "minus:x", "minus:1.5", "minus:--1", "minus:99999999999", "minus:1,"]
REFUSED += ["shift:0", "shift:32", "shift:-1", "fixed:1", "fixed:17", "none,minus:1", "threshold:\u0661", "half:2"]


@pytest.mark.parametrize("text", [*REFUSED, ",".join(["minus:1"] * 5)])
def test_what_is_refused(text):
    with value_error(
        "transform: must be none, or up to 4 of minus:V, shift:1..31, threshold:T, fixed:2..16 with commas between "
        f"them, got {text!r}"
    ):
        Transform(text)


def test_pixels_out_of_range_are_refused():
    with value_error("transform fixed:8: pixels must be 0..255, got 0..256"):
        Transform("fixed:8")(np.array([0, 256]))
    with value_error("transform fixed:8: pixels must be 0..255, got -1..7"):
        Transform("fixed:8")(np.array([-1, 7]))
    with value_error("transform minus:1: pixels must be -2147483648..2147483647, got 0..18446744073709551615"):
        Transform("minus:1")(np.array([0, 2**64 - 1], np.uint64))
    assert Transform("fixed:8")(np.zeros((0, 2), np.uint8)).shape == (0, 2)
