from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitloom.golden.discrete.converter import Converter
from bitloom.golden.discrete.lfsr import Lfsr
from bitloom.golden.discrete.table import TABLES, TWO_BITS, CodeTable
from bitloom.golden.discrete.word import WordFormat
from tests.errors import value_error

UNEVEN = CodeTable((0.25, -2, 1, -0.125, 0.5, 2, -1, 0.125))
"""Codes in no order, and values that are not symmetric."""
EVERY = [*TABLES.values(), UNEVEN]


def points(table: CodeTable, zone: int) -> np.ndarray:
    """Values, midpoints and what lies between and outside, multiples of 2^-8."""
    values = np.sort(table.real)
    return np.concatenate([values, (values[1:] + values[:-1]) / 2, np.arange(-3 * 256, 3 * 256 + 1, 7) / 256])


def chances(table: CodeTable, y: float | Fraction, pair: str) -> dict[float, Fraction]:
    """Probability of each value, by the text of C6 in fractions."""
    exact = Fraction(y)
    values = [Fraction(v) for v in table.values]
    if pair == "bracket":
        above = [v for v in values if v >= exact]
        below = [v for v in values if v <= exact]
        a = min(above, default=max(values))
        b = max(below, default=min(values))
    else:
        a, b = sorted(values, key=lambda v: (abs(v - exact), -v))[:2]
    if a == b:
        return {float(a): Fraction(1)}
    distance_a, distance_b = abs(a - exact), abs(b - exact)
    chance = distance_b / (distance_a + distance_b)
    return {float(a): chance, float(b): 1 - chance}


@pytest.mark.parametrize("table", EVERY, ids=lambda table: str(len(table.values)))
def test_nearest_is_the_closest_value_and_the_larger_of_two(table):
    x = points(table, 2)
    codes = Converter(table=table, zone=2).codes(x)
    for value, code in zip(x.tolist(), codes.tolist()):
        y = max(-2.0, min(2.0, value))
        closest = min(table.values, key=lambda v: (abs(Fraction(v) - Fraction(y)), -v))
        assert table.values[code] == closest


@pytest.mark.parametrize("pair", ["bracket", "nearest"])
@pytest.mark.parametrize("table", EVERY, ids=lambda table: str(len(table.values)))
def test_stochastic_compares_z_with_the_chance_of_the_first(table, pair):
    """Value by value with the same draws, in exact fractions."""
    x = points(table, 2)
    converter = Converter(table=table, zone=2, rounding="stochastic", pair=pair)
    codes = converter.codes(x.reshape(1, -1), Lfsr.seeded(3))
    draws = Lfsr.seeded(3).draw(x.size)
    assert codes.shape == (1, x.size)
    for value, draw, code in zip(x.tolist(), draws.tolist(), codes[0].tolist()):
        (first, chance), *second = chances(table, max(-2.0, min(2.0, value)), pair).items()
        z = Fraction(2 * draw + 1, 2**17)
        assert table.values[code] == (first if not second or z < chance else second[0][0])


MAGNITUDES = st.builds(lambda sign, k: sign * 2.0**-k, st.sampled_from([1, -1]), st.integers(-1, 31))


@given(st.data(), st.sampled_from([2, 4, 8]), st.sampled_from(["bracket", "nearest"]), st.integers(1, 2**32 - 1))
def test_any_table_and_word_is_converted_exactly(data, size, pair, state):
    """Tables with magnitudes from 2 to 2^-31, in any order, against fractions: neither the nearest code nor the chance
    of a code is rounded."""
    table = CodeTable(tuple(data.draw(st.lists(MAGNITUDES, min_size=size, max_size=size, unique=True))))
    zone = data.draw(st.sampled_from([zone for zone in (1, 2) if zone >= table.span]))
    form = WordFormat(32, data.draw(st.integers(0, 30)))
    near = form.words(np.array(data.draw(st.lists(st.sampled_from(table.values), max_size=4)), np.float64)).tolist()
    some = data.draw(st.lists(st.integers(-form.largest, form.largest), min_size=1, max_size=5))
    words = np.array([*some, *near, *(word + step for word in near for step in (-1, 1))])
    draws = Lfsr(state).draw(len(words)).tolist()
    chosen = Converter(table=table, zone=zone, rounding="stochastic", pair=pair).word_codes(form, words, Lfsr(state))
    nearest = Converter(table=table, zone=zone).word_codes(form, words)
    for word, draw, by_chance, closest in zip(words.tolist(), draws, chosen.tolist(), nearest.tolist()):
        y = max(Fraction(-zone), min(Fraction(zone), Fraction(word, form.one)))
        assert table.values[closest] == min(table.values, key=lambda v: (abs(Fraction(v) - y), -v))
        (first, chance), *second = chances(table, y, pair).items()
        assert table.values[by_chance] == (
            first if not second or Fraction(2 * draw + 1, 2**17) < chance else second[0][0]
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounding": "up"}, "converter: rounding must be one of nearest, stochastic, got 'up'"),
        ({"pair": "any"}, "converter: pair must be one of bracket, nearest, got 'any'"),
        ({"zone": 3}, "converter: zone must be one of 1, 2, got 3"),
        ({"table": UNEVEN}, "converter: zone must cover the table, whose largest magnitude is 2, got 1"),
    ],
)
def test_wrong_converters(options, message):
    with value_error(message):
        Converter(**{"table": TWO_BITS, **options})


def test_stochastic_rounding_needs_a_generator():
    with value_error("converter: stochastic rounding needs a generator, got none"):
        Converter(table=TWO_BITS, rounding="stochastic").codes(np.zeros(3))
