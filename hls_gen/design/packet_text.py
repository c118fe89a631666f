"""Headers of packets in words, for messages."""

from bitloom.hls_gen.design.memories.memory_map import memory_map

from .headers import PacketHeader, word_0
from .manifest import Manifest


def describe_header(manifest: Manifest, word0: int, word1: int, word2: int) -> str:
    """Describe a header in one line, for messages. Never raises.

    Parameters
    ----------
    manifest
        Of the design.
    word0, word1, word2
        Words 0 to 2 of the header.

    Returns
    -------
    str
        Kind, number, NPU, memory and rows, as far as they are legal.
    """
    header = PacketHeader.of(word0, word1, word2)
    rows = f"{header.length} rows from row {header.address}"
    raw = f"(header 0x{word0:08X})"
    if word_0("MAGIC").of(word0) != manifest.packet_magic:
        return f"no header {in_hex([word0, word1, word2])}"
    if header.kind == manifest.packet_kinds["FRAME"]:
        last = ", last" if header.last else ""
        return f"FRAME {header.number} of {header.length} input words for parameters 0x{word1:08X}{last} {raw}"
    if header.kind == manifest.packet_kinds.get("WEIGHTS"):
        part = "" if header.last else ", more to come"
        what = f"WEIGHTS {header.number} of npu {header.npu}, streamed layer {header.layer}"
        return f"{what}, {rows}, ahead {header.memory}{part} {raw}"
    if header.kind != manifest.packet_kinds["LOAD"]:
        return f"kind {header.kind} {raw}"
    memories = memory_map(manifest.npus[header.npu]) if header.npu < len(manifest.npus) else ()
    memory = f"memory {header.memory}" + "".join(f" ({m.name})" for m in memories if m.id == header.memory)
    return f"LOAD of npu {header.npu} {memory}, {rows} {raw}"


def in_hex(words: list[int]) -> str:
    """Words in hexadecimal digits, as a list."""
    return "[" + ", ".join(f"0x{w:08X}" for w in words) + "]"
