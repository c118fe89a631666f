import numpy as np

from bitloom.golden.discrete.draws import GivenDraws, matrix_numbers
from bitloom.golden.discrete.lfsr import Lfsr
from tests.errors import value_error


def test_neurons_share_the_draw_of_an_input():
    """Of three matrices two are converted by chance: 3 inputs take two numbers each."""
    drawn = Lfsr.seeded(1).draw(6)
    first, nearest, last = matrix_numbers(drawn, 5, (True, False, True))
    assert nearest is None
    for matrix, numbers in enumerate((first, last)):
        for i, flipped in enumerate((0, 0x8000, 0x4000, 0xC000, 0x2000)):
            assert numbers[i].tolist() == [number ^ flipped for number in drawn[matrix::2].tolist()]
    assert matrix_numbers(drawn[:0], 5, (False, False)) == [None, None]


def test_wrong_sizes():
    with value_error("draws: outputs must be <= 65536, got 65537"):
        matrix_numbers(np.zeros(1, np.int64), 65537, (True,))
    with value_error("draws: must be asked for 6 numbers, got 5"):
        GivenDraws(np.zeros((2, 3), np.int64)).draw(5)
