"""Draws that a slave takes of a matrix: those of its own neurons (golden/discrete/draws.py)."""

from bitloom.golden.discrete.draws import MatrixDraws
from bitloom.golden.discrete.lfsr import Lfsr
from bitloom.golden.encoding import Array


class GivenDraws:
    """Numbers that were drawn before, given as one draw.

    Parameters
    ----------
    numbers : (...) integers
        In the shape of what is converted.
    """

    def __init__(self, numbers: Array) -> None:
        self._numbers = numbers

    def draw(self, count: int) -> Array:
        """All of them in C order; ValueError unless they are ``count``."""
        if count != self._numbers.size:
            raise ValueError(f"draws: must be asked for {self._numbers.size} numbers, got {count}")
        return self._numbers.reshape(-1)


def matrix_draws(generator: Lfsr, outputs: int, inputs: int, by_chance: tuple[bool, ...]) -> list[Array | None]:
    """Numbers for matrices that are converted together, each (outputs, inputs); None for those to the nearest."""
    count = sum(by_chance)
    draws = MatrixDraws(generator, outputs, inputs, count) if count else None
    return [draws.draw(outputs * inputs).reshape(outputs, inputs) if draws and c else None for c in by_chance]
