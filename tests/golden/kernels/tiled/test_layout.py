import numpy as np
import pytest

from bitloom.golden.kernels.tiled import layout
from tests.errors import value_error

from .cases import CHANNELS, bipolar


@pytest.mark.parametrize("word_bits", [32, 64])
@pytest.mark.parametrize("channels", CHANNELS)
def test_a_bit_lies_where_the_address_says(channels, word_bits):
    """Bit address ((((n * groups + c div B) * H + h) * W + w) * B) + c mod B (spec E6)."""
    values = bipolar(np.random.default_rng(channels), 2, 3, 5, channels)
    words = layout.pack(values, word_bits)
    groups = -(-channels // word_bits)
    assert words.shape == (2, groups, 3, 5)
    assert words.dtype == np.dtype(f"uint{word_bits}")
    memory = np.unpackbits(words.view(np.uint8).reshape(-1), bitorder="little")
    n, h, w, c = np.indices(values.shape)
    address = (((n * groups + c // word_bits) * 3 + h) * 5 + w) * word_bits + c % word_bits
    assert np.array_equal(memory[address], values > 0)
    unused = np.ones(memory.shape, bool)
    unused[address] = False
    assert not memory[unused].any()


def test_invert_is_not_of_the_channels_that_exist():
    values = bipolar(np.random.default_rng(0), 1, 2, 3, 65)
    for word_bits in (32, 64):
        words = layout.pack(values, word_bits)
        assert np.array_equal(layout.invert(words, 65), layout.pack(-values, word_bits))
        assert np.array_equal(layout.invert(layout.invert(words, 65), 65), words)


def test_errors():
    with value_error("pack: a map or kernel has 4 axes, got shape (2, 3, 4)"):
        layout.pack(np.ones((2, 3, 4)), 32)
    with value_error("pack: values must be 0 and 1, or -1 and +1, got 2"):
        layout.pack(np.full((1, 1, 1, 2), 2), 32)
    with value_error("pack: values must be 0 and 1, or -1 and +1, got 0 beside -1"):
        layout.pack(np.array([[[[1, 0, -1]]]]), 32)
    with value_error("pack: word_bits must be 32 or 64, got 16"):
        layout.pack(np.ones((1, 1, 1, 2)), 16)
    with value_error("unpack: words must be uint32 or uint64, got uint8"):
        layout.unpack(np.zeros((1, 1, 1, 1), np.uint8), 3)
    with value_error("pack: word_bits must be 32 or 64, got 32.0"):
        layout.pack(np.ones((1, 1, 1, 2)), 32.0)
    with value_error("unpack: channels must be an integer >= 1, got 0"):
        layout.unpack(np.zeros((1, 0, 4, 5), np.uint32), 0)
    with value_error("unpack: channels must be an integer >= 1, got 33.0"):
        layout.unpack(np.zeros((1, 2, 4, 5), np.uint32), 33.0)
    with value_error("invert: a map or kernel has 4 axes, got shape (2, 4, 5)"):
        layout.invert(np.zeros((2, 4, 5), np.uint32), 33)
    with value_error("invert: 33 channels need 2 words of 32 bits, got shape (1, 1, 4, 5)"):
        layout.invert(np.zeros((1, 1, 4, 5), np.uint32), 33)
    with value_error("unpack: 33 channels need 2 words of 32 bits, got shape (1, 1, 4, 5)"):
        layout.unpack(np.zeros((1, 1, 4, 5), np.uint32), 33)
    with value_error("unpack: bits of channels >= 33 must be 0"):
        layout.unpack(np.full((1, 2, 1, 1), 2, np.uint32), 33)
    with value_error("invert: words must be uint32 or uint64, got int64"):
        layout.invert(np.zeros((1, 1, 1, 1), np.int64), 3)
