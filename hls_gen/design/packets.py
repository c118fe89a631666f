"""LOAD, WEIGHTS and FRAME packets (docs/reference/device.md, "Packets"): header words, rows, cutting, and reading back.

Everything is numpy uint32, in the order in which the DMA sends it; word 0 of a pair is the low half of a 64-bit stream
word.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.hls_gen.design.memories.memory import Memory
from bitloom.hls_gen.design.memories.memory_map import memory_map

from .headers import HEADER_WORDS, NUMBER_BITS, PacketHeader, Words, check, word_0
from .manifest import Manifest
from .packet_text import in_hex
from .widths import ROW_BITS


def frame_header(manifest: Manifest, frame_words: int, last: bool = False, *, signature: int, number: int = 0) -> Words:
    """Make the header of a FRAME packet.

    Parameters
    ----------
    manifest
        Of the design.
    frame_words
        Input words of the frame, of KFP features each.
    last
        Whether the frame is the last one of its transfer.
    signature
        Signature of the parameters that the frame is for (signature.py).
    number
        FRAME and WEIGHTS packets that came before it since the last LOAD; counted modulo 256.

    Returns
    -------
    ndarray
        (4,) uint32.
    """
    kind = manifest.packet_kinds["FRAME"]
    head = PacketHeader(kind, 0, 0, signature, frame_words, last, number=number)
    return head.words(manifest.packet_magic)


def load_packet(manifest: Manifest, npu: int, memory: str, first_row: int, rows: Array) -> Words:
    """Make a LOAD packet, which writes rows of a memory.

    Parameters
    ----------
    manifest
        Of the design.
    npu
        Number of the NPU.
    memory
        Name of its memory.
    first_row
        Row that is written first.
    rows
        (n, ceil(width / 32)) unsigned integers, word 0 the least significant; bits above ``width`` must be 0.

    Returns
    -------
    ndarray
        (words of the packet,) uint32.

    Raises
    ------
    KeyError
        There is no such NPU or memory.
    ValueError
        The rows don't fit the memory.
    """
    target = manifest.memory(npu, memory)
    head = PacketHeader(manifest.packet_kinds["LOAD"], npu, target.id, first_row, len(rows))
    return _packet(manifest, head, target, rows, f"npu {npu} memory {memory}")


def weights_packet(manifest: Manifest, layer: int, first_row: int, rows: Array, ahead: int, npu: int = 0) -> Words:
    """Make a WEIGHTS packet, which writes all kernel rows of a layer of an NPU while frames are computed.

    Its number is 0: ``renumber`` sets it when it is sent.

    Parameters
    ----------
    manifest
        Of the design.
    layer
        Number of the layer among the streamed ones of all NPUs, 0..255.
    first_row
        Row that is written first.
    rows
        As ``load_packet`` takes them.
    ahead
        How many streamed layers of the NPU before this one may be unfinished when the rows are written, 0..255.
    npu
        Number of the NPU.

    Returns
    -------
    ndarray
        (words of the packet,) uint32.

    Raises
    ------
    KeyError
        The design takes no WEIGHTS.
    ValueError
        The rows don't fit memory ``kernels``.
    """
    kind = manifest.packet_kinds["WEIGHTS"]
    head = PacketHeader(kind, npu, ahead, first_row, len(rows), last=True, layer=layer)
    return _packet(manifest, head, manifest.memory(npu, "kernels"), rows, f"npu {npu} weights")


def renumber(packets: Array, numbers: Array) -> None:
    """Give FRAME and WEIGHTS packets numbers, in place.

    Parameters
    ----------
    packets
        (..., words) uint32, a packet each, or as much of one as its header, with number 0.
    numbers
        (...) integers >= 0, of which the low 8 bits count.
    """
    shifted = (numbers % (1 << NUMBER_BITS)).astype(np.uint32) << np.uint32(ROW_BITS)
    packets[..., 2] |= shifted
    packets[..., 3] ^= shifted  # the check is the other words' XOR


def _packet(manifest: Manifest, head: PacketHeader, target: Memory, rows: Array, what: str) -> Words:
    """Put a header before rows, each padded to whole stream words; ``what`` names the memory in messages."""
    rows = np.asarray(rows)
    first_row = head.address
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


def packets(
    manifest: Manifest, words: Array, name: str = "program", kind: str = "LOAD"
) -> Iterator[tuple[PacketHeader, Memory, Words]]:
    """Take a run of LOAD or WEIGHTS packets apart.

    Parameters
    ----------
    manifest
        Of the design.
    words
        (n,) uint32, packet after packet.
    name
        Beginning of messages.
    kind
        Kind that all packets must have.

    Yields
    ------
    tuple of PacketHeader, Memory and ndarray
        A packet's header, the memory that it writes, and its rows, (rows, words of a row) uint32.

    Raises
    ------
    ValueError
        The device would refuse a packet. One line: name, number of the packet, rule and value.
    """
    position = 0
    number = 0
    while position < len(words):
        where = f"{name}: packet {number}"
        head = [int(w) for w in words[position : position + HEADER_WORDS]]
        known = len(head) == HEADER_WORDS and word_0("MAGIC").of(head[0]) == manifest.packet_magic
        if not known or head[3] != check(*head[:3]):
            raise ValueError(f"{where}: must begin with a header, got {in_hex(head)}")
        header = PacketHeader.of(*head[:3])
        if header.kind != manifest.packet_kinds.get(kind):
            raise ValueError(f"{where}: kind must be {kind}, got {header.kind}")
        if header.npu >= len(manifest.npus):
            raise ValueError(f"{where}: npu must be 0..{len(manifest.npus) - 1}, got {header.npu}")
        if kind == "LOAD" and (header.layer or header.number):
            raise ValueError(f"{where}: layer and number must be 0, got {header.layer} and {header.number}")
        target = manifest.memory(header.npu, "kernels").id if kind == "WEIGHTS" else header.memory
        memory = next((m for m in memory_map(manifest.npus[header.npu]) if m.id == target), None)
        if memory is None:
            raise ValueError(f"{where}: npu {header.npu} must have the memory, got id {header.memory}")
        if header.length < 1 or header.address + header.length > memory.depth:
            raise ValueError(
                f"{where}: memory {memory.name} ends at row {memory.depth}, "
                f"got {header.length} rows from row {header.address}"
            )
        width = manifest.padded(memory.width)
        begin = position + HEADER_WORDS
        position = begin + header.length * width
        if position > len(words):
            raise ValueError(f"{where}: must have {header.length * width} payload words, got {len(words) - begin}")
        yield header, memory, np.asarray(words[begin:position], np.uint32).reshape(header.length, width)
        number += 1


def cleared(manifest: Manifest, words: Array, name: str = "program") -> Words:
    """Make LOAD packets that write 0 to the rows of all memories that a run of LOAD packets leaves as they are, one for
    each run of such rows. Parameters and ValueError are as of ``packets``.

    Sent in front of the run, they make the content of every memory a function of the run alone: nothing is left of the
    program that was there before.
    """
    left = {(n, m.name): np.ones(m.depth + 2, bool) for n, npu in enumerate(manifest.npus) for m in memory_map(npu)}
    for header, memory, rows in packets(manifest, words, name):
        left[header.npu, memory.name][1 + header.address : 1 + header.address + len(rows)] = False
    loads = [np.zeros(0, np.uint32)]
    for (npu, memory_name), rows_left in left.items():
        rows_left[[0, -1]] = False
        edges = np.flatnonzero(rows_left[1:] != rows_left[:-1])  # begin and end of each run of rows
        for begin, end in edges.reshape(-1, 2).tolist():
            rows = np.zeros((end - begin, manifest.memory(npu, memory_name).words), np.uint32)
            loads.append(load_packet(manifest, npu, memory_name, begin, rows))
    return np.concatenate(loads)


def transfers(manifest: Manifest, words: Array, limit: int, name: str = "program") -> Iterator[Words]:
    """Cut a run of LOAD packets into transfers of at most ``limit`` words, each of which ends where a packet ends.
    Other parameters and ValueError are as of ``split_packets``."""
    waiting: list[Words] = []
    room = limit
    for packet in split_packets(manifest, words, limit, name):
        if len(packet) > room:
            yield np.concatenate(waiting)
            waiting = []
            room = limit
        waiting.append(packet)
        room -= len(packet)
    if waiting:
        yield np.concatenate(waiting)


def split_packets(
    manifest: Manifest, words: Array, limit: int, name: str = "program", kind: str = "LOAD"
) -> Iterator[Words]:
    """Cut a run of packets into packets of at most ``limit`` words: a longer one becomes several, for consecutive rows.
    Of the packets that a WEIGHTS packet becomes, only the last one has ``last``. Other parameters are as of
    ``packets``; ValueError, too, and where a row with its header is longer than ``limit``."""
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
