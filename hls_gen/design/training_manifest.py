"""The manifest of a training machine: what its build says about the hardware.

It lies beside the bitstream, as the inference engine's does (manifest.py), and the driver takes the machine's
parameters, register offsets and rules from it.
"""

from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

from bitloom.golden.discrete.machine.faults import FAULTS
from bitloom.golden.discrete.machine.parameters import UNIT_CHOICES, MachineParameters
from bitloom.golden.discrete.word import WordFormat
from bitloom.golden.names import check_name
from bitloom.golden.reading.file import naming

from .headers import ErrorCode
from .manifest_parts import CoreManifest, check_interface, read_errors, read_registers
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


@dataclass(frozen=True, kw_only=True)
class TrainingManifest(CoreManifest):
    """The manifest of a training machine, checked."""

    ident: ClassVar[int] = IDENT
    stream_bits: ClassVar[int] = STREAM_BITS
    counters: ClassVar[tuple[str, ...]] = COUNTERS

    name: str
    """The build's name."""
    machine: MachineParameters
    """Parameters of the machine that was built."""
    registers: tuple[Register, ...] = REGISTERS
    errors: tuple[ErrorCode, ...] = tuple(ErrorCode(fault.code, fault.name, fault.rule) for fault in FAULTS)
    vlnv: str = VLNV

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
        return cls(
            name=title,
            machine=_machine(top.inner("machine")),
            digest=top.digest("digest"),
            registers=registers,
            errors=read_errors(top),
            vlnv=vlnv,
        )


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
