"""Factors of a requantisation in lowest terms, and the widths and the rows that they get."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitloom.golden.layers.requantise import MAX_SHIFT, rounded_shift
from bitloom.hls_gen.compiler.integer_rows import lowest_terms, multiplier_bits, scale_fields
from bitloom.hls_gen.design.npu import Npu

INTEGER = Npu(engine="integer", feature_bits=4, weight_bits=4, shift_bits=0, acc_bits=12, kfp=2, kgp=2, ol=1)


VALUES = st.lists(st.integers(-(1 << 31), (1 << 31) - 1), min_size=1)


@given(st.integers(1, (1 << 16) - 1), st.integers(0, MAX_SHIFT), VALUES)
def test_the_same_results_with_smaller_multipliers(multiplier: int, shift: int, values: list[int]) -> None:
    (made,), (left,) = lowest_terms(np.array([multiplier]), np.array([shift]))
    assert made % 2 or left == 0
    assert made << (shift - left) == multiplier
    x = np.array(values)
    np.testing.assert_array_equal(rounded_shift(x * made, left), rounded_shift(x * multiplier, np.array(shift)))


@pytest.mark.parametrize(
    ("multipliers", "bits"), [([], 0), ([1, 1], 0), ([1, 2], 2), ([7], 3), ([8], 4), ([65_535], 16)]
)
def test_multipliers_are_as_wide_as_the_largest(multipliers: list[int], bits: int) -> None:
    columns = {"multiplier_0": np.array(multipliers, np.int64), "bias_0": np.array([1 << 20])}
    assert multiplier_bits([columns, {"shift_0": np.array([40])}]) == bits


@pytest.mark.parametrize("bits", [0, 3])
def test_shifts_end_where_every_result_is_0(bits: int) -> None:
    """Of whatever an accumulator holds, also the least, whose half would round to -1."""
    npu = Npu(**{**INTEGER.__dict__, "multiplier_bits": bits})
    columns = {"bias_0": np.array([0]), "multiplier_0": np.array([1]), "shift_0": np.array([63])}
    made = scale_fields(columns, npu)
    assert ("multiplier_0" in made) == bool(bits)
    largest = max(1, (1 << bits) - 1)
    values = np.array([-(1 << 11), (1 << 11) - 1])
    assert rounded_shift(values * largest, made["shift_0"]).tolist() == [0, 0]
    assert rounded_shift(values * largest, made["shift_0"] - 2).tolist() != [0, 0]
