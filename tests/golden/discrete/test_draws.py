import numpy as np

from bitloom.golden.discrete.converter import Converter
from bitloom.golden.discrete.draws import MatrixDraws, reversed_bits
from bitloom.golden.discrete.lfsr import Lfsr
from bitloom.golden.discrete.table import ONE_BIT
from tests.errors import value_error


def test_bits_are_reversed():
    assert reversed_bits(np.array([0, 1, 2, 3, 0x8000, 0xFFFF])).tolist() == [0, 0x8000, 0x4000, 0xC000, 1, 0xFFFF]


def test_neurons_share_the_draw_of_an_input():
    generator = Lfsr.seeded(1)
    first, second = (MatrixDraws(generator, 5, 3, matrices=2).draw for _ in range(2))
    shared = Lfsr.seeded(1).draw(12).reshape(2, 3, 2).tolist()  # twice, inputs, matrices
    for matrices, draw in zip(shared, (first, second)):
        for matrix in range(2):
            got = draw(15).reshape(5, 3).tolist()
            for i, flipped in enumerate((0, 0x8000, 0x4000, 0xC000, 0x2000)):
                assert got[i] == [row[matrix] ^ flipped for row in matrices]
    again = Lfsr.seeded(1)
    again.draw(12)
    assert generator.state == again.state


def test_numbers_of_an_input_are_spread_evenly_over_the_neurons():
    """Of 2^k neurons one has its number in each of 2^k equal parts: their mean is right within half a part."""
    numbers = MatrixDraws(Lfsr.seeded(4), 64, 20).draw(64 * 20).reshape(64, 20)
    assert (np.sort(numbers >> 10, axis=0) == np.arange(64)[:, None]).all()
    x = np.broadcast_to(np.linspace(-0.95, 0.95, 20), (64, 20))
    codes = Converter(table=ONE_BIT, rounding="stochastic").codes(x, MatrixDraws(Lfsr.seeded(4), 64, 20))
    assert (np.abs(ONE_BIT.real[codes].mean(axis=0) - x[0]) <= 2 / 64).all()


def test_wrong_sizes():
    with value_error("draws: outputs must be <= 65536, got 65537"):
        MatrixDraws(Lfsr(1), 65537, 1)
    draws = MatrixDraws(Lfsr(1), 2, 3)
    with value_error("draws: the next matrix has 6 elements, got 5"):
        draws.draw(5)
    draws.draw(6)
    with value_error("draws: the next matrix has 0 elements, got 6"):
        draws.draw(6)
