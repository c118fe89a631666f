"""IDX arrays: MNIST's own files are read, what would take memory or is damaged isn't."""

import gzip
import struct
import tracemalloc

import numpy as np
import pytest

from bitloom.golden.reading.idx import DTYPES, parse_idx, read_idx
from bitloom.golden.zoo.mnist import load_mnist
from tests import board_data
from tests.errors import value_error


def idx(kind: int, shape: tuple[int, ...], values: bytes) -> bytes:
    """IDX data as MNIST's page describes them."""
    return bytes([0, 0, kind, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + values


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize(
    ("kind", "code", "low", "high"),
    [(8, "B", 0, 255), (9, "b", -128, 127), (11, "h", -(1 << 15), (1 << 15) - 1), (12, "i", -(1 << 31), (1 << 31) - 1)],
)
def test_integers_of_every_type(kind, code, low, high, pack):
    values = [low, high, 1, 0, 2, 3]
    array = parse_idx(pack(idx(kind, (1, 2, 3), struct.pack(f">6{code}", *values))))
    assert array.tolist() == [[values[:3], values[3:]]]
    assert array.dtype.isnative
    assert array.dtype == np.dtype(code)


def test_the_files_of_mnist():
    """Their first image is a 7; how many there are of each digit is known."""
    folder = board_data.file("t10k-images-idx3-ubyte.gz").parent
    images, labels = load_mnist(folder)
    assert images.shape == (10000, 28, 28, 1)
    assert images.dtype == np.uint8
    assert (int(images.min()), int(images.max()), labels[0]) == (0, 255, 7)
    assert np.bincount(labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def test_mnist_must_be_mnist(tmp_path):
    images = tmp_path / "t10k-images-idx3-ubyte.gz"
    with pytest.raises(FileNotFoundError, match=rf"^mnist: {images.name} is not in {tmp_path} \(set BITLOOM_DATA "):
        load_mnist(tmp_path)
    images.write_bytes(gzip.compress(idx(8, (2, 28, 28), bytes(1568))))
    with value_error(f"{images}: must hold an array of shape (10000, 28, 28), got (2, 28, 28)"):
        load_mnist(tmp_path)


GOOD = idx(8, (2, 3), bytes(range(6)))


ENDED = "must be whole, unchanged gzip data, got: Compressed file ended before the end-of-stream marker was reached"
NEEDS_6 = "an IDX array of uint8 and shape (2, 3) needs 6 bytes, got"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "must be IDX data, two zero bytes and then two others, got b''"),
        (b"PK\3\4 a zip archive", "must be IDX data, two zero bytes and then two others, got b'PK\\x03\\x04'"),
        (b"\0\0\r\1", "IDX data must be integers, type 8, 9, 11 or 12, got type 13"),
        (b"\0\0\x08\0", "IDX data must have 1..4 axes, got 0"),
        (b"\0\0\x08\5" + bytes(20), "IDX data must have 1..4 axes, got 5"),
        (GOOD[:9], "the IDX header must have 8 bytes for 2 axes, got 5"),
        (idx(8, (2, 0), b""), "IDX axes must be >= 1, got shape (2, 0)"),
        (GOOD[:-1], f"{NEEDS_6} 5"),
        (GOOD + b"x", f"{NEEDS_6} more"),
        (idx(12, (3,), bytes(11)), "an IDX array of int32 and shape (3,) needs 12 bytes, got 11"),
        (gzip.compress(GOOD[:-1], mtime=0), f"{NEEDS_6} 5"),
        (gzip.compress(GOOD, mtime=0) + b"x", "must be whole, unchanged gzip data, got: Not a gzipped file (b'x')"),
        (gzip.compress(GOOD, mtime=0)[:-1], ENDED),
        (b"\x1f\x8b", ENDED),
        (
            idx(8, (1 << 20, 1 << 20), b""),
            "its values: MB of memory to read it must be <= 256 (environment variable BITLOOM_MAX_READ_MB sets another "
            "limit), got 2,097,152",
        ),
    ],
)
def test_what_is_refused(data, message):
    with value_error(message):
        parse_idx(data)


def test_a_changed_value_is_found_by_the_checksum():
    data = bytearray(gzip.compress(GOOD, 0))  # stored, so that a value is a byte of the file
    data[data.index(bytes(range(6))) + 2] ^= 1
    with pytest.raises(ValueError, match=r"^must be whole, unchanged gzip data, got: CRC check failed 0x"):
        parse_idx(bytes(data))


def test_no_more_is_unpacked_than_the_header_announces():
    """A few kilobytes that would unpack to 64 MB, behind a header for 6 values."""
    bomb = gzip.compress(GOOD) + gzip.compress(bytes(4 << 20)) * 16
    tracemalloc.start()
    with value_error("an IDX array of uint8 and shape (2, 3) needs 6 bytes, got more"):
        parse_idx(bomb)
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


def test_size_is_checked_before_memory_is_taken(monkeypatch):
    monkeypatch.setenv("BITLOOM_MAX_READ_MB", "1")
    data = gzip.compress(idx(8, (1 << 20,), bytes(1 << 20)))
    with value_error(
        "its values: MB of memory to read it must be <= 1 (environment variable BITLOOM_MAX_READ_MB sets another "
        "limit), got 2"
    ):
        parse_idx(data)
    monkeypatch.setenv("BITLOOM_MAX_READ_MB", "2")
    assert parse_idx(data).shape == (1 << 20,)


def test_a_file_is_named(tmp_path):
    (tmp_path / "a").write_bytes(GOOD)
    assert read_idx(tmp_path / "a").tolist() == [[0, 1, 2], [3, 4, 5]]
    (tmp_path / "a").write_bytes(GOOD[:-1])
    with value_error(f"{tmp_path / 'a'}: an IDX array of uint8 and shape (2, 3) needs 6 bytes, got 5"):
        read_idx(tmp_path / "a")


def test_all_types_have_a_case():
    assert list(DTYPES) == [8, 9, 11, 12]
