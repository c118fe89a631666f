"""The manifest of a training machine: what its build says about the hardware.

It lies beside the bitstream, as the inference engine's does (manifest.py), and the driver takes the machine's
parameters, register offsets and rules from it.
"""

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from bitloom.golden.discrete.machine.faults import FAULTS
from bitloom.golden.discrete.machine.parameters import UNIT_CHOICES, MachineParameters
from bitloom.golden.discrete.word import WordFormat
from bitloom.golden.names import check_name
from bitloom.golden.reading.file import naming
from bitloom.golden.reading.json_text import read_json

from .fields import named
from .headers import ErrorCode
from .manifest_parts import check_interface, read_errors, read_registers
from .reader import Reader
from .registers import Register
from .training import STREAM_BITS, TOP
from .training_registers import COUNTERS, IDENT, REGISTERS, VERSION

FORMAT = "bitloom-training-manifest"
FORMAT_VERSION = 1
VLNV = f"bitloom:bitloom:training:{VERSION['MAJOR']}.{VERSION['MINOR']}"
"""Vendor, library, name and version of the core, by which it is found in an overlay."""
SIZES = tuple(f.name for f in fields(MachineParameters) if f.type in (int, "int"))
"""Parameters that are one number."""


@dataclass(frozen=True)
class TrainingManifest:
    """The manifest of a training machine, checked."""

    name: str
    """The build's name."""
    machine: MachineParameters
    """Parameters of the machine that was built."""
    digest: str
    """64 hex digits, of the generated Verilog; registers DIGEST_0 to DIGEST_3 show the first 32."""
    registers: tuple[Register, ...] = REGISTERS
    """The register map."""
    errors: tuple[ErrorCode, ...] = tuple(ErrorCode(fault.code, fault.name, fault.rule) for fault in FAULTS)
    """Errors that register ERROR_CODE may name."""
    vlnv: str = VLNV
    """Vendor:library:name:version of the core."""

    @property
    def ident(self) -> int:
        """Content of register IDENT."""
        return IDENT

    @property
    def stream_bits(self) -> int:
        """Width of the stream between host and machine."""
        return STREAM_BITS

    @property
    def counters(self) -> tuple[str, ...]:
        """Names of the registers that count."""
        return COUNTERS

    def register(self, name: str) -> Register:
        """The register of that name; KeyError with the names that exist."""
        return named(self.registers, name, "register")

    def error(self, code: int) -> ErrorCode:
        """The rule of that code; an unknown code becomes an error named UNKNOWN."""
        known = {e.code: e for e in self.errors}
        return known.get(code, ErrorCode(code, "UNKNOWN", "the manifest knows the error code"))

    def to_dict(self) -> dict[str, Any]:
        """JSON data; ``from_dict`` is its inverse."""
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "name": self.name,
            "digest": self.digest,
            "machine": asdict(self.machine),
            "stream_bits": STREAM_BITS,
            "registers": [r.to_dict() for r in self.registers],
            "errors": {str(e.code): [e.name, e.rule] for e in self.errors},
            "vlnv": self.vlnv,
            "top": TOP,
        }

    @classmethod
    def load(cls, path: str | Path) -> "TrainingManifest":
        """Read a manifest file.

        Parameters
        ----------
        path : str or Path

        Raises
        ------
        FileNotFoundError
            There is no such file.
        ValueError
            It is no manifest of a training machine, or one with impossible parameters: one line with file, rule, value.
        """
        return cls.from_dict(read_json(path, "a manifest"), str(path))

    @classmethod
    def from_dict(cls, data: Any, name: str = "manifest") -> "TrainingManifest":
        """Manifest of ``to_dict``'s data.

        Parameters
        ----------
        data
            Parsed JSON.
        name : str
            Beginning of messages.

        Raises
        ------
        ValueError
            Something is missing or wrong.
        """
        top = Reader(data, name)
        top.format(FORMAT, FORMAT_VERSION)
        bits = top.number("stream_bits")
        top.require(bits == STREAM_BITS, f"stream_bits must be {STREAM_BITS}", bits)
        vlnv = top.vlnv()
        registers = read_registers(top)
        title = top.text("name")
        with naming(name):
            check_name("training machine", title)
        if vlnv == VLNV:
            check_interface(top, registers, REGISTERS)
        top.one_of("top", (TOP,))
        return cls(title, _machine(top.inner("machine")), top.digest("digest"), registers, read_errors(top), vlnv)


def _machine(reader: Reader) -> MachineParameters:
    """The parameters that a manifest tells."""
    form = reader.inner("form")
    units = {name: reader.one_of(name, known) for name, known in UNIT_CHOICES.items()}
    values: dict[str, Any] = {**units, **{name: reader.number(name) for name in SIZES}}
    bits = form.number("bits")
    fraction = form.number("fraction")
    try:
        words = WordFormat(bits, fraction)
        return MachineParameters(form=words, **values)
    except ValueError as e:  # which says what it is of
        raise ValueError(f"{reader.where.removesuffix(': machine')}: {e}") from None
