"""Draws that a slave takes of a matrix: those of its own neurons (golden/discrete/draws.py)."""

from bitloom.golden.discrete.draws import MatrixDraws
from bitloom.golden.discrete.lfsr import Lfsr
from bitloom.golden.encoding import Array

from .instruction import ACCUMULATE, APPLY, Instruction


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


def by_chance(i: Instruction) -> tuple[bool, bool]:
    """Whether UPDATE, ACCUMULATE or APPLY converts weight gradients, and weights, by chance."""
    gradients = i.function != APPLY and i.kind_d and i.chance_d
    weights = i.function != ACCUMULATE and i.kind_w and i.chance_w
    return bool(gradients), bool(weights)


def matrix_draws(generator: Lfsr, i: Instruction) -> list[Array | None]:
    """Numbers for weight gradients and for weights, each (outputs, inputs); None for what isn't converted by chance."""
    chances = by_chance(i)
    count = sum(chances)
    size = i.columns * i.rows
    draws = MatrixDraws(generator, i.columns, i.rows, count) if count else None
    return [draws.draw(size).reshape(i.columns, i.rows) if draws and chance else None for chance in chances]
