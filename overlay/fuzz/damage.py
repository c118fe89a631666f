"""Damage to files: at random, or where it hurts a reader of archives, arrays, pictures, JSON, XML or VCD.

    bytes of a valid file, generator --> damage --> bytes that may still be valid

Half of the time bytes are changed anywhere. Else the file is taken apart by what it is, one part is changed, and it is
put together again with right checksums, so that the damage reaches what is behind them.
"""

import gzip
import io
import json
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from . import protobuf

Damage = Callable[[bytes, np.random.Generator], bytes]
MOST_BITS = 8
"""Bits that are flipped at a time at most."""
BOMB_BYTES = 300 << 20
"""Zeros in a compressed member, more than a reader may unpack."""
NUMBERS = (0, -1, 1, 3, 255, 65535, 1 << 31, 1 << 63, 10**19, -(10**18), 0.5, 1e300)
TEXTS = ("", "x", "../../x", "/etc/passwd", "a b", "\x1b[31m", "\n", "\0", "é", "x" * 5000, "{}", "$(id)", "[/]")
RAW = ("NaN", "Infinity", "-Infinity", "1e999", "9" * 5000, '"\\ud800"', "[" * 100_000, '{"a":' * 3000, "tru", "")
"""Pieces of text that are no JSON, or JSON that must be refused."""
DTYPES = ("|O", "<f8", "<i8", ">u4", "|b1", "<U1000000", "<c16", "|V8", "<m8", "x", "<i3")
SHAPES = ("()", "(0,)", "(1,)", "(1000000000000,)", "(99999, 99999, 99999)", "(-1,)", "(2, 0)", "(1,) * 9", "(" * 200)


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """Damage a file.

    Parameters
    ----------
    data
        A valid file.
    rng
        Decides what is done.

    Returns
    -------
    bytes
        Another file, which a reader may still take.
    """
    known = [change for magic, change in _STRUCTURED if data.startswith(magic)]
    if known and rng.random() < 0.6:
        return known[0](data, rng)
    return _one(_ANYWHERE, rng)(data, rng)


def _one(choices: Any, rng: np.random.Generator) -> Any:
    """One of several choices."""
    return choices[int(rng.integers(len(choices)))]


# Bytes


def _span(data: bytes, rng: np.random.Generator, most: int = 64) -> tuple[int, int]:
    """Begin and end of a piece of up to ``most`` bytes."""
    begin = int(rng.integers(len(data) + 1))
    return begin, min(len(data), begin + int(rng.integers(1, most + 1)))


def _flip(data: bytes, rng: np.random.Generator) -> bytes:
    out = bytearray(data)
    for _ in range(int(rng.integers(1, MOST_BITS + 1)) if data else 0):
        out[int(rng.integers(len(out)))] ^= 1 << int(rng.integers(8))
    return bytes(out)


def _cut(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: int(rng.integers(len(data) + 1))]


def _insert(data: bytes, rng: np.random.Generator) -> bytes:
    begin, end = _span(data, rng)
    return data[:begin] + rng.bytes(end - begin + 1) + data[begin:]


def _remove(data: bytes, rng: np.random.Generator) -> bytes:
    begin, end = _span(data, rng)
    return data[:begin] + data[end:]


def _repeat(data: bytes, rng: np.random.Generator) -> bytes:
    begin, end = _span(data, rng, 4096)
    return data[:end] + data[begin:]


def _fill(data: bytes, rng: np.random.Generator) -> bytes:
    begin, end = _span(data, rng)
    return data[:begin] + _one((b"\0", b"\xff", b"9", b"["), rng) * (end - begin) + data[end:]


_ANYWHERE: tuple[Damage, ...] = (_flip, _flip, _cut, _insert, _remove, _repeat, _fill)


# JSON


def _json(data: bytes, rng: np.random.Generator) -> bytes:
    """Another value, type, key or raw text at one place of the tree."""
    tree = json.loads(data)
    places: list[tuple[Any, Any]] = []

    def visit(node: Any) -> None:
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        for key in keys:
            places.append((node, key))
            visit(node[key])

    visit(tree)
    if not places:
        return _flip(data, rng)
    node, key = _one(places, rng)
    what = int(rng.integers(6))
    if what == 0:
        del node[key]
    elif what == 1:
        node[key] = [node[key]]
    elif what == 2:
        node[key] = _one((None, True, [], {}, [[]], {"a": 1}), rng)
    elif what == 3:
        node[key] = _one((*NUMBERS, *TEXTS), rng)
    else:
        node[key] = "@here@"
        raw = _one(RAW, rng) if what == 4 else f'{json.dumps(_one(TEXTS, rng))}, "name": 1, "name": 2'
        return json.dumps(tree).replace('"@here@"', raw).encode("utf-8", "surrogatepass")
    return json.dumps(tree).encode()


# npy and zip


def _npy(data: bytes, rng: np.random.Generator) -> bytes:
    """Another header, or other values behind it."""
    begin = 10 + int.from_bytes(data[8:10], "little")
    header = data[10:begin].decode("latin-1")
    body = data[begin:]
    what = int(rng.integers(6))
    if what == 0:
        header = header.replace(header.split("'descr': '")[1].split("'")[0], _one(DTYPES, rng), 1)
    elif what == 1:
        old = header.split("'shape': ")[1].rsplit(", }", 1)[0]
        header = header.replace(old, _one(SHAPES, rng), 1)
    elif what == 2:
        header = header.replace("False", "True", 1)
    elif what == 3:
        header = _one(("{}", "[" * 50_000, "__import__('os')", "{'descr': '<i8'}", " " * 60_000), rng)
    elif what == 4:
        body = _one(_ANYWHERE, rng)(body, rng)
    else:
        return data[:6] + bytes([_one((0, 2, 3, 9), rng), 0]) + data[8:]
    return data[:8] + min(len(header), 65535).to_bytes(2, "little") + header.encode("latin-1")[:65535] + body


@cache
def _bomb() -> bytes:
    """A zip archive of a few hundred kilobytes with BOMB_BYTES in it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(zipfile.ZipInfo("a.npy"), bytes(BOMB_BYTES), zipfile.ZIP_DEFLATED)  # without the time of day
    return out.getvalue()


def _zip(data: bytes, rng: np.random.Generator) -> bytes:
    """A member changed, lost, doubled, renamed or compressed; or an archive that unpacks to very much."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    at = int(rng.integers(len(members)))
    name, content = members[at]
    method = zipfile.ZIP_STORED
    what = int(rng.integers(10))
    if what == 0:
        del members[at]
    elif what == 1:
        members.append((name, content))
    elif what == 2:
        members[at] = (_one(("x.npy", "../x.npy", "a" * 3000, name.upper()), rng), content)
    elif what == 3:
        method = _one((zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA), rng)
    elif what == 4:
        return _bomb()
    else:
        members[at] = (name, damaged(content, rng) if content else b"x")
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", method) as archive:
        warnings.simplefilter("ignore")  # "Duplicate name", which is meant
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, compress_type=method)
    return out.getvalue()


# Images and their labels


def _idx(data: bytes, rng: np.random.Generator) -> bytes:
    """Another type, number or size of axes, or other values behind them."""
    begin = 4 + 4 * data[3]
    what = int(rng.integers(4))
    if what == 0:
        return data[:2] + bytes([_one((0, 7, 8, 9, 11, 12, 13, 14, 255), rng)]) + data[3:]
    if what == 1:
        return data[:3] + bytes([_one((0, 1, 2, 3, 4, 5, 255), rng)]) + data[4:]
    if what == 2:
        at = 4 + 4 * int(rng.integers(data[3]))
        return data[:at] + struct.pack(">I", _one((0, 1, 1 << 16, (1 << 32) - 1), rng)) + data[at + 4 :]
    return data[:begin] + _one(_ANYWHERE, rng)(data[begin:], rng)


def _gzip(data: bytes, rng: np.random.Generator) -> bytes:
    """Other content, compressed anew; or the same one and then very much more."""
    if rng.random() < 0.1:
        return data + gzip.compress(bytes(1 << 20), mtime=0) * (BOMB_BYTES >> 20)  # members follow each other
    return gzip.compress(damaged(gzip.decompress(data), rng), 1, mtime=0)


def _png(data: bytes, rng: np.random.Generator) -> bytes:
    """A chunk with other content and a right checksum, lost, or doubled."""
    chunks = []
    at = 8
    while at < len(data):
        end = at + 12 + int.from_bytes(data[at : at + 4], "big")
        chunks.append(data[at + 4 : end - 4])
        at = end
    number = int(rng.integers(len(chunks)))
    name = chunks[number][:4]
    content = chunks[number][4:]
    if name == b"IDAT" and rng.random() < 0.5:
        content = zlib.compress(_one(_ANYWHERE, rng)(zlib.decompress(content), rng))
    else:
        content = _one(_ANYWHERE, rng)(content, rng)
    chunks[number : number + 1] = _one(([], [name + content], [name + content], [chunks[number]] * 2), rng)
    packed = (struct.pack(">I", len(c) - 4) + c + struct.pack(">I", zlib.crc32(c)) for c in chunks)
    return data[:8] + b"".join(packed)


# Text


def _xml(data: bytes, rng: np.random.Generator) -> bytes:
    """Entities, depth, another encoding, or damage anywhere."""
    entities = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">' + b"".join(
        b'<!ENTITY %c "%s">' % (98 + k, b"&%c;" % (97 + k) * 10) for k in range(9)
    )
    begin = data.find(b"<", 1)
    what = int(rng.integers(4))
    if what == 0:
        return data[:begin] + entities + b"]>" + data[begin:].replace(b">", b">&j;", 1)
    if what == 1:
        return data[:begin] + b"<a>" * 50_000 + data[begin:]
    if what == 2:
        return data.decode().encode("utf-16")
    return b'<?xml version="1.0" encoding="no-such"?>' + data[begin:]


def _vcd(data: bytes, rng: np.random.Generator) -> bytes:
    """A line lost, doubled, or with another value."""
    lines = data.split(b"\n")
    at = int(rng.integers(len(lines)))
    long = b"b" + b"1" * 100 + b" !"
    other = (b"", b"#", b"#x", b"b", b"b2 !", long, b"$scope", b"$upscope $end", b"$var", lines[at])
    lines[at : at + int(rng.integers(2))] = [_one(other, rng)]
    return b"\n".join(lines)


_STRUCTURED: tuple[tuple[bytes, Damage], ...] = (
    (b"PK\x03\x04", _zip),
    (b"\x93NUMPY\x01", _npy),
    (b"\0\0\x08", _idx),
    (b"\x1f\x8b", _gzip),
    (b"\x89PNG", _png),
    (b"\x08", protobuf.damage),
    (b"{", _json),
    (b"<", _xml),
    (b"$", _vcd),
)
"""First bytes of a file -> the function that damages files of that kind."""
