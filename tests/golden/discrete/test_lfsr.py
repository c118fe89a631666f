from functools import reduce

import numpy as np
import pytest

from bitloom.golden.discrete.lfsr import DRAW_BITS, LAGS, STATE_BITS, TAPS, Lfsr
from tests.errors import value_error

PERIOD = 2**32 - 1
PRIMES = (3, 5, 17, 257, 65537)


def times(a: int, b: int, modulus: int) -> int:
    """Product of polynomials over two elements, bit k the coefficient of x^k."""
    total = 0
    for k in range(b.bit_length()):
        total ^= (a << k) * (b >> k & 1)
    for k in range(total.bit_length() - 1, STATE_BITS - 1, -1):
        total ^= (modulus << (k - STATE_BITS)) * (total >> k & 1)
    return total


def power(exponent: int, modulus: int) -> int:
    """x^exponent modulo a polynomial of degree 32."""
    result = 1
    for bit in bin(exponent)[2:]:
        result = times(result, result, modulus)
        result = times(result, 2, modulus) if bit == "1" else result
    return result


def test_the_polynomial_is_primitive():
    """So the period is 2^32 - 1, of which the primes are all the factors."""
    assert reduce(int.__mul__, PRIMES) == PERIOD
    modulus = reduce(int.__or__, (1 << lag for lag in LAGS), 1)
    assert modulus == (1 << 32) + (1 << 30) + (1 << 26) + (1 << 25) + 1
    assert power(PERIOD, modulus) == 1
    assert all(power(PERIOD // prime, modulus) != 1 for prime in PRIMES)


@pytest.mark.parametrize("state", [1, 0x80000000, 0xDEADBEEF, PERIOD])
def test_draws_are_the_lower_half_after_16_steps(state):
    register = state
    numbers = []
    for _ in range(300):
        for _ in range(DRAW_BITS):
            bit = sum(register >> tap & 1 for tap in TAPS) % 2
            register = (register << 1 | bit) & 0xFFFFFFFF
        numbers.append(register & 0xFFFF)
    for counts in ((300,), (1, 299), (0, 33, 31, 236), (150, 150)):  # in parts of any size
        generator = Lfsr(state)
        assert np.concatenate([generator.draw(count) for count in counts]).tolist() == numbers
        assert generator.state == register


@pytest.mark.parametrize("state", [0, -1, 2**32])
def test_wrong_states(state):
    with value_error(f"lfsr: state must be 1..4294967295, got {state}"):
        Lfsr(state)
