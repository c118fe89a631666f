"""Draws of the instructions that convert matrices (golden/discrete/draws.py)."""

from bitloom.golden.discrete.draws import matrix_numbers
from bitloom.golden.discrete.lfsr import Lfsr
from bitloom.golden.encoding import Array

from .instruction import ACCUMULATE, APPLY, Instruction


def by_chance(i: Instruction) -> tuple[bool, bool]:
    """Whether UPDATE, ACCUMULATE or APPLY converts weight gradients, and weights, by chance."""
    gradients = i.function != APPLY and i.kind_d and i.chance_d
    weights = i.function != ACCUMULATE and i.kind_w and i.chance_w
    return bool(gradients), bool(weights)


def matrix_draws(generator: Lfsr, i: Instruction) -> list[Array | None]:
    """Numbers for weight gradients and for weights, each (outputs, inputs); None for what isn't converted by chance."""
    chances = by_chance(i)
    return matrix_numbers(generator.draw(i.rows * sum(chances)), i.columns, chances)
