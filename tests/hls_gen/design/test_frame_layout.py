"""Layouts by rule against plain loops and golden's bits: every bit of a frame, and every bit of a result."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitloom.golden.encoding import BIPOLAR, TERNARY, bipolar, signed, unsigned
from bitloom.golden.layer import Map
from bitloom.golden.packing import to_bits
from bitloom.hls_gen.design.frame_layout import ONE, ZERO, FrameLayout, ResultMap
from bitloom.hls_gen.design.lane_words import LaneWords
from bitloom.hls_gen.design.lanes import UNUSED
from tests.cases import random_values
from tests.networks import SEEDS, some

ENCODINGS = [
    BIPOLAR,
    TERNARY,
    bipolar(3),
    signed(8),
    unsigned(8),
    signed(5),
    unsigned(1),
    unsigned(12),
    signed(17),
    signed(62),
]


def bits_of(numbers: np.ndarray, size: int) -> list[int]:
    return [int(number) >> bit & 1 for number in numbers for bit in range(size)]


@some(150)
@given(st.integers(1, 20), st.integers(1, 32), st.integers(0, 40), st.sampled_from([32, 64]), st.integers(1, 7), SEEDS)
def test_words_of_lanes(lanes, lane_bits, spare, stream_bits, count, seed):
    """Each bit where a loop puts it: words side by side in a stream word, or one in several; and back."""
    rng = np.random.default_rng(seed)
    form = LaneWords(lanes=lanes, lane_bits=lane_bits, word_bits=lanes * lane_bits + spare, stream_bits=stream_bits)
    numbers = rng.integers(0, 1 << lane_bits, (2, count, lanes)).astype(f"<u{rng.choice([4, 8])}")
    together = max(1, stream_bits // form.word_bits)
    stream = form.pack(numbers)
    assert stream.dtype == np.uint32
    for frame, words in zip(numbers, stream):
        expected: list[int] = []
        for begin in range(0, count, together):
            for word in frame[begin : begin + together]:
                expected += [*bits_of(word, lane_bits), *[0] * spare]
            expected += [0] * (-len(expected) % stream_bits)
        assert bits_of(words, 32) == expected
        assert len(words) == form.stream_words(count)
    np.testing.assert_array_equal(form.unpack(stream, count), numbers)


@pytest.mark.sample(40)
@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
@pytest.mark.parametrize("seed", range(12))
def test_frames(encoding, seed):
    """`FrameLayout.pack` puts golden's bits where `FrameLayout.bits` says; lanes in the order of the values and in
    any, wider and narrower than values, beside positions that are nowhere."""
    rng = np.random.default_rng(seed)
    source = Map(height=2, width=3, channels=int(rng.choice([1, 2, 5])), encoding=encoding)
    channels = int(rng.choice([source.channels, source.size]))
    together = int(rng.integers(1, 3))
    order = np.arange(source.size // channels) if rng.integers(2) else rng.integers(-1, source.size // channels, 7)
    positions = np.full((-(-len(order) // together), together), UNUSED, np.int32)
    positions.flat[: len(order)] = order
    values = together * channels
    bits = values * encoding.bits
    many = values + rng.integers(20)
    lanes = np.arange(0, bits, encoding.bits) if rng.integers(2) else rng.integers(ONE, bits, many)
    lanes = np.append(lanes, np.full(rng.integers(3), ZERO))
    width = int(rng.integers(1, len(lanes) + 1))
    padded = np.full(-(-len(lanes) // width) * width, ZERO, np.int32)
    padded[: len(lanes)] = lanes
    lane_bits = int(rng.choice([1, 8, 9, 20, 32]))
    word_bits = width * lane_bits + int(rng.integers(2) * 3)
    words = {"lanes": padded.reshape(-1, width), "lane_bits": lane_bits, "word_bits": word_bits}
    frame = FrameLayout(channels=channels, positions=positions, **words)
    frame.check(source)
    stream_bits = int(rng.choice([32, 64]))
    images = random_values((3, *source.shape), encoding, rng)
    before = images.copy()
    stored = to_bits(images, encoding).reshape(3, -1)
    for dtype in (np.int64, *[np.int32] * (encoding.bits <= 32), *[np.uint8] * (encoding == unsigned(8))):
        payload = frame.pack(source, images.astype(dtype, copy=False), stream_bits)
        number = frame.bits(source, stream_bits)
        assert len(number) == 32 * payload.shape[1]
        expected = np.where(number >= 0, stored[:, number], number == ONE)
        np.testing.assert_array_equal(np.unpackbits(payload.view(np.uint8), axis=1, bitorder="little"), expected)
    np.testing.assert_array_equal(images, before)


@pytest.mark.parametrize(
    ("kind", "lane_bits"), [("raw", 32), ("bits", 1), ("signed", 8), ("signed", 9), ("signed", 16)]
)
@pytest.mark.parametrize("seed", range(12))
def test_results(kind, lane_bits, seed):
    """Values of lanes where they are, in the order of the channels and in any, behind words of another map."""
    rng = np.random.default_rng(seed)
    positions, words, channels = (int(rng.integers(1, 5)) for _ in range(3))
    several = int(rng.integers(1, 4)) if kind == "bits" else 1
    lanes = 1 if kind == "raw" else max(1, -(-channels * several // words) + int(rng.integers(3)))
    words = max(words, channels) if kind == "raw" else words
    places = np.arange(channels * several) if rng.integers(2) else rng.permutation(words * lanes)[: channels * several]
    stream_bits = int(rng.choice([32, 64]))
    sizes = {"first": 2 * int(rng.integers(3)), "positions": positions, "words": words}
    places = places.reshape(channels, several).astype(np.int32)
    result = ResultMap(**sizes, lanes=lanes, lane_bits=lane_bits, places=places)
    result.check(kind)
    low = -(1 << lane_bits - 1) if kind != "bits" else 0
    of_lanes = rng.integers(low, low + (1 << lane_bits), (2, positions, words * lanes))
    numbers = of_lanes & ((1 << lane_bits) - 1)
    stream = np.zeros((2, result.end(stream_bits)), np.uint32)
    form = result.lane_words(stream_bits)
    stream[:, result.first :] = form.pack(numbers.reshape(2, positions * words, lanes).astype(np.uint32))
    got = result.unpack(kind, stream, stream_bits)
    chosen = of_lanes[..., places].reshape(2, positions, channels, several)
    expected = 2 * chosen.sum(axis=3) - several if kind == "bits" else chosen[..., 0]
    np.testing.assert_array_equal(got, expected)
