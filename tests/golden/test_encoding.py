import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, TERNARY, Encoding, bipolar, signed, signed_bits, unsigned
from tests.errors import value_error

MASKED = "values must not be masked, got a masked array: say its values with filled()"


@pytest.mark.parametrize(
    ("encoding", "values"),
    [
        (BIPOLAR, [-1, 1]),
        (bipolar(2), [-2, 0, 2]),
        (bipolar(3), [-3, -1, 1, 3]),
        (TERNARY, [-1, 0, 1]),
        (signed(1), [-1, 0]),
        (signed(3), [-4, -3, -2, -1, 0, 1, 2, 3]),
        (unsigned(2), [0, 1, 2, 3]),
    ],
)
def test_values(encoding, values):
    assert list(range(encoding.low, encoding.high + 1, encoding.step)) == values
    encoding.check("x", np.array(values, np.int8))
    for wrong in set(range(-9, 10)) - set(values):
        with value_error(f"x: values must be {encoding}, got {wrong}"):
            encoding.check("x", np.array([*values, wrong]))


@pytest.mark.parametrize(
    ("low", "high", "bits"),
    [(0, 0, 1), (-1, 0, 1), (0, 1, 2), (-2, 1, 2), (-2, 2, 3), (-128, 127, 8), (-129, 0, 9), (0, 128, 9), (-9, 9, 5)],
)
def test_signed_bits(low, high, bits):
    assert signed_bits(low, high) == bits


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Encoding("float"), "encoding: kind must be one of bipolar, ternary, signed, unsigned, got 'float'"),
        (lambda: signed(0), "encoding signed: bits must be 1..62, got 0"),
        (lambda: unsigned(63), "encoding unsigned: bits must be 1..62, got 63"),
        (lambda: bipolar(1.0), "encoding bipolar: bits must be 1..62, got 1.0"),
        (lambda: Encoding("ternary", 3), "encoding ternary: bits must be 2, got 3"),
        (lambda: BIPOLAR.check("x", np.ones(2)), "x: values must be integers, got dtype float64"),
        (lambda: unsigned(5).check("x", np.ma.masked_greater([3, 99], 31)), f"x: {MASKED}"),
        (lambda: unsigned(5).check("x", np.ma.array([3, 9])), f"x: {MASKED}"),
        (lambda: BIPOLAR.check("x", np.ones(2, bool)), "x: values must be integers, got dtype bool"),
        (
            lambda: signed(8).check("x", np.array([2**64 - 1], np.uint64)),
            "x: values must be signed 8 bit (-128..127), got 18446744073709551615",
        ),
    ],
)
def test_what_is_no_encoding_is_refused(call, message):
    with value_error(message):
        call()


def test_an_empty_array_holds_no_wrong_value():
    BIPOLAR.check("x", np.zeros((0, 3), np.int8))
