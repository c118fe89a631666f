"""Blocks of frames with streamed weights, and where their transfers end."""

import dataclasses

import numpy as np
import pytest

from bitloom.driver.frames import Frames
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.packet_text import describe_header
from bitloom.hls_gen.design.packets import frame_header, load_packet, packets, split_packets, weights_packet
from bitloom.hls_gen.design.program import Program
from tests.cases import random_images
from tests.errors import value_error

from . import design


def streaming(stream_bits: int = 32) -> Manifest:
    manifest_data = design.manifest(stream_bits)
    return dataclasses.replace(manifest_data, packet_kinds={**manifest_data.packet_kinds, "WEIGHTS": 3})


def rows(count: int, seed: int = 1) -> np.ndarray:
    words = np.random.default_rng(seed).integers(0, 1 << 32, (count, 3), np.uint32)
    words[:, 2] &= 0xFF
    return words


def program(m: Manifest, before: int = 1) -> Program:
    parts = [weights_packet(m, 0, 0, rows(3), 0), weights_packet(m, 1, 5, rows(7, 2), 1)]
    parts.append(weights_packet(m, 2, 1, rows(2, 3), 255))
    words = np.concatenate(parts)
    return dataclasses.replace(
        design.program(design.model(), m), weights=words, weights_before=sum(len(p) for p in parts[:before])
    )


def test_header_bit_by_bit():
    m = streaming()
    packet = weights_packet(m, 5, 7, rows(2), 0xAB)
    word0, word1 = 0xB1 << 24 | 0xAB << 8 | 1 << 4 | 3, 5 << 24 | 7
    assert packet[:4].tolist() == [word0, word1, 2, ~(word0 ^ word1 ^ 2) & 0xFFFFFFFF]
    assert packet[4:].tolist() == rows(2).ravel().tolist()
    text = "WEIGHTS 9 of npu 0, streamed layer 5, 2 rows from row 7, ahead 171 (header 0xB100AB13)"
    assert describe_header(m, word0, word1, 9 << 24 | 2) == text
    more = text.replace("171", "171, more to come").replace("AB13", "AB03")
    assert describe_header(m, word0 ^ 16, word1, 9 << 24 | 2) == more
    assert describe_header(design.manifest(), word0, word1, 2) == "kind 3 (header 0xB100AB13)"


def test_weights_packet_refuses():
    with value_error("npu 0 weights: rows must be >= 1 and end at row 16 at most, got 7 from row 10"):
        weights_packet(streaming(), 0, 10, rows(7), 0)
    with pytest.raises(KeyError, match=r"^'WEIGHTS'$"):
        weights_packet(design.manifest(), 0, 0, rows(1), 0)


@pytest.mark.parametrize("stream_bits", [32, 64])
@pytest.mark.parametrize("limit", [8, 9, 20, 1000])
def test_split_packets(stream_bits, limit):
    """All rows in order; ``last`` on the last packet of a layer alone."""
    m = streaming(stream_bits)
    whole = program(m).weights
    parts = list(split_packets(m, whole, limit, kind="WEIGHTS"))
    assert max(map(len, parts)) <= limit
    heads = [header for header, _, _ in packets(m, np.concatenate(parts), kind="WEIGHTS")]
    ends = [h.address + h.length for h in heads if h.last]
    assert (ends, [h.memory for h in heads if h.last]) == ([3, 12, 3], [0, 1, 255])

    def contents(words):
        parts = packets(m, words, kind="WEIGHTS")
        return [(head.memory, head.address + i, *row.tolist()) for head, _, part in parts for i, row in enumerate(part)]

    assert contents(np.concatenate(parts)) == contents(whole)


@pytest.mark.parametrize("stream_bits", [32, 64])
@pytest.mark.parametrize("before", [0, 1, 3])
def test_block(stream_bits, before):
    m = streaming(stream_bits)
    p = program(m, before)
    frames = Frames(m, p, 1000)
    images = random_images(design.model(), 3, np.random.default_rng(1))
    out = np.zeros(3 * frames.words, np.uint32)
    frames.fill(out, images, 0xABCDEF01, 254)
    cut = p.weights_before
    payload = p.pack_images(images)
    number = 254
    for k, block in enumerate(out.reshape(3, -1)):
        expected = []
        for part in (p.weights[:cut], None, p.weights[cut:]):
            if part is None:
                head = frame_header(m, p.frame_words, last=k == 2, signature=0xABCDEF01, number=number % 256)
                expected += [*head, *payload[k]]
                number += 1
                continue
            for header, _, weights in packets(m, part, kind="WEIGHTS"):
                head = dataclasses.replace(header, number=number % 256).words(m.packet_magic)
                expected += [*head, *weights.ravel()]
                number += 1
        assert block.tolist() == expected
    assert (frames.packets, number) == (4, 254 + 12)


def test_a_batch_has_a_frame_at_least(monkeypatch):
    """Of 220 bytes each; by default as many as fill a batch, where a transfer takes them."""
    m = streaming()
    monkeypatch.setattr("bitloom.driver.frames.BATCH_BYTES", 1000)
    assert Frames(m, program(m), 1000).batch(1 << 20, None) == 4
    monkeypatch.setattr("bitloom.driver.frames.BATCH_BYTES", 100)
    assert Frames(m, program(m), 1000).batch(1 << 20, None) == 1


def test_transfers_end_with_packets():
    """As long as the limit allows; packet lengths of a block: 13, 7, 25, 10 words."""
    m = streaming()
    assert Frames(m, program(m), 1000).transfers(4) == [220]
    assert Frames(m, program(m), 110).transfers(4) == [110, 220]
    assert Frames(m, program(m), 60).transfers(2) == [55, 110]
    assert Frames(m, program(m), 25).transfers(2) == [20, 45, 68, 75, 100, 110]
    for limit in (7, 9, 16, 26, 33, 54, 56, 100):
        frames = Frames(m, program(m), limit)
        ends = frames.transfers(5)
        assert ends[-1] == 5 * frames.words
        assert all(0 < b - a <= limit for a, b in zip([0, *ends], ends))


def test_without_weights():
    m = design.manifest()
    frames = Frames(m, design.program(design.model(), m), 100)
    assert (frames.words, frames.transfers(14)) == (7, [98])


def test_refuses():
    m = streaming()
    good = program(streaming())
    with value_error("dense: weights: a row of memory kernels with its header must fit a transfer of 6 words, got 7"):
        Frames(m, good, 6)
    wrong = dataclasses.replace(good, weights=load_packet(m, 0, "kernels", 0, rows(1)), weights_before=0)
    with value_error("dense: weights: packet 0: kind must be WEIGHTS, got 1"):
        Frames(m, wrong, 100)
    with value_error("dense: weights: packet 0: kind must be WEIGHTS, got 3"):
        Frames(design.manifest(), good, 100)
    with value_error("dense: weights_before must be 0..48, got 49"):
        dataclasses.replace(good, weights_before=49)
    with value_error("dense: weights must be uint32, got int64"):
        dataclasses.replace(good, weights=np.zeros(3, np.int64), weights_before=0)


def test_save_and_load(tmp_path):
    p = program(streaming())
    p.save(tmp_path / "p.npz")
    back = Program.load(tmp_path / "p.npz")
    np.testing.assert_array_equal(back.weights, p.weights)
    assert (back.weights.dtype, back.weights_before) == (np.uint32, p.weights_before)
