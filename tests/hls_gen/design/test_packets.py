import numpy as np
import pytest

from bitloom.hls_gen.design.headers import PacketHeader
from bitloom.hls_gen.design.memories.memory_map import memory_map
from bitloom.hls_gen.design.packet_text import describe_header
from bitloom.hls_gen.design.packets import cleared, frame_header, load_packet, packets, renumber, transfers
from bitloom.hls_gen.design.rows import pack_fields, pack_rows
from tests.driver.design import manifest
from tests.errors import value_error

M32, M64 = manifest(32), manifest(64)


def test_headers_bit_by_bit():
    rows = np.array([[1, 2, 3], [4, 5, 0xFF]], np.uint32)
    packet = load_packet(M32, 0, "kernels", 7, rows)
    assert packet.dtype == np.uint32
    word0 = 0xB1 << 24 | 6 << 8 | 1
    assert packet.tolist() == [word0, 7, 2, ~(word0 ^ 7 ^ 2) & 0xFFFFFFFF, 1, 2, 3, 4, 5, 0xFF]
    check = ~(0xB1000002 ^ 0xABCD ^ 784) & 0xFFFFFFFF
    assert frame_header(M32, 784, signature=0xABCD).tolist() == [0xB1000002, 0xABCD, 784, check]
    assert frame_header(M32, 784, last=True, signature=0)[0] == 0xB1000012
    assert frame_header(M32, 784, signature=0xFFFFFFFF, number=0x1FE).tolist()[1:3] == [0xFFFFFFFF, 0xFE000310]
    assert PacketHeader(3, 0, 5, 9, 2, layer=0xEF, number=7).words(0xB1).tolist()[1:3] == [0xEF000009, 0x07000002]
    assert PacketHeader(1, 0xAB, 0xCD, 0, 1).words(0xB1)[0] == 0xB1ABCD01


def test_numbers_of_many_packets():
    """The low 8 bits count; header and check are those of packets that were made so."""
    headers = np.stack([frame_header(M32, 784, signature=5)] * 4)
    renumber(headers, np.array([0, 255, 256, 300]))
    expected = [frame_header(M32, 784, signature=5, number=number) for number in (0, 255, 0, 44)]
    np.testing.assert_array_equal(headers, expected)


def test_rows_fill_stream_words():
    rows = np.array([[1, 2, 3], [4, 5, 6]], np.uint32)
    assert load_packet(M64, 0, "kernels", 0, rows)[4:].tolist() == [1, 2, 3, 0, 4, 5, 6, 0]
    assert load_packet(M64, 0, "thresholds", 0, np.array([[9]], np.uint32))[4:].tolist() == [9, 0]


@pytest.mark.parametrize(
    ("first", "rows", "message"),
    [
        (0, np.zeros((1, 2), np.uint32), "rows must be unsigned of shape (n, 3), got uint32 (1, 2)"),
        (0, np.zeros((1, 3), np.int64), "rows must be unsigned of shape (n, 3), got int64 (1, 3)"),
        (0, np.zeros((0, 3), np.uint32), "rows must be >= 1 and end at row 16 at most, got 0 from row 0"),
        (10, np.zeros((7, 3), np.uint32), "rows must be >= 1 and end at row 16 at most, got 7 from row 10"),
        (-1, np.zeros((1, 3), np.uint32), "rows must be >= 1 and end at row 16 at most, got 1 from row -1"),
        (0, np.full((1, 3), 256, np.uint32), "bits above 72 must be 0, got a row that has some set"),
    ],
)
def test_load_packet_refuses(first, rows, message):
    with value_error(f"npu 0 memory kernels: {message}"):
        load_packet(M32, 0, "kernels", first, rows)


def test_pack_rows_of_bits_equals_of_integers():
    rng = np.random.default_rng(3)
    for width in (1, 31, 32, 33, 72, 129):
        bits = rng.integers(0, 2, (5, width))
        numbers = [sum(int(b) << i for i, b in enumerate(row)) for row in bits]
        rows = pack_rows(width, bits)
        assert rows.dtype == np.uint32
        np.testing.assert_array_equal(rows, pack_rows(width, numbers))
        assert [sum(int(w) << (32 * i) for i, w in enumerate(row)) for row in rows] == numbers


def test_pack_rows_limits():
    assert pack_rows(40, [-1, 1 << 39]).tolist() == [[0xFFFFFFFF, 0xFF], [0, 0x80]]
    with value_error("rows: a value must fit 8 bits, got 256"):
        pack_rows(8, [256])
    with value_error("rows: a value must fit 8 bits, got -129"):
        pack_rows(8, [-129])
    with value_error("rows: bits must be 0 or 1 of shape (n, 3), got shape (1, 2)"):
        pack_rows(3, np.zeros((1, 2), int))


def test_pack_fields():
    memory = M32.memory(0, "network")
    rows = pack_fields(memory, {"last_layer": [60, -1], "frame_words": np.array([3, 255])})
    assert rows.tolist() == [[3, 60 << 16], [255, 0xFF << 16]]
    with value_error("memory network: last_layer must fit 8 bits, got 256 in row 1"):
        pack_fields(memory, {"last_layer": [0, 256]})
    rule = "memory network: all fields must have the same number of rows, got {'frame_last_piece': 1, 'last_layer': 2}"
    with value_error(rule):
        pack_fields(memory, {"frame_last_piece": [0], "last_layer": [1, 2]})


def some_packets(m):
    rng = np.random.default_rng(5)
    parts = []
    for name, first, n in (("kernels", 3, 13), ("thresholds", 0, 16), ("network", 0, 1)):
        width = m.memory(0, name).width
        parts.append(load_packet(m, 0, name, first, pack_rows(width, rng.integers(0, 2, (n, width)))))
    return np.concatenate(parts)


def contents(m, words):
    """(memory, row) -> words: what a device holds after these packets."""
    return {
        (memory.name, header.address + i): row.tolist()
        for header, memory, rows in packets(m, words)
        for i, row in enumerate(rows)
    }


@pytest.mark.parametrize("m", [M32, M64])
@pytest.mark.parametrize("limit", [8, 9, 17, 40, 64, 1000])
def test_transfers_hold_the_same_rows(m, limit):
    words = some_packets(m)
    parts = list(transfers(m, words, limit))
    assert max(len(part) for part in parts) <= limit
    assert contents(m, np.concatenate(parts)) == contents(m, words)
    assert len(contents(m, words)) == 30
    for part in parts:
        contents(m, part)  # each is whole packets
    if limit == 1000:
        np.testing.assert_array_equal(parts[0], words)


@pytest.mark.parametrize("m", [M32, M64])
def test_what_packets_leave_is_cleared(m):
    words = some_packets(m)
    every = {(x.name, row) for x in memory_map(m.npus[0]) for row in range(x.depth)}
    zeros, rows = contents(m, cleared(m, words)), contents(m, words)
    assert not any(any(row) for row in zeros.values())
    assert (zeros.keys() | rows.keys(), zeros.keys() & rows.keys()) == (every, set())
    runs = [(memory.name, header.address, header.length) for header, memory, _ in packets(m, cleared(m, words))]
    assert ("kernels", 0, 3) in runs  # and row 16 is the memory's end
    assert len(runs) == 1 + len(memory_map(m.npus[0])) - 3
    assert cleared(m, np.concatenate([cleared(m, words), words])).tolist() == []


def test_transfers_needs_room_for_a_row():
    with value_error("p: a row of memory kernels with its header must fit a transfer of 6 words, got 7"):
        list(transfers(M32, some_packets(M32), 6, "p"))


def edited(position, word, fix_check=True):
    words = some_packets(M32).copy()
    words[position] = word
    if fix_check:
        words[3] = ~(words[0] ^ words[1] ^ words[2])
    return words


HEADER = "must begin with a header, got"
ROWS = "memory kernels ends at row 16, got"
NUMBER = "layer and number must be 0, got"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (edited(0, 0xB2000501), f"packet 0: {HEADER} [0xB2000501, 0x00000003, 0x0000000D, 0x4DFFFAF0]"),
        (edited(1, 4, False), f"packet 0: {HEADER} [0xB1000601, 0x00000004, 0x0000000D, 0x4EFFF9F0]"),
        (some_packets(M32)[:2], f"packet 0: {HEADER} [0xB1000601, 0x00000003]"),
        (edited(0, 0xB1000602), "packet 0: kind must be LOAD, got 2"),
        (edited(0, 0xB1010601), "packet 0: npu must be 0..0, got 1"),
        (edited(0, 0xB1000F01), "packet 0: npu 0 must have the memory, got id 15"),
        (edited(2, 14), f"packet 0: {ROWS} 14 rows from row 3"),
        (edited(1, 0x01000003), f"packet 0: {NUMBER} 1 and 0"),
        (edited(2, 0xFF00000D), f"packet 0: {NUMBER} 0 and 255"),
        (edited(2, 0), f"packet 0: {ROWS} 0 rows from row 3"),
        (some_packets(M32)[:-1], "packet 2: must have 2 payload words, got 1"),
    ],
)
def test_packets_refuses(words, message):
    with value_error(f"p: {message}"):
        list(packets(M32, words, "p"))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((0xB1000601, 3, 13), "LOAD of npu 0 memory 6 (kernels), 13 rows from row 3 (header 0xB1000601)"),
        ((0xB1090F01, 3, 13), "LOAD of npu 9 memory 15, 13 rows from row 3 (header 0xB1090F01)"),
        ((0xB1000012, 0, 7), "FRAME 0 of 7 input words for parameters 0x00000000, last (header 0xB1000012)"),
        (
            (0xB1000002, 0xABCDEF01, 0x19000007),
            "FRAME 25 of 7 input words for parameters 0xABCDEF01 (header 0xB1000002)",
        ),
        ((0xB100000F, 0, 7), "kind 15 (header 0xB100000F)"),
        ((0x12345678, 1, 2), "no header [0x12345678, 0x00000001, 0x00000002]"),
    ],
)
def test_describe_header(words, text):
    assert describe_header(M32, *words) == text
