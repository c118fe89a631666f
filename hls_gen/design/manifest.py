"""The manifest: what a build says about its hardware (docs/reference/device.md, "Manifest").

A build writes it beside the bitstream; compiler and driver read it. The driver takes register offsets, memories, packet
numbers and error codes from here and from nowhere else, so that it fits the hardware that was built, whenever that was.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from bitloom.hls_gen.design.memories.memory import Memory
from bitloom.hls_gen.design.memories.memory_map import memory_map, memory_of

from .design import STREAM_WIDTHS, Design
from .gearbox import gear, geared
from .headers import MAGIC, errors, kinds
from .manifest_parts import CoreManifest, check_interface, read_errors, read_registers
from .npu import Npu
from .reader import Reader
from .registers import IDENT, VERSION, counter_names, register_map

FORMAT = "bitloom-manifest"
FORMAT_VERSION = 1
TOP = "bitloom_top"
"""Name of the top module."""
VLNV = f"bitloom:bitloom:npu:{VERSION['MAJOR']}.{VERSION['MINOR']}"
"""Vendor, library, name and version of the core, by which it is found in an overlay."""


@dataclass(frozen=True)
class Manifest(CoreManifest):
    """The manifest of an inference engine, checked."""

    ident: ClassVar[int] = IDENT

    design: Design
    """The hardware that was built."""
    packet_magic: int
    """Top byte of a header."""
    packet_kinds: dict[str, int]
    """Numbers of the kinds LOAD, FRAME and, where weights may be streamed, WEIGHTS."""
    verilog: str = f"{TOP}.v"
    """Name of the file that the top module is in."""

    @classmethod
    def of(cls, design: Design, digest: str) -> "Manifest":
        """The manifest of a design.

        Parameters
        ----------
        design
            The design.
        digest
            64 lower-case hex digits, of its Verilog.

        Returns
        -------
        Manifest
            With registers, kinds of packets and errors as the hardware of today has them.
        """
        registers = tuple(register_map(design))
        return cls(digest, registers, errors(design), VLNV, design, MAGIC, kinds(design))

    @property
    def name(self) -> str:
        """The design's name."""
        return self.design.name

    @property
    def npus(self) -> tuple[Npu, ...]:
        """The design's NPUs."""
        return self.design.npus

    @property
    def stream_bits(self) -> int:
        """Width of the stream between host and design."""
        return self.design.stream_bits

    @property
    def counters(self) -> tuple[str, ...]:
        """Names of the registers that count."""
        return counter_names(self.design)

    @property
    def stream_words(self) -> int:
        """32-bit words in a stream word: 1 or 2."""
        return self.stream_bits // 32

    def memory(self, npu: int, name: str) -> Memory:
        """Memory ``name`` of NPU ``npu``; KeyError with the names or numbers that exist."""
        if not 0 <= npu < len(self.npus):
            raise KeyError(f"npu must be 0..{len(self.npus) - 1}, got {npu}")
        return memory_of(self.npus[npu], name)

    def padded(self, bits: int) -> int:
        """32-bit words that ``bits`` bits take in the stream, padding to the stream word included."""
        return gear(bits, self.stream_bits).pieces * self.stream_words

    def frame_payload(self, frame_words: int) -> int:
        """32-bit words that ``frame_words`` input words of NPU 0 take in the stream."""
        return geared(frame_words, self.npus[0].host_word_bits, self.stream_bits) * self.stream_words

    def to_dict(self) -> dict[str, Any]:
        """JSON data; ``from_dict`` is its inverse."""
        npus = [{**npu.to_dict(), "memories": [m.to_dict() for m in memory_map(npu)]} for npu in self.npus]
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "name": self.name,
            "digest": self.digest,
            "stream_bits": self.stream_bits,
            "npus": npus,
            "spill_words": self.design.spill_words,
            "registers": [r.to_dict() for r in self.registers],
            "packet": {"magic": self.packet_magic, "kinds": self.packet_kinds},
            "errors": {str(e.code): [e.name, e.rule] for e in self.errors},
            "vlnv": self.vlnv,
            "top": TOP,
            "verilog": self.verilog,
        }

    @classmethod
    def from_dict(cls, data: Any, name: str = "manifest") -> "Manifest":
        """Manifest of ``to_dict``'s data.

        Parameters
        ----------
        data
            Parsed JSON.
        name
            Beginning of messages.

        Returns
        -------
        Manifest
            The manifest in the data.

        Raises
        ------
        ValueError
            Something is missing or wrong; also memories that differ from what the NPU's parameters say.
        """
        top = Reader(data, name)
        top.format(FORMAT, FORMAT_VERSION)
        digest = top.digest("digest")
        packet = Reader(top.table("packet"), f"{name}: packet")
        of_kinds = Reader(packet.table("kinds"), f"{name}: packet.kinds")
        vlnv = top.vlnv()
        top.one_of("top", (TOP,))
        design = _design(top)
        registers = read_registers(top)
        if vlnv == VLNV:
            check_interface(top, registers, register_map(design))
        return cls(
            design=design,
            digest=digest,
            registers=registers,
            packet_magic=packet.number("magic", 0, 255),
            packet_kinds={kind: of_kinds.number(kind, 0, 15) for kind in kinds(design)},
            errors=read_errors(top),
            vlnv=vlnv,
            verilog=top.file_name("verilog"),
        )


def _design(top: Reader) -> Design:
    """The design that a manifest describes."""
    bits = top.number("stream_bits", 32)
    top.require(bits in STREAM_WIDTHS, "stream_bits must be 32 or 64", bits)
    entries = top.entries("npus", 1)
    name = top.text("name")
    npus = tuple(_npu(entry, f"{top.where}: npus[{i}]") for i, entry in enumerate(entries))
    try:
        return Design(name=name, stream_bits=bits, npus=npus, spill_words=top.number("spill_words"))
    except ValueError as e:
        raise ValueError(f"{top.where}: {e}") from None


def _npu(entry: Any, where: str) -> Npu:
    """An NPU by its parameters; its memories must be the ones that follow from these."""
    reader = Reader(entry, where)
    for lanes in ("kfp", "kgp", "pfp", "ol"):
        reader.number(lanes, 1)
    try:
        npu = Npu.from_dict({key: value for key, value in entry.items() if key != "memories"})
    except ValueError as e:
        raise ValueError(f"{where}: {str(e).removeprefix('npu: ')}") from None
    wanted = memory_map(npu)
    given = reader.entries("memories")
    reader.require(len(given) == len(wanted), f"memories must be {len(wanted)} by its parameters", len(given))
    for i, (memory, described) in enumerate(zip(wanted, given)):
        numbered = Reader(described, f"{where}: memories[{i}]")
        name = numbered.data.get("name")
        numbered.require(name == memory.name, f"name must be {memory.name} by the NPU's parameters", name)
        _check_memory(memory, Reader(described, f"{where}: memory {name}"))
    return npu


def _check_memory(wanted: Memory, reader: Reader) -> None:
    """ValueError unless a manifest describes this memory."""
    described = wanted.to_dict()
    for key in ("id", "depth", "width"):
        value = reader.data.get(key)
        reader.require(value == described[key], f"{key} must be {described[key]} by the NPU's parameters", value)
    parts = reader.entries("fields")
    fields = described["fields"]
    reader.require(len(parts) == len(fields), f"fields must be {len(fields)} by the NPU's parameters", len(parts))
    for i, (part, field) in enumerate(zip(parts, fields)):
        reader.require(part == field, f"fields[{i}] must be {field} by the NPU's parameters", part)
