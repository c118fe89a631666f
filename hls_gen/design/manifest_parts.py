"""What manifests of inference engines (manifest.py) and of training machines (training_manifest.py) have in common."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from bitloom.golden.names import check_name
from bitloom.golden.reading.json_text import read_json

from .fields import Field, named
from .headers import ErrorCode
from .reader import Reader
from .registers import ACCESS, ADDRESS_BITS, Register

FIELD_KEYS = ("name", "lsb", "width", "description")
"""Keys of a register's field in a manifest."""
REGISTER_SPACE = 1 << ADDRESS_BITS
"""Bytes of the AXI4-Lite address space."""
M = TypeVar("M", bound="CoreManifest")


@dataclass(frozen=True)
class CoreManifest(ABC):
    """The manifest of a core, checked: what its build says about the hardware."""

    ident: ClassVar[int]
    """Content of register IDENT."""

    digest: str
    """64 hex digits, of the generated Verilog; registers DIGEST_0 to DIGEST_3 show the first 32."""
    registers: tuple[Register, ...]
    """The register map."""
    errors: tuple[ErrorCode, ...]
    """Errors that register ERROR_CODE may name."""
    vlnv: str
    """Vendor:library:name:version of the core."""

    @property
    @abstractmethod
    def stream_bits(self) -> int:
        """Width of the stream between host and core."""

    @property
    @abstractmethod
    def counters(self) -> tuple[str, ...]:
        """Names of the registers that count."""

    def register(self, name: str) -> Register:
        """The register of that name; KeyError with the names that exist."""
        return named(self.registers, name, "register")

    def error(self, code: int) -> ErrorCode:
        """The error of that code; an unknown code becomes an error named UNKNOWN."""
        known = {e.code: e for e in self.errors}
        return known.get(code, ErrorCode(code, "UNKNOWN", "the manifest knows the error code"))

    @classmethod
    def load(cls: type[M], path: str | Path) -> M:
        """Read a manifest file.

        Parameters
        ----------
        path
            The file.

        Returns
        -------
        CoreManifest
            The manifest in the file, of the class of which this is asked.

        Raises
        ------
        FileNotFoundError
            There is no such file.
        ValueError
            It is no such manifest, or one that contradicts itself: one line with file, rule and value.
        """
        return cls.from_dict(read_json(path, "a manifest"), str(path))

    @classmethod
    @abstractmethod
    def from_dict(cls: type[M], data: Any, name: str = "manifest") -> M:
        """Manifest of the data that ``to_dict`` gives; ValueError, which begins with ``name``, if it is none."""


def _fields(reader: Reader, entries: list[Any], width: int) -> tuple[Field, ...]:
    """Fields of a register; checked for overlap and for the register's width."""
    out: list[Field] = []
    used = 0
    for i, entry in enumerate(entries):
        item = Reader(entry, f"{reader.where}: fields[{i}]")
        item.only(FIELD_KEYS)
        check_name(item.where, item.data.get("name"))
        field = Field(item.text("name"), item.number("lsb"), item.number("width", 1), str(entry.get("description", "")))
        item.require(field.lsb + field.width <= width, f"lsb + width must be <= {width}", field.lsb + field.width)
        item.require(used & field.at(-1) == 0, "fields must not overlap", field.name)
        used |= field.at(-1)
        out.append(field)
    reader.unique("field names", [f.name for f in out])
    return tuple(out)


def read_registers(top: Reader) -> tuple[Register, ...]:
    """The registers of a manifest; ValueError if one is wrong, or two have the same name or offset."""
    registers = tuple(_register(r, f"{top.where}: registers[{i}]") for i, r in enumerate(top.entries("registers", 1)))
    top.unique("registers: names", [r.name for r in registers])
    top.unique("registers: offsets", [r.offset for r in registers])
    return registers


def check_interface(top: Reader, registers: Sequence[Register], wanted: Iterable[Register]) -> None:
    """Hold the registers of a manifest to the interface that it names.

    Parameters
    ----------
    top
        The manifest.
    registers
        Its registers; there may be more than the interface has.
    wanted
        Registers of the interface.

    Raises
    ------
    ValueError
        One of the interface is missing, or has another offset, access or field than the interface.
    """
    present = {register.name: register for register in registers}
    for register in wanted:
        name = register.name
        given = present.get(register.name)
        top.require(given is not None, f"registers must have {name}", ", ".join(present))
        if given is None:
            return
        of_register = Reader({}, f"{top.where}: register {name}")
        place = f"0x{register.offset:03X}"
        of_register.require(given.offset == register.offset, f"offset must be {place}", f"0x{given.offset:03X}")
        of_register.require(given.access == register.access, f"access must be {register.access}", given.access)
        fields = {field.name: (field.lsb, field.width) for field in given.fields}
        for field in register.fields:
            bits = fields.get(field.name)
            rule = f"field {field.name} must have lsb and width {field.lsb, field.width}"
            of_register.require(bits == (field.lsb, field.width), rule, bits or "no such field")


def _register(entry: Any, where: str) -> Register:
    """A register of a manifest; ValueError, which begins with ``where``, if it is none."""
    reader = Reader(entry, where)
    name = reader.text("name")
    offset = reader.number("offset", 0, REGISTER_SPACE - 4)
    check_name(where, name)
    reader.require(offset % 4 == 0, "offset must be a multiple of 4", offset)
    access = reader.text("access")
    reader.require(access in ACCESS, f"access must be one of {', '.join(ACCESS)}", access)
    fields = _fields(reader, reader.entries("fields") if "fields" in entry else [], 32)
    return Register(name, offset, access, str(entry.get("description", "")), fields)


def read_errors(top: Reader) -> tuple[ErrorCode, ...]:
    """The error codes of a manifest; ValueError if one is wrong."""
    return tuple(_error(code, entry, f"{top.where}: errors") for code, entry in top.table("errors").items())


def _error(code: str, entry: Any, where: str) -> ErrorCode:
    """An error code of a manifest, with its name and its rule; ValueError, which begins with ``where``, if it is
    none."""
    reader = Reader({"code": code}, where)
    number = code.isascii() and code.isdigit() and len(code) < 10
    reader.require(number and int(code) > 0, "codes must be integers >= 1", code)
    texts = entry if isinstance(entry, list) and len(entry) == 2 else [None]
    ok = all(isinstance(text, str) and text and text.isprintable() for text in texts)
    reader.require(ok, f"{code} must be [name, rule]", entry)
    return ErrorCode(int(code), entry[0], entry[1])
