import numpy as np

from bitloom.golden.discrete.converter import Converter
from bitloom.golden.discrete.draws import GivenDraws, matrix_numbers, reversed_bits
from bitloom.golden.discrete.lfsr import Lfsr
from bitloom.golden.discrete.table import ONE_BIT
from tests.errors import value_error


def test_bits_are_reversed():
    assert reversed_bits(np.array([0, 1, 2, 3, 0x8000, 0xFFFF])).tolist() == [0, 0x8000, 0x4000, 0xC000, 1, 0xFFFF]


def test_neurons_share_the_draw_of_an_input():
    """Of three matrices two are converted by chance: 3 inputs take two numbers each."""
    drawn = Lfsr.seeded(1).draw(6)
    first, nearest, last = matrix_numbers(drawn, 5, (True, False, True))
    assert nearest is None
    for matrix, numbers in enumerate((first, last)):
        for i, flipped in enumerate((0, 0x8000, 0x4000, 0xC000, 0x2000)):
            assert numbers[i].tolist() == [number ^ flipped for number in drawn[matrix::2].tolist()]
    assert matrix_numbers(drawn[:0], 5, (False, False)) == [None, None]


def test_numbers_of_an_input_are_spread_evenly_over_the_neurons():
    """Of 2^k neurons one has its number in each of 2^k equal parts: their mean is right within half a part."""
    (numbers,) = matrix_numbers(Lfsr.seeded(4).draw(20), 64, (True,))
    assert (np.sort(numbers >> 10, axis=0) == np.arange(64)[:, None]).all()
    x = np.broadcast_to(np.linspace(-0.95, 0.95, 20), (64, 20))
    codes = Converter(table=ONE_BIT, rounding="stochastic").codes(x, GivenDraws(numbers))
    assert (np.abs(ONE_BIT.real[codes].mean(axis=0) - x[0]) <= 2 / 64).all()


def test_wrong_sizes():
    with value_error("draws: outputs must be <= 65536, got 65537"):
        matrix_numbers(np.zeros(1, np.int64), 65537, (True,))
    with value_error("draws: must be asked for 6 numbers, got 5"):
        GivenDraws(np.zeros((2, 3), np.int64)).draw(5)
