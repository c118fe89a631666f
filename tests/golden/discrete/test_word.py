from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitloom.golden.discrete.word import WordFormat, operation
from tests.errors import value_error

FORMATS = [WordFormat(4, 0), WordFormat(8, 6), WordFormat(16, 12), WordFormat(32, 0), WordFormat(32, 30), WordFormat()]


def rule(form: WordFormat, exact: Fraction) -> int:
    """The format's one rule, in fractions: a value becomes a word."""
    scaled = exact * 2**form.fraction
    return max(-form.largest, min(form.largest, floor(scaled) if scaled >= 0 else ceil(scaled)))


def expected(form: WordFormat, name: str, a: int, b: int) -> int:
    x, y = Fraction(a, 2**form.fraction), Fraction(b, 2**form.fraction)
    if name == "/" and b == 0:
        return form.largest * ((a > 0) - (a < 0))
    return rule(form, {"+": x + y, "-": x - y, "*": x * y, "/": x / y if b else Fraction(0)}[name])


@given(st.data(), st.sampled_from(FORMATS), st.sampled_from("+-*/"))
def test_operations_are_exact_then_truncated_then_saturated(data, form, name):
    ends = [-form.largest, -1, 0, 1, form.one, form.largest]
    words = st.lists(st.one_of(st.sampled_from(ends), st.integers(-form.largest, form.largest)), min_size=1, max_size=9)
    a, b = data.draw(words), data.draw(words)
    got = operation(form, name)(np.array(a)[:, None], np.array(b))
    assert got.dtype == np.int64
    assert got.tolist() == [[expected(form, name, x, y) for y in b] for x in a]


@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_bits_of_words(form):
    words = np.array([0, 1, -1, form.largest, -form.largest])
    top = 1 << (form.bits - 1)
    bits = form.pack(words)
    assert bits.tolist() == [0, 1, top + 1, top - 1, 2 * top - 1]
    assert form.unpack(bits).tolist() == words.tolist()
    assert form.unpack(np.array([top])).tolist() == [0]  # minus zero
    assert form.words(form.values(words)).tolist() == words.tolist()


def test_dot_truncates_products_and_saturates_once():
    form = WordFormat(8, 4)
    rows = np.array([[100, 100, -100, 7], [7, -7, 7, -7]])  # products: 625, 625, -625 of which each alone saturates
    x = np.array([[100, 100, 100, 1], [1, 1, 1, 1]])
    assert form.dot(rows, x).tolist() == [[127 + 127 - 127 + 0, 43 - 43 + 43 - 0], [6 + 6 - 6 + 0, 0]]
    assert form.dot(rows, x[0]).tolist() == form.dot(rows, x)[0].tolist()
    small = np.array([[7, 7, 7, 7], [-7, -7, -7, -7], [100, -60, 0, 0]])
    assert form.dot(small, np.array([1, 1, 1, 1])).tolist() == [0, 0, 6 - 3]  # each product is truncated, not the sum
    assert form.dot(small[2:], np.array([100, 16, 0, 0])).tolist() == [127 - 60]  # each is saturated, before the sum
    wide = np.full((1, 50), form.largest)
    assert form.dot(wide, wide[0]).tolist() == [form.largest]
    halves = np.where(np.arange(50) < 25, form.largest, -form.largest)
    assert form.dot(wide, halves).tolist() == [0]  # the first 25 alone saturate


@pytest.mark.parametrize(
    ("bits", "fraction", "message"),
    [
        (3, 0, "word: bits must be 4..32, got 3"),
        (33, 0, "word: bits must be 4..32, got 33"),
        (8.0, 0, "word: bits must be 4..32, got 8.0"),
        (8, 7, "word: fraction must be 0..6 for 8 bits, got 7"),
        (8, -1, "word: fraction must be 0..6 for 8 bits, got -1"),
    ],
)
def test_wrong_formats(bits, fraction, message):
    with value_error(message):
        WordFormat(bits, fraction)


def test_wrong_values():
    form = WordFormat(8, 4)
    with value_error("word: values must be numbers, got nan"):
        form.words(np.array([0.0, np.nan]))
    for bad in (256, -1):
        with value_error(f"word: must have 8 bits, got {bad}"):
            form.unpack(np.array([0, bad]))
    with value_error("arithmetic: operation must be one of + - * /, got '%'"):
        operation(form, "%")


@pytest.mark.parametrize("form", [WordFormat(18, 12), WordFormat(18, 11), WordFormat(9, 4)], ids=str)
def test_inverse_root(form):
    """Within 4 % of numpy's, where a word can say so; it depends on the first bit and the three behind it alone."""
    words = np.arange(-form.largest, form.largest + 1)
    roots = form.inverse_root(words)
    np.testing.assert_array_equal(roots, roots[::-1])
    exact = 1 / np.sqrt(form.values(np.maximum(np.abs(words), 1)))
    bound = form.values(form.largest)
    least = form.values(1)
    assert (np.abs(form.values(roots) - np.minimum(exact, bound)) <= 0.04 * exact + least).all()
    positive = np.arange(1, form.largest + 1)
    lengths = np.array([int(word).bit_length() for word in positive])
    kept = positive >> np.maximum(lengths - 4, 0) << np.maximum(lengths - 4, 0)
    np.testing.assert_array_equal(form.inverse_root(positive), form.inverse_root(kept))
    assert len(np.unique(form.inverse_root(positive))) > 2 * form.bits
