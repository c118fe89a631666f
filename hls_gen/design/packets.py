"""LOAD, WEIGHTS and FRAME packets (docs/reference/device.md, "Packets"): header words, rows, cutting, and reading back.

Everything is numpy uint32, in the order in which the DMA sends it; word 0 of a pair is the low half of a 64-bit stream
word.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .headers import HEADER_WORDS, PacketHeader, Words, check
from .manifest import Manifest
from .memories import Memory

Array = NDArray[Any]


def frame_header(manifest: Manifest, frame_words: int, last: bool = False) -> Words:
    """(4,) uint32 header of a FRAME of ``frame_words`` input words of KFP bits."""
    return PacketHeader(manifest.packet_kinds["FRAME"], 0, 0, 0, frame_words, last).words(manifest.packet_magic)


def load_packet(manifest: Manifest, npu: int, memory: str, first_row: int, rows: Array) -> Words:
    """LOAD packet that writes ``rows`` from row ``first_row`` on.

    rows : (n, ceil(width / 32)) unsigned integers, word 0 the least significant; bits above ``width`` must be 0.
    KeyError if the NPU or the memory doesn't exist, ValueError if the rows don't fit it.
    """
    target = manifest.memory(npu, memory)
    head = PacketHeader(manifest.packet_kinds["LOAD"], npu, target.id, first_row, len(rows))
    return _packet(manifest, head, target, rows, f"npu {npu} memory {memory}")


def weights_packet(manifest: Manifest, npu: int, first_row: int, rows: Array, ahead: int) -> Words:
    """WEIGHTS packet with all kernel rows of a layer, as ``load_packet``.

    ahead : streamed layers that may be unfinished when they are written, 0..255.
    """
    head = PacketHeader(manifest.packet_kinds["WEIGHTS"], npu, ahead, first_row, len(rows), last=True)
    return _packet(manifest, head, manifest.memory(npu, "kernels"), rows, f"npu {npu} weights")


def _packet(manifest: Manifest, head: PacketHeader, target: Memory, rows: Array, what: str) -> Words:
    rows, first_row = np.asarray(rows), head.address
    if rows.ndim != 2 or rows.shape[1] != target.words or not np.issubdtype(rows.dtype, np.unsignedinteger):
        raise ValueError(f"{what}: rows must be unsigned of shape (n, {target.words}), got {rows.dtype} {rows.shape}")
    if len(rows) < 1 or first_row < 0 or first_row + len(rows) > target.depth:
        raise ValueError(
            f"{what}: rows must be >= 1 and end at row {target.depth} at most, got {len(rows)} from row {first_row}"
        )
    spare = 32 * target.words - target.width
    if spare and (rows[:, -1] >> np.uint32(32 - spare)).any():
        raise ValueError(f"{what}: bits above {target.width} must be 0, got a row that has some set")
    payload = np.zeros((len(rows), manifest.padded(target.width)), np.uint32)
    payload[:, : target.words] = rows
    return np.concatenate([head.words(manifest.packet_magic), payload.ravel()])


def pack_rows(width: int, values: Array | Sequence[int]) -> Words:
    """Rows of ``width`` bits as (n, ceil(width / 32)) uint32.

    values : (n, width) array of 0 and 1, column 0 the least significant bit; or n integers of any size, each in
        -2^(width - 1) .. 2^width - 1 (negative ones become two's complement).
    """
    words = -(-width // 32)
    if isinstance(values, np.ndarray) and values.ndim == 2:
        if values.shape[1] != width or ((values != 0) & (values != 1)).any():
            raise ValueError(f"rows: bits must be 0 or 1 of shape (n, {width}), got shape {values.shape}")
        padded = np.zeros((len(values), 32 * words), np.uint8)
        padded[:, :width] = values
        return np.packbits(padded, axis=1, bitorder="little").view("<u4").astype(np.uint32)
    data = bytearray()
    for value in values:
        number = int(value)
        if not -(1 << (width - 1)) <= number < 1 << width:
            raise ValueError(f"rows: a value must fit {width} bits, got {number}")
        data += (number & ((1 << width) - 1)).to_bytes(4 * words, "little")
    return np.frombuffer(bytes(data), "<u4").reshape(-1, words).astype(np.uint32)


def pack_fields(memory: Memory, values: Mapping[str, Array | Sequence[int]]) -> Words:
    """Rows of ``memory`` from one sequence of n integers per field; fields that are not named are 0.

    Each integer must be in -2^(w - 1) .. 2^w - 1 for its field's width w. (n, memory.words) uint32.
    """
    counts = {name: len(column) for name, column in values.items()}
    if len(set(counts.values())) != 1:
        raise ValueError(f"memory {memory.name}: all fields must have the same number of rows, got {counts}")
    rows = [0] * next(iter(counts.values()))
    for name, column in values.items():
        target = memory.field(name)
        for i, value in enumerate(column):
            number = int(value)
            if not -(1 << (target.width - 1)) <= number < 1 << target.width:
                raise ValueError(f"memory {memory.name}: {name} must fit {target.width} bits, got {number} in row {i}")
            rows[i] |= target.at(number)
    return pack_rows(memory.width, rows)


def packets(
    manifest: Manifest, words: Array, name: str = "program", kind: str = "LOAD"
) -> Iterator[tuple[PacketHeader, Memory, Words]]:
    """Take a run of LOAD or WEIGHTS packets apart: (header, memory, (rows, words per row) uint32) each.

    ValueError that begins with ``name`` and the packet's number if the device would refuse one.
    """
    position, number = 0, 0
    while position < len(words):
        where, head = f"{name}: packet {number}", [int(w) for w in words[position : position + HEADER_WORDS]]
        if len(head) < HEADER_WORDS or head[0] >> 24 != manifest.packet_magic or head[3] != check(*head[:3]):
            raise ValueError(f"{where}: must begin with a header, got {_hex(head)}")
        header = PacketHeader.of(*head[:3])
        if header.kind != manifest.packet_kinds.get(kind):
            raise ValueError(f"{where}: kind must be {kind}, got {header.kind}")
        if header.npu >= len(manifest.npus):
            raise ValueError(f"{where}: npu must be 0..{len(manifest.npus) - 1}, got {header.npu}")
        target = manifest.memory(header.npu, "kernels").id if kind == "WEIGHTS" else header.memory
        found = [m for m in manifest.npus[header.npu].memories() if m.id == target]
        if not found:
            raise ValueError(f"{where}: npu {header.npu} must have the memory, got id {header.memory}")
        if header.length < 1 or header.address + header.length > found[0].depth:
            raise ValueError(
                f"{where}: memory {found[0].name} ends at row {found[0].depth}, "
                f"got {header.length} rows from row {header.address}"
            )
        width = manifest.padded(found[0].width)
        begin = position + HEADER_WORDS
        position = begin + header.length * width
        if position > len(words):
            raise ValueError(f"{where}: must have {header.length * width} payload words, got {len(words) - begin}")
        yield header, found[0], np.asarray(words[begin:position], np.uint32).reshape(header.length, width)
        number += 1


def transfers(manifest: Manifest, words: Array, limit: int, name: str = "program") -> Iterator[Words]:
    """Cut a run of LOAD packets into transfers of at most ``limit`` words, each ending where a packet ends.

    A packet that is longer than ``limit`` becomes several packets for consecutive rows. ValueError if a single row
    doesn't fit, or as ``packets``.
    """
    waiting: list[Words] = []
    room = limit
    for piece in pieces(manifest, words, limit, name):
        if len(piece) > room:
            yield np.concatenate(waiting)
            waiting, room = [], limit
        waiting.append(piece)
        room -= len(piece)
    if waiting:
        yield np.concatenate(waiting)


def pieces(manifest: Manifest, words: Array, limit: int, name: str = "program", kind: str = "LOAD") -> Iterator[Words]:
    """The packets of a run, one by one; one longer than ``limit`` words becomes several for consecutive rows.

    Of the pieces of WEIGHTS only the last one has ``last``. ValueError as ``transfers``.
    """
    for header, memory, rows in packets(manifest, words, name, kind):
        most = (limit - HEADER_WORDS) // rows.shape[1]
        if most < 1:
            raise ValueError(
                f"{name}: a row of memory {memory.name} with its header must fit a transfer of {limit} words, "
                f"got {HEADER_WORDS + rows.shape[1]}"
            )
        for first in range(0, len(rows), most):
            part = rows[first : first + most]
            last = header.last and first + most >= len(rows)
            head = replace(header, address=header.address + first, length=len(part), last=last)
            yield np.concatenate([head.words(manifest.packet_magic), part.ravel()])


def describe_header(manifest: Manifest, word0: int, address: int, length: int) -> str:
    """One line about a header's words 0 to 2, for messages. Never raises."""
    header = PacketHeader.of(word0, address, length)
    raw = f"(header 0x{word0:08X})"
    if word0 >> 24 != manifest.packet_magic:
        return f"no header {_hex([word0, address, length])}"
    if header.kind == manifest.packet_kinds["FRAME"]:
        return f"FRAME of {length} input words{', last' if header.last else ''} {raw}"
    if header.kind == manifest.packet_kinds.get("WEIGHTS"):
        part = "" if header.last else ", more to come"
        return f"WEIGHTS of npu {header.npu}, {length} rows from row {address}, ahead {header.memory}{part} {raw}"
    if header.kind != manifest.packet_kinds["LOAD"]:
        return f"kind {header.kind} {raw}"
    memories = manifest.npus[header.npu].memories() if header.npu < len(manifest.npus) else ()
    memory = f"memory {header.memory}" + "".join(f" ({m.name})" for m in memories if m.id == header.memory)
    return f"LOAD of npu {header.npu} {memory}, {length} rows from row {address} {raw}"


def _hex(words: list[int]) -> str:
    return "[" + ", ".join(f"0x{w:08X}" for w in words) + "]"
