"""Protocol buffers taken apart for damage: fields at any depth lost, doubled, moved, or with other content.

    field = (number << 3 | type) as varint, then: type 0 a varint; 1, 5 eight or four bytes; 2 a length and content

Lengths around a changed field are written anew, so that the damage reaches what reads its content.
"""

import numpy as np

WireField = tuple[int, int, "int | bytes"]
"""Number, wire type, and value: an integer for varints, else bytes."""
INTEGERS = (0, 1, 2, 7, 127, 1 << 20, (1 << 31) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
CONTENTS = (b"", b"\0", b"\xff" * 8, b"x" * 300, b"../../x", b"Conv", b"Quant", b"\x08\x01", b"\n\n\n")
FIXED = {1: 8, 5: 4}


def damage(data: bytes, rng: np.random.Generator) -> bytes:
    """Another message, of which one field at any depth is changed."""
    fields = parsed(data)
    return data if not fields else _joined(_changed(fields, rng))


def parsed(data: bytes) -> list[WireField] | None:
    """The fields of a message; None if the bytes are none."""
    fields: list[WireField] = []
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            fields.append((key >> 3, kind, value))
            continue
        length, at = _varint(data, at) if kind == 2 else (FIXED.get(kind, -1), at)
        if length < 0 or at < 0 or at + length > len(data) or not key >> 3:
            return None
        fields.append((key >> 3, kind, data[at : at + length]))
        at += length
    return fields if at == len(data) else None


def _changed(fields: list[WireField], rng: np.random.Generator) -> list[WireField]:
    at = int(rng.integers(len(fields)))
    number, kind, value = fields[at]
    inner = parsed(value) if isinstance(value, bytes) and len(value) > 1 else None
    if inner and rng.random() < 0.8:
        return [*fields[:at], (number, kind, _joined(_changed(inner, rng))), *fields[at + 1 :]]
    what = int(rng.integers(5))
    if what == 0:
        return fields[:at] + fields[at + 1 :]
    if what == 1:
        return [*fields[: at + 1], *fields[at:]]
    if what == 2:
        other = int(rng.integers(len(fields)))
        swapped = list(fields)
        swapped[at], swapped[other] = fields[other], fields[at]
        return swapped
    if isinstance(value, int):
        content: int | bytes = INTEGERS[int(rng.integers(len(INTEGERS)))]
    elif kind == 2:
        others = [*CONTENTS, *(v for _, k, v in fields if k == 2), rng.bytes(len(value))]
        content = others[int(rng.integers(len(others)))]
    else:
        content = rng.bytes(len(value))
    return [*fields[:at], (number, kind, content), *fields[at + 1 :]]


def _joined(fields: list[WireField]) -> bytes:
    out = bytearray()
    for number, kind, value in fields:
        out += _as_varint(number << 3 | kind)
        if isinstance(value, int):
            out += _as_varint(value)
        else:
            out += (_as_varint(len(value)) if kind == 2 else b"") + value
    return bytes(out)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """An integer, and where it ends; (0, len(data) + 1) if it doesn't end."""
    value = shift = 0
    while 0 <= at < len(data) and shift < 70:
        value |= (data[at] & 127) << shift
        at = at + 1
        shift = shift + 7
        if data[at - 1] < 128:
            return value, at
    return 0, len(data) + 1


def _as_varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])
