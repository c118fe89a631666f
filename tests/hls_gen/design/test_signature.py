"""Signature of parameters: as the shift register computes it, and what it notices."""

import numpy as np
import pytest

from bitloom.hls_gen.design.packets import load_packet
from bitloom.hls_gen.design.signature import START, loads_signature, signature, step
from tests.driver.design import manifest

DRAW = np.random.default_rng(7)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 64, 1001])
def test_equals_word_by_word(count):
    words = DRAW.integers(0, 1 << 32, count, np.uint32)
    value = START
    for word in words.tolist():
        value = step(value) ^ word
    assert signature(words) == value
    assert signature(words[count // 3 :], signature(words[: count // 3])) == value


def power(exponent: int) -> int:
    """x to a power, by squaring."""
    result, square = 1, 2
    while exponent:
        if exponent & 1:
            result = times(result, square)
        square = times(square, square)
        exponent = exponent >> 1
    return result


def times(a: int, b: int) -> int:
    """a * b in the field."""
    total = 0
    while b:
        total ^= a if b & 1 else 0
        a = step(a)
        b = b >> 1
    return total


@pytest.mark.parametrize("stream_bits", [32, 64])
def test_a_packet_is_its_check_word_and_its_rows(stream_bits):
    device_manifest = manifest(stream_bits)
    packets = [
        load_packet(device_manifest, 0, "kernels", 3 * k, DRAW.integers(0, 200, (3, 3), np.uint32)) for k in range(4)
    ]
    words = np.concatenate(packets)
    value = START
    for packet in packets:
        value = signature(packet[3:], value)
    assert loads_signature(device_manifest, words) == value
    first = loads_signature(device_manifest, np.concatenate(packets[:2]))
    assert loads_signature(device_manifest, np.concatenate(packets[2:]), first) == value


def test_notices_lost_doubled_and_moved_packets():
    """Also of equal length, of equal rows, and of rows that are 0."""
    device_manifest = manifest()
    packets = [
        load_packet(device_manifest, 0, "kernels", 2 * k, np.full((2, 3), min(k, 1), np.uint32)) for k in range(6)
    ]
    orders = [[*range(6)], *([k for k in range(6) if k != lost] for lost in range(6))]
    orders += [sorted([*range(6), twice]) for twice in range(6)]
    for a in range(6):
        for b in range(a):
            order = [*range(6)]
            order[a], order[b] = b, a
            orders.append(order)
    signatures = {loads_signature(device_manifest, np.concatenate([packets[k] for k in order])) for order in orders}
    assert len(signatures) == len(orders) == 28
