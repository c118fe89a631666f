"""Reading of the parts that manifests of inference engines and of training machines have in common: registers and error
codes."""

from collections.abc import Iterable, Sequence
from typing import Any

from bitloom.golden.names import check_name

from .fields import Field
from .headers import ErrorCode
from .reader import Reader
from .registers import ACCESS, ADDRESS_BITS, Register

FIELD_KEYS = ("name", "lsb", "width", "description")
"""Keys of a register's field in a manifest."""
REGISTER_SPACE = 1 << ADDRESS_BITS
"""Bytes of the AXI4-Lite address space."""


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
