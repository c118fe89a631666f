import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, TERNARY, bipolar, signed, unsigned
from bitloom.golden.packing import from_bits, pack, to_bits, unpack, word_count
from tests.errors import value_error


def test_element_0_is_the_least_significant_bit_of_word_0():
    bits = np.zeros(70, np.uint8)
    bits[[0, 5, 33, 69]] = 1
    assert pack(bits, 32).tolist() == [0b100001, 0b10, 1 << 5]
    assert pack(bits, 64).tolist() == [0b100001 | 1 << 33, 1 << 5]


@pytest.mark.parametrize("word_bits", [32, 64])
@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 63, 64, 65, 130])
def test_pack_equals_a_sum_of_powers_and_unpack_is_its_inverse(n, word_bits):
    bits = np.random.default_rng(n).integers(0, 2, (2, 3, n))
    for filler in (0, 1):
        words = pack(bits, word_bits, filler)
        assert words.dtype == {32: np.uint32, 64: np.uint64}[word_bits]
        assert words.shape == (2, 3, word_count(n, word_bits))
        for row, packed in zip(bits.reshape(6, n).tolist(), words.reshape(6, -1).tolist()):
            number = sum(bit << i for i, bit in enumerate(row + [filler] * (-n % word_bits)))
            assert packed == [number >> (word_bits * w) & (2**word_bits - 1) for w in range(len(packed))]
        np.testing.assert_array_equal(unpack(words, n), bits)


def test_a_part_of_a_larger_array_unpacks():
    words = pack(np.random.default_rng(1).integers(0, 2, (4, 40)), 32)
    np.testing.assert_array_equal(unpack(words[::2, ::-1], 40), unpack(words[::2, ::-1].copy(), 40))


@pytest.mark.parametrize(
    ("encoding", "value", "bits"),
    [
        (BIPOLAR, 1, [1]),
        (BIPOLAR, -1, [0]),
        (bipolar(3), -3, [0, 0, 0]),
        (bipolar(3), 1, [1, 1, 0]),
        (bipolar(2), 2, [1, 1]),
        (TERNARY, -1, [1, 1]),
        (TERNARY, 1, [1, 0]),
        (signed(4), -8, [0, 0, 0, 1]),
        (signed(4), 6, [0, 1, 1, 0]),
        (unsigned(4), 14, [0, 1, 1, 1]),
    ],
)
def test_stored_bits(encoding, value, bits):
    assert to_bits(np.array([value], np.int8), encoding).tolist() == [bits]
    assert from_bits(np.array([bits], np.uint8), encoding).tolist() == [value]


@pytest.mark.parametrize("encoding", [bipolar(1), bipolar(5), TERNARY, signed(1), signed(8), unsigned(7), signed(62)])
def test_from_bits_is_the_inverse_of_to_bits(encoding):
    step = max(1, (encoding.high - encoding.low) // (256 * encoding.step)) * encoding.step
    values = np.array(sorted({*range(encoding.low, encoding.high + 1, step), encoding.high}))
    bits = to_bits(values.reshape(1, -1), encoding)
    assert bits.shape == (1, len(values), encoding.bits)
    assert bits.dtype == np.uint8
    np.testing.assert_array_equal(from_bits(bits, encoding)[0], values)


def test_thermometer_bits_may_come_in_any_order():
    assert from_bits(np.array([[0, 1, 1], [0, 0, 1]]), bipolar(3)).tolist() == [1, -1]


def test_a_map_packs_channel_fastest_and_each_value_least_significant_bit_first():
    x = np.array([[[1, 2], [3, 0]]])  # (H, W, C) = (1, 2, 2) of 2 bits
    bits = to_bits(x, unsigned(2)).reshape(1, -1)
    assert pack(bits, 32).tolist() == [[0b00_11_10_01]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pack(np.array([0, 2])), "pack: bits must be 0 or 1, got 2"),
        (lambda: pack(np.array([0.5])), "pack: bits must be 0 or 1, got 0.5"),
        (lambda: pack(np.array(1)), "pack: bits must have an axis, got a scalar"),
        (lambda: pack(np.array([1]), 16), "pack: word_bits must be 32 or 64, got 16"),
        (lambda: pack(np.array([1]), filler=2), "pack: filler must be 0 or 1, got 2"),
        (lambda: unpack(np.zeros(2, np.int64), 3), "unpack: words must be uint32 or uint64, got int64"),
        (
            lambda: unpack(np.zeros((3, 2), np.uint32), 65),
            "unpack: 65 elements need 3 words of 32 bits, got shape (3, 2)",
        ),
        (
            lambda: to_bits(np.array([0]), BIPOLAR),
            "to_bits: values must be bipolar 1 bit (-1..1 in steps of 2), got 0",
        ),
        (
            lambda: from_bits(np.zeros((1, 3)), TERNARY),
            "from_bits: ternary 2 bit (-1..1) needs 2 bits on the last axis, got shape (1, 3)",
        ),
        (lambda: from_bits(np.array([[0, 1]]), TERNARY), "from_bits: values must be ternary 2 bit (-1..1), got -2"),
        (lambda: from_bits(np.array([[0, 3]]), signed(2)), "from_bits: bits must be 0 or 1, got 3"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with value_error(message):
        call()
