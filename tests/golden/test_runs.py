"""Runs, with the examples of spec A4 to A6 by name, and folded into words of any width."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitloom.golden.encoding import BIPOLAR
from bitloom.golden.packing import pack, to_bits
from bitloom.golden.runs import fold, kernel_runs, unfold, valid_elements, window_runs
from bitloom.golden.window import Window
from tests.cases import random_values
from tests.errors import value_error


def named(*rows: str) -> np.ndarray:
    """Elements by name: "ab", "cd" -> (2, 2, 2), a0 and a1 at the first position."""
    return np.array([[[f"{letter}{channel}" for channel in range(2)] for letter in row] for row in rows])


def test_kernel_of_the_spec():
    assert " ".join(kernel_runs(named("ab", "cd")[None])[0]) == "a0 a1 b0 b1 c0 c1 d0 d1"


def test_windows_of_the_spec():
    runs = window_runs(named("xyz", "pqr"), Window(kernel=(2, 2)))
    assert [" ".join(run) for run in runs] == ["x0 x1 y0 y1 p0 p1 q0 q1", "y0 y1 z0 z1 q0 q1 r0 r1"]


def test_padding_has_no_elements():
    window = Window(kernel=(2, 2), padding=(1, 0, 0, 0))
    x, kernel = named("xy"), kernel_runs(named("ab", "cd")[None])[0]
    (run,), (met,) = window_runs(x, window), valid_elements(x.shape, window)
    assert list(zip(run, kernel[met])) == [("x0", "c0"), ("x1", "c1"), ("y0", "d0"), ("y1", "d1")]


def test_runs_multiply_to_a_convolution():
    rng = np.random.default_rng(5)
    window = Window(kernel=(3, 2), stride=(1, 2), padding=(2, 0, 1, 1))
    x, weight = rng.integers(-9, 9, (5, 6, 3)), rng.integers(-9, 9, (4, 3, 2, 3))
    padded = np.pad(x, ((2, 1), (0, 1), (0, 0)))
    patches = np.lib.stride_tricks.sliding_window_view(padded, (3, 2, 3))[:, ::2, 0]  # (rows, columns, 3, 2, 3)
    expected = np.tensordot(patches, weight, axes=([2, 3, 4], [1, 2, 3])).reshape(-1, 4)
    kernels = kernel_runs(weight)
    runs = zip(window_runs(x, window), valid_elements(x.shape, window))
    np.testing.assert_array_equal([kernels[:, met] @ run for run, met in runs], expected)


@given(st.integers(1, 70), st.integers(1, 40))
def test_element_of_a_run_is_found_in_its_word(elements, width):
    run = np.arange(1, elements + 1)
    words = fold(run, width)
    assert all(words[i // width, i % width] == run[i] for i in range(elements))
    assert not words.reshape(-1)[elements:].any()
    np.testing.assert_array_equal(unfold(words, elements), run)


@pytest.mark.parametrize("width", [32, 64])
def test_words_of_bits_are_those_of_packing(width):
    bits = to_bits(random_values((75,), BIPOLAR, np.random.default_rng(2)), BIPOLAR)[..., 0]
    words = [sum(int(bit) << i for i, bit in enumerate(word)) for word in fold(bits, width)]
    assert words == pack(bits, width).tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fold(np.arange(3), 0), "fold: word_elements must be >= 1, got 0"),
        (lambda: unfold(fold(np.arange(5), 4), 4), "unfold: elements must be 5..8, got 4"),
        (lambda: unfold(fold(np.arange(5), 4), 9), "unfold: elements must be 5..8, got 9"),
    ],
)
def test_refusals(call, message):
    with value_error(message):
        call()
