"""The random numbers of stochastic conversion: a linear feedback shift register, which hardware has in a few LUTs.

The register has 32 bits. In a step it moves up by one bit, and the exclusive or of its bits 31, 29, 25 and 24 comes in
as bit 0: the polynomial is x^32 + x^30 + x^26 + x^25 + 1, which is primitive, so a state other than 0 comes back after
2^32 - 1 steps. A draw is 16 steps; its number is the lower half of the register, the 16 bits that came in. All that
they depend on was there before the first step (bits 9 to 31): hardware makes the 16 steps in a cycle with 16 LUTs.
"""

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.integers import plain

STATE_BITS = 32
DRAW_BITS = 16
TAPS = (31, 29, 25, 24)
"""Bits of the register whose exclusive or comes in."""
LAGS = tuple(tap + 1 for tap in TAPS)
"""The same as a recurrence: bit n of the sequence is the exclusive or of the bits n - lag."""


class Lfsr:
    """A generator of numbers of 16 bits.

    Parameters
    ----------
    state : int
        1 to 2^32 - 1.

    Attributes
    ----------
    state : int
        The register after the last draw.
    """

    def __init__(self, state: int) -> None:
        if not 1 <= state < 1 << STATE_BITS:
            raise ValueError(f"lfsr: state must be 1..{(1 << STATE_BITS) - 1}, got {state}")
        self.state = plain(state)

    @classmethod
    def seeded(cls, seed: int) -> "Lfsr":
        """A generator whose state has about as many ones as zeros, for seeds 0, 1, 2, ... below 2^32 - 1."""
        state = (plain(seed) + 1) * 0x9E3779B1 % (1 << STATE_BITS)  # odd: seeds give different states, none of them 0
        return cls(state)

    def draw(self, count: int) -> Array:
        """The next ``count`` numbers, (count,) int64 of 0 to 65,535; each is what 16 steps bring in.

        The square of a polynomial over two elements has the same coefficients and twice the exponents. So what holds
        for the bits of the sequence holds for its numbers of 16 bits as well: number n is the exclusive or of those
        n - lag, and those n - 2 lag, n - 4 lag, ... Many numbers at a time follow from those before.
        """
        known = 2 + min(count, LAGS[0])
        numbers = np.empty(2 + count, np.uint16)
        numbers[:2] = self.state >> DRAW_BITS, self.state % (1 << DRAW_BITS)
        for n in range(2, known):
            number = 0
            for tap in TAPS:
                number ^= self.state >> (tap + 1 - DRAW_BITS)  # 16 steps at once, the first one's bit is the highest
            self.state = (self.state << DRAW_BITS | number % (1 << DRAW_BITS)) % (1 << STATE_BITS)
            numbers[n] = self.state % (1 << DRAW_BITS)
        while known < len(numbers):
            stride = 1 << ((known // LAGS[0]).bit_length() - 1)  # so that the longest lag reaches known numbers
            end = min(len(numbers), known + LAGS[-1] * stride)
            new = numbers[known - LAGS[0] * stride : end - LAGS[0] * stride].copy()
            for lag in LAGS[1:]:
                new ^= numbers[known - lag * stride : end - lag * stride]
            numbers[known:end] = new
            known = end
        self.state = int(numbers[-2]) << DRAW_BITS | int(numbers[-1])
        return numbers[2:].astype(np.int64)


def open_interval(draws: Array) -> Array:
    """Numbers of 16 bits as float64 in the open interval (0, 1): (2 * draw + 1) / 2^17, whose mean is 1/2."""
    return (draws + 0.5) * 2.0**-DRAW_BITS
