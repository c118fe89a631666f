"""The manifest: what a build says about its hardware (docs/reference/device.md, "Manifest").

The driver takes register offsets, memories, packet numbers and error codes from here and from nowhere else.
Keys that are not described there are kept by ``npus[n].parameters`` and ignored elsewhere.
"""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .fields import Field, named
from .gearbox import gear, geared
from .headers import ErrorCode
from .npu import renamed
from .registers import ACCESS, ADDRESS_BITS, Register

FORMAT = "bitloom-manifest"
VERSION = 1
EARLIER_FIELDS = {"hold": "hold_tuples", "tail": "hold_words"}
"""Names of memories' fields in manifests of bitloom 0.1, and the present ones."""

REGISTER_SPACE = 1 << ADDRESS_BITS
"""Bytes of the AXI4-Lite address space."""


@dataclass(frozen=True)
class Memory:
    """A memory that LOAD packets fill: ``depth`` rows of ``width`` bits. ``fields`` may be empty."""

    name: str
    id: int
    depth: int
    width: int
    fields: tuple[Field, ...] = ()

    @property
    def words(self) -> int:
        """32-bit words that hold a row: ceil(width / 32)."""
        return -(-self.width // 32)

    def field(self, name: str) -> Field:
        """The field of that name; KeyError with the names that exist."""
        return named(self.fields, name, f"memory {self.name}: field")


@dataclass(frozen=True)
class Npu:
    """One NPU: lanes (kfp, kgp, pfp, ol), memories, and everything the build says about it in ``parameters``."""

    kfp: int
    kgp: int
    pfp: int
    ol: int
    memories: tuple[Memory, ...]
    parameters: dict[str, Any] = field(compare=False)

    @property
    def host_word_bits(self) -> int:
        """Width of a word of a frame: kfp features, as the binariser takes them where there is one."""
        binariser_bits = int(self.parameters.get("binariser_bits", 0))
        return self.kfp * (binariser_bits or int(self.parameters.get("feature_bits", 1)))

    def memory(self, name: str) -> Memory:
        """The memory of that name; KeyError with the names that exist."""
        return named(self.memories, name, "memory")


@dataclass(frozen=True)
class Manifest:
    """A build's manifest, checked. ``packet_kinds`` maps LOAD, FRAME and, where weights may be streamed,
    WEIGHTS to their numbers. spill_words : of the store on the closing edge of a ring, 0: there is none."""

    name: str
    digest: str
    stream_bits: int
    npus: tuple[Npu, ...]
    registers: tuple[Register, ...]
    packet_magic: int
    packet_kinds: dict[str, int]
    errors: tuple[ErrorCode, ...]
    vlnv: str
    top: str
    verilog: str
    spill_words: int = 0

    @property
    def stream_words(self) -> int:
        """32-bit words in a stream word: 1 or 2."""
        return self.stream_bits // 32

    def register(self, name: str) -> Register:
        """The register of that name; KeyError with the names that exist."""
        return named(self.registers, name, "register")

    def memory(self, npu: int, name: str) -> Memory:
        """Memory ``name`` of NPU ``npu``; KeyError with the names or numbers that exist."""
        if not 0 <= npu < len(self.npus):
            raise KeyError(f"npu must be 0..{len(self.npus) - 1}, got {npu}")
        return self.npus[npu].memory(name)

    def error(self, code: int) -> ErrorCode:
        """The error of that code; an unknown code becomes an error named UNKNOWN."""
        known = {e.code: e for e in self.errors}
        return known.get(code, ErrorCode(code, "UNKNOWN", "the manifest knows the error code"))

    def padded(self, bits: int) -> int:
        """32-bit words that ``bits`` bits take in the stream, padding to the stream word included."""
        return gear(bits, self.stream_bits).pieces * self.stream_words

    def frame_payload(self, frame_words: int) -> int:
        """32-bit words that ``frame_words`` input words of KFP bits (NPU 0) take in the stream."""
        word = self.npus[0].host_word_bits
        return geared(frame_words, word, self.stream_bits) * self.stream_words

    @classmethod
    def load(cls, path: str | Path) -> "Manifest":
        """Read a manifest file. FileNotFoundError, or ValueError with one line: file, rule, value."""
        text = Path(path).read_bytes()
        try:
            data = json.loads(text)
        except ValueError as e:
            raise ValueError(f"{path}: a manifest must be JSON, got: {e}") from None
        return cls.from_dict(data, str(path))

    @classmethod
    def from_dict(cls, data: Any, name: str = "manifest") -> "Manifest":
        """Manifest of parsed JSON data; ValueError that begins with ``name`` if anything is wrong."""
        top = _Reader(data, name)
        top.require(data.get("format") == FORMAT, f"format must be {FORMAT}", data.get("format"))
        top.require(data.get("version") == VERSION, f"version must be {VERSION}", data.get("version"))
        digest = top.text("digest")
        top.require(
            len(digest) == 64 and set(digest) <= set("0123456789abcdef"),
            "digest must be 64 lower-case hex digits",
            digest,
        )
        bits = top.number("stream_bits", 32)
        top.require(bits in (32, 64), "stream_bits must be 32 or 64", bits)
        packet = _Reader(top.table("packet"), f"{name}: packet")
        kinds = _Reader(packet.table("kinds"), f"{name}: packet.kinds")
        vlnv = top.text("vlnv")
        top.require(len(vlnv.split(":")) == 4, "vlnv must be vendor:library:name:version", vlnv)
        npus = tuple(_npu(entry, f"{name}: npus[{i}]") for i, entry in enumerate(top.entries("npus", 1)))
        registers = tuple(_register(r, f"{name}: registers[{i}]") for i, r in enumerate(top.entries("registers", 1)))
        top.unique("registers: names", [r.name for r in registers])
        top.unique("registers: offsets", [r.offset for r in registers])
        errors = tuple(_error(code, entry, f"{name}: errors") for code, entry in top.table("errors").items())
        return cls(
            name=top.text("name"), digest=digest, stream_bits=bits, npus=npus, registers=registers,
            packet_magic=packet.number("magic", 0, 255),
            packet_kinds={
                kind: kinds.number(kind, 0, 15)
                for kind in ("LOAD", "FRAME", "WEIGHTS")
                if kind != "WEIGHTS" or kind in kinds.data
            },
            errors=errors, vlnv=vlnv, top=top.text("top"), verilog=top.text("verilog"),
            spill_words=top.number("spill_words"),
        )  # fmt: skip


class _Reader:
    """Reads typed values out of a JSON object and names the place when one is wrong."""

    def __init__(self, data: Any, where: str) -> None:
        self.where = where
        self.require(isinstance(data, dict), "must be a JSON object", data)
        self.data: dict[str, Any] = data

    def require(self, ok: bool, rule: str, value: Any) -> None:
        if not ok:
            shown = repr(value)
            raise ValueError(f"{self.where}: {rule}, got {shown if len(shown) <= 60 else shown[:57] + '...'}")

    def _get(self, key: str, kind: type, what: str) -> Any:
        value = self.data.get(key)
        self.require(isinstance(value, kind) and not isinstance(value, bool), f"{key} must be {what}", value)
        return value

    def text(self, key: str) -> str:
        value = str(self._get(key, str, "a non-empty string"))
        self.require(value != "", f"{key} must be a non-empty string", value)
        return value

    def number(self, key: str, low: int = 0, high: int | None = None) -> int:
        what = f"an integer >= {low}" if high is None else f"an integer {low}..{high}"
        value = int(self._get(key, int, what))
        self.require(value >= low and (high is None or value <= high), f"{key} must be {what}", value)
        return value

    def entries(self, key: str, least: int = 0) -> list[Any]:
        value: list[Any] = self._get(key, list, "a list")
        self.require(len(value) >= least, f"{key} must have at least {least} entries", value)
        return value

    def table(self, key: str) -> dict[str, Any]:
        value: dict[str, Any] = self._get(key, dict, "a JSON object")
        return value

    def unique(self, what: str, values: list[Any]) -> None:
        for value in values:
            self.require(values.count(value) == 1, f"{what} must be unique", value)


def _fields(reader: _Reader, entries: list[Any], width: int) -> tuple[Field, ...]:
    """Fields given as objects or as [name, lsb, width]; checked for overlap and for the row's width."""
    out: list[Field] = []
    used = 0
    for i, entry in enumerate(entries):
        if isinstance(entry, list) and len(entry) == 3:
            entry = dict(zip(("name", "lsb", "width"), entry))
        item = _Reader(entry, f"{reader.where}: fields[{i}]")
        one = Field(item.text("name"), item.number("lsb"), item.number("width", 1), str(entry.get("description", "")))
        item.require(one.lsb + one.width <= width, f"lsb + width must be <= {width}", one.lsb + one.width)
        item.require(used & one.at(-1) == 0, "fields must not overlap", one.name)
        used |= one.at(-1)
        out.append(one)
    reader.unique("field names", [f.name for f in out])
    return tuple(out)


def _register(entry: Any, where: str) -> Register:
    reader = _Reader(entry, where)
    name, offset = reader.text("name"), reader.number("offset", 0, REGISTER_SPACE - 4)
    reader.require(offset % 4 == 0, "offset must be a multiple of 4", offset)
    access = reader.text("access")
    reader.require(access in ACCESS, f"access must be one of {', '.join(ACCESS)}", access)
    fields = _fields(reader, reader.entries("fields") if "fields" in entry else [], 32)
    return Register(name, offset, access, str(entry.get("description", "")), fields)


def _npu(entry: Any, where: str) -> Npu:
    reader = _Reader(entry, where)
    memories = []
    for i, m in enumerate(reader.entries("memories", 1)):
        item = _Reader(m, f"{where}: memories[{i}]")
        width = item.number("width", 1)
        fields = _fields(item, item.entries("fields") if "fields" in m else [], width)
        fields = tuple(replace(f, name=EARLIER_FIELDS.get(f.name, f.name)) for f in fields)
        memories.append(Memory(item.text("name"), item.number("id", 0, 255), item.number("depth", 1), width, fields))
    reader.unique("memories: names", [m.name for m in memories])
    reader.unique("memories: ids", [m.id for m in memories])
    lanes = {key: reader.number(key, 1) for key in ("kfp", "kgp", "pfp", "ol")}
    parameters = {key: value for key, value in renamed(entry).items() if key != "memories"}
    return Npu(memories=tuple(memories), parameters=parameters, **lanes)


def _error(code: str, entry: Any, where: str) -> ErrorCode:
    reader = _Reader({"code": code}, where)
    reader.require(code.isascii() and code.isdigit() and int(code) > 0, "codes must be integers >= 1", code)
    ok = isinstance(entry, list) and len(entry) == 2 and all(isinstance(text, str) and text for text in entry)
    reader.require(ok, f"{code} must be [name, rule]", entry)
    return ErrorCode(int(code), entry[0], entry[1])
