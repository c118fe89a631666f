import numpy as np
import pytest

from bitloom.golden.discrete.table import ONE_BIT, TABLES, TWO_BITS, CodeTable
from tests.errors import value_error


def test_tables_of_the_source():
    assert TWO_BITS.values == (-1, -1 / 8, 1 / 8, 1)
    assert ONE_BIT.values == (1, -1)
    assert {bits: (table.bits, table.span) for bits, table in TABLES.items()} == {1: (1, 1.0), 2: (2, 1.0), 3: (3, 1.0)}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((1,), "table: must have 2, 4 or 8 values, got 1"),
        ((1, -1, 0.5), "table: must have 2, 4 or 8 values, got 3"),
        (range(16), "table: must have 2, 4 or 8 values, got 16"),
        ((1, 0), "table: magnitudes must be 2^-k, k = -1..31, got value 0.0"),
        ((1, 4), "table: magnitudes must be 2^-k, k = -1..31, got value 4.0"),
        ((1, -0.75), "table: magnitudes must be 2^-k, k = -1..31, got value -0.75"),
        ((1, 2**-32), "table: magnitudes must be 2^-k, k = -1..31, got value 2.3283064365386963e-10"),
        ((1, float("nan")), "table: magnitudes must be 2^-k, k = -1..31, got value nan"),
        ((1, float("-inf")), "table: magnitudes must be 2^-k, k = -1..31, got value -inf"),
        ((1, -1, 1, 0.5), "table: values must differ, got 1, -1, 1, 0.5"),
    ],
)
def test_wrong_tables(values, message):
    with value_error(message):
        CodeTable(tuple(values))


def test_wrong_codes():
    with value_error("w: codes must be 0..3, got 4"):
        TWO_BITS.check("w", np.array([0, 3, 4]))
    with value_error("w: codes must be 0..1, got -1"):
        ONE_BIT.check("w", np.array([[0, -1]]))
    with value_error("w: codes must be integers, got dtype float64"):
        ONE_BIT.check("w", np.zeros(2))
