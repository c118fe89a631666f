"""npy arrays: what numpy writes is read, what would take memory or run something isn't."""

import io

import numpy as np
import pytest

from bitloom.golden.reading.npy import parse_npy
from tests.errors import value_error


def npy(array, **options) -> bytes:
    out = io.BytesIO()
    np.save(out, array, **options)
    return out.getvalue()


def with_header(text: str, body: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\0" + len(text).to_bytes(2, "little") + text.encode() + body


@pytest.mark.parametrize("dtype", ["i1", "u1", ">i2", "<i8", "?", ">u4"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3, 4), (1, 0, 2)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_what_numpy_writes_is_read(dtype, shape, order):
    array = np.asarray(np.random.default_rng(1).integers(0, 2, shape), dtype, order)
    read = parse_npy(npy(array))
    np.testing.assert_array_equal(read, array)
    assert (read.shape, read.dtype) == (shape, array.dtype.newbyteorder("="))
    assert read.flags.c_contiguous
    assert read.flags.writeable


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_versions_of_the_format(version):
    out = io.BytesIO()
    np.lib.format.write_array(out, np.arange(3), version)
    assert parse_npy(out.getvalue()).tolist() == [0, 1, 2]


def test_kinds():
    assert parse_npy(npy(np.array(["a", "bc"])), "U").tolist() == ["a", "bc"]
    assert parse_npy(npy(np.array([0.5], ">f4")), "f").tolist() == [0.5]
    with value_error("values must be finite, got nan"):
        parse_npy(npy(np.array([1.0, np.nan, np.inf])), "f")


def test_text_of_numbers_that_are_no_characters():
    last = npy(np.array(["a", "\U0010ffff"]))
    assert parse_npy(last, "U").tolist() == ["a", "\U0010ffff"]
    with value_error("text must be of Unicode characters, <= 0x10ffff, got 0x110000"):
        parse_npy(last[:-4] + (0x110000).to_bytes(4, "little"), "U")
    assert parse_npy(npy(np.array([], "U1")), "U").tolist() == []


HUGE = "{'descr': '<i8', 'fortran_order': False, 'shape': (1000000, 1000000, 1000000), }"


HEADER = "must have an npy header of one plain dtype and a shape, got"
KINDS = "must be an array of truth values or integers, got dtype"
BEYOND = "the npy header must not go beyond 1024 bytes, got"
LONG_HEADER = "{'descr': '|u1', 'fortran_order': False, 'shape': (), }" + " " * 1000
MANY_AXES = "{'descr': '|u1', 'fortran_order': False, 'shape': (" + "1, " * 33 + "), }"
THREE = npy(np.arange(3, dtype=np.int16))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "must be npy data, got b''"),
        (b"PK\x03\x04 a zip archive", "must be npy data, got b'PK\\x03\\x04 a'"),
        (npy(np.arange(3))[:40], "the npy header must not go beyond the file's end, got 118 bytes"),
        (b"\x93NUMPY\x02\0\xff\xff\xff\xff" + bytes(20), f"{BEYOND} 4,294,967,295 bytes"),
        (with_header("[" * 1000), f"{HEADER} '" + "[" * 56 + "..."),
        (with_header("__import__('os')"), f"{HEADER} \"__import__('os')\""),
        (
            npy(np.zeros(1, [("a", "i4")])),
            f"{HEADER} \"{{'descr': [('a', '<i4')], 'fortran_order': False, 'shape...",
        ),
        (npy(np.array([object()]), allow_pickle=True), f"{KINDS} '|O'"),
        (npy(np.zeros(2)), f"{KINDS} '<f8'"),
        (with_header("{'descr': '<i3', 'fortran_order': False, 'shape': (), }"), f"{KINDS} '<i3'"),
        (with_header(LONG_HEADER, b"a"), f"{BEYOND} 1,055 bytes"),
        (
            with_header(HUGE),
            "an array of int64 and shape (1000000, 1000000, 1000000) needs 8,000,000,000,000,000,000 bytes, got 0",
        ),
        (THREE[:-1], "an array of int16 and shape (3,) needs 6 bytes, got 5"),
        (THREE + b"x", "an array of int16 and shape (3,) needs 6 bytes, got 7"),
        (with_header(MANY_AXES, b"a"), "must have at most 32 axes, got 33"),
    ],
)
def test_what_is_refused(data, message):
    with value_error(message):
        parse_npy(data)
