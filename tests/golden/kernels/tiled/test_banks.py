"""Banks of shared memory, by computation: which of a warp's accesses fall into one bank and must wait for each other.

Shared memory has 32 banks of 32 bits. A warp's access takes as many turns as the most words, each once, that are in one
bank. Words of 64 bits take two banks, and half a warp has its turn at a time.
"""

from collections import Counter

import pytest

from tests.golden.kernels.tiled import fiber

BANKS, LANES = 32, 32
BLOCKS = (32, 64, 96, 128, 1024)


def turns(words: list[int], word_bits: int) -> int:
    """Turns that an access of a warp takes: lane i accesses word ``words[i]``."""
    at_a_time = LANES if word_bits == 32 else LANES // 2
    banks = BANKS * 32 // word_bits
    return max(
        max(Counter(word % banks for word in set(words[first : first + at_a_time])).values())
        for first in range(0, LANES, at_a_time)
    )


def test_turns():
    assert turns([*range(32)], 32) == turns([*range(32)], 64) == 1
    assert turns([7] * 32, 32) == 1
    assert turns([8 * lane for lane in range(32)], 32) == 8
    assert turns([16 * (lane // 16) for lane in range(32)], 64) == 1


def weights(word_bits: int, a: int, product: int, load: int = 0) -> list[int]:
    """The word of each lane, by the CUDA source itself."""
    library = fiber._library((4, 4), 0)
    return [library.weight_of_lane(word_bits, a, lane, product, load) for lane in range(LANES)]


@pytest.mark.parametrize("a", BLOCKS)
@pytest.mark.parametrize(("word_bits", "loads"), [(32, 2), (64, 1)])
def test_weights_are_read_and_copied_without_conflicts(word_bits, loads, a):
    for product in range(4):
        for load in range(loads):
            words = weights(word_bits, a, product, load)
            assert len(set(words)) == LANES
            assert turns(words, word_bits) == 1
    assert turns(weights(word_bits, a, -1), word_bits) == 1


@pytest.mark.parametrize(("word_bits", "expected"), [(32, 4), (64, 4)])
def test_rows_that_are_one_word_longer_have_conflicts(word_bits, expected):
    """Four taps of eight channels, with rows of a + 1 words: the most words of a bank."""
    words = [(lane % 4) * (32 + 1) + lane // 4 for lane in range(LANES)]
    assert turns(words, word_bits) == expected


@pytest.mark.parametrize("word_bits", [32, 64])
def test_the_popcounts_of_a_warp_read_without_conflicts(word_bits):
    """Its lanes have neighbouring channels of one tap, in any order."""
    columns = [8 * (lane // 8) + 2 * (lane % 4) + lane % 8 // 4 for lane in range(LANES)]
    assert sorted(columns) == list(range(LANES))
    assert turns(columns, word_bits) == 1
