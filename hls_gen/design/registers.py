"""The register map: what the registers of a design are called, where they lie and what their bits mean.

The hardware decodes these offsets (hls_gen/rtl/shell/registers.py), the manifest carries the map, and the driver and
the simulation find registers by name. Reference: docs/reference/device.md, "Registers".
"""

from dataclasses import asdict, dataclass
from typing import Any

from .design import Design
from .fields import Field, named
from .loader import STATE_BITS
from .npu import Npu
from .ports import INLET_BITS
from .widths import LAYER_BITS

IDENT = 0x424C4D31
"""Content of register IDENT: "BLM1" in ASCII, by which the driver knows that a core is bitloom's."""
VERSION = {"MAJOR": 0, "MINOR": 2, "PATCH": 0}
"""Version of the interface between driver and hardware: fields of register VERSION."""
OWNER_BITS = 16
"""Width of register OWNER."""
ADDRESS_BITS = 12
"""Width of an AXI4-Lite address: 4 KB, the least that Vivado's address editor assigns to a core."""
NPU_BASE, NPU_STRIDE = 0x100, 0x40
"""Byte offset of the registers of NPU 0, and from one NPU's registers to those of the next one."""
DIGEST_REGISTERS = 4
"""Registers that show the design's digest, 4 of its bytes each: 16 bytes tell designs apart."""
ACCESS = ("RO", "RW", "RW1C")
"""Ways of access: read only; read and write; read, and write 1 to clear."""


@dataclass(frozen=True)
class Register:
    """A 32-bit register."""

    name: str
    """Name, used once in the map."""
    offset: int
    """Byte offset in the AXI4-Lite address space, a multiple of 4."""
    access: str
    """One of ACCESS."""
    description: str = ""
    """Meaning of the register's value, in a few words."""
    fields: tuple[Field, ...] = ()
    """Its parts, low bits first; () where the register is one number."""

    def field(self, name: str) -> Field:
        """The field of that name; KeyError, which lists the fields that there are, if there is none."""
        return named(self.fields, name, f"register {self.name}: field")

    def to_dict(self) -> dict[str, Any]:
        """JSON data for the manifest."""
        return {**asdict(self), "fields": [asdict(f) for f in self.fields]}


CONTROL = Register(
    "CONTROL",
    0x020,
    "RW",
    "control",
    (
        Field("START", 0, 1, "frames may enter"),
        Field("SOFT_RESET", 1, 1, "write 1: reset, clears itself"),
        Field("CLEAR_COUNTERS", 2, 1, "write 1: counters to 0, clears itself"),
    ),
)
"""The register by which the host starts, resets and clears."""

VERSION_REGISTER = Register(
    "VERSION",
    0x004,
    "RO",
    "of the interface between driver and hardware",
    (Field("PATCH", 0, 8), Field("MINOR", 8, 8), Field("MAJOR", 16, 16)),
)
"""The register that says which interface the hardware has; where it stands is the same in all of them."""

COMMON = (
    Register("IDENT", 0x000, "RO", f'0x{IDENT:08X}, "BLM1"'),
    VERSION_REGISTER,
    *(
        Register(f"DIGEST_{k}", 0x008 + 4 * k, "RO", f"bytes {4 * k}..{4 * k + 3} of the design's digest")
        for k in range(DIGEST_REGISTERS)
    ),
    Register(
        "GEOMETRY",
        0x018,
        "RO",
        "shape of the design",
        (Field("NPUS", 0, 8, "NPUs"), Field("STREAM_BITS", 8, 8, "stream width")),
    ),
    Register("SCRATCH", 0x01C, "RW", "gives back what was written: to try the bus"),
    CONTROL,
    Register(
        "STATUS",
        0x024,
        "RO",
        "status",
        (
            Field("IDLE", 0, 1, "no frame in flight"),
            Field("ERROR", 1, 1, "a packet was malformed"),
            Field("LOADED", 2, 1, "a network is loaded"),
            Field("LOADER_STATE", 4, STATE_BITS, "state of the loader"),
        ),
    ),
    Register("ERROR_CODE", 0x028, "RO", "which rule a packet broke; 0 = none"),
    Register("ERROR_HEADER", 0x02C, "RO", "word 0 of that packet"),
    Register("ERROR_ADDRESS", 0x030, "RO", "its word 1"),
    Register("ERROR_LENGTH", 0x034, "RO", "its word 2"),
    Register("SIGNATURE", 0x038, "RO", "signature of the parameters that were loaded since the last reset"),
    Register(
        "OWNER",
        0x03C,
        "RW",
        "who has loaded them: a number that the driver writes, 0 from a reset or a LOAD on",
        (Field("OWNER", 0, OWNER_BITS),),
    ),
    Register("IRQ_ENABLE", 0x040, "RW", "enabled interrupts", (Field("RESULT", 0, 1), Field("ERROR", 1, 1))),
    Register(
        "IRQ_STATUS",
        0x044,
        "RW1C",
        "pending interrupts",
        (Field("RESULT", 0, 1, "a word with tlast has left"), Field("ERROR", 1, 1, "an error was found")),
    ),
    Register("CYCLES", 0x050, "RO", "cycles with a frame in flight, since CLEAR_COUNTERS"),
    Register("FRAMES", 0x054, "RO", "frames whose results have left"),
    Register("WORDS_IN", 0x058, "RO", "stream words taken"),
    Register("WORDS_OUT", 0x05C, "RO", "stream words given"),
)
"""Registers that every design has once, by offset."""

COUNTER_BITS = 32
"""Width of a counter, which wraps: a register's."""
DESIGN_COUNTERS = ("CYCLES", "FRAMES", "WORDS_IN", "WORDS_OUT")
"""Registers of COMMON that count."""

STATE = (
    Field("ARRAY_LAYER", 0, LAYER_BITS, "layer after the one being sequenced"),
    Field("POOL_LAYER", 8, LAYER_BITS, "the same in the pool sequencer"),
    Field("RUN", 16, 1, "the NPU is out of reset"),
    Field("WAITS_INPUT", 17, 1),
    Field("WAITS_ROOM", 18, 1),
    Field("HOST_VALID", 19, 1, "a word of a frame has come"),
    Field("RING_VALID", 20, 1, "a word of the NPU before has come"),
    Field("LOOP_VALID", 21, 1, "a word of the map store has come"),
    Field("RING_BLOCKED", 22, 1, "a word for the NPU after is not taken"),
    Field("LOOP_BLOCKED", 23, 1, "a word for the map store is not taken"),
    Field("HOST_BLOCKED", 24, 1, "a map word for the host is not taken"),
)
"""Fields of an NPU's register STATE that all NPUs have, but for the inlet, which follows them."""


def state_fields(npu: Npu) -> tuple[Field, ...]:
    """Fields of an NPU's register STATE, low bits first, without gaps."""
    fields = [*STATE, Field("INLET", 25, INLET_BITS, f"whose words are taken now: {npu.source_places}")]
    further = [("WAITS_WEIGHTS", "")] if npu.loader.stream_weights else []
    if npu.has_skip:
        to_inlet = ("SKIP_VALID", "a word of the skip store has come for the convolution")
        further += [
            *([to_inlet] if npu.forks_maps else []),
            ("SKIP_BLOCKED", "a word for the skip store is not taken"),
            ("WAITS_SKIPPED", "the addition waits for a word of the skip store"),
        ]
    for name, description in further:
        fields.append(Field(name, fields[-1].lsb + fields[-1].width, 1, description))
    return tuple(fields)


def state_bits(npu: Npu) -> int:
    """Width of what an NPU's register STATE shows."""
    return sum(field.width for field in state_fields(npu))


def npu_registers(npu: Npu, n: int) -> list[Register]:
    """The registers of one NPU.

    Parameters
    ----------
    npu
        The NPU.
    n
        Its number in the design.

    Returns
    -------
    list of Register
        By offset, but that of the counter of waits for weights comes last.
    """
    base = NPU_BASE + NPU_STRIDE * n
    registers = [
        Register(f"NPU{n}_LANES", base, "RO", "array", (Field("KFP", 0, 16), Field("KGP", 16, 16))),
        Register(f"NPU{n}_WIDTHS", base + 0x04, "RO", "narrow units", (Field("PFP", 0, 16), Field("OL", 16, 16))),
        Register(f"NPU{n}_BEATS", base + 0x10, "RO", "cycles in which the array was fed"),
        Register(f"NPU{n}_WAIT_INPUT", base + 0x14, "RO", "cycles in which the next word had not arrived"),
        Register(f"NPU{n}_WAIT_ROOM", base + 0x18, "RO", "cycles without room for results"),
        Register(f"NPU{n}_WAIT_TABLE", base + 0x1C, "RO", "cycles in which the sequencer had no tap ready"),
        Register(
            f"NPU{n}_STATE",
            base + 0x20,
            "RO",
            "where the sequencers stand",
            state_fields(npu),
        ),
    ]
    if npu.loader.stream_weights:
        what = "cycles in which a layer's weights had not arrived"
        registers.append(Register(f"NPU{n}_WAIT_WEIGHTS", base + 0x24, "RO", what))
    if npu.array.one_memory:
        what = "cycles in which the one memory was read for features"
        registers.append(Register(f"NPU{n}_WAIT_MEMORY", base + 0x24, "RO", what))
    return registers


def counter_name(n: int, pulse: str) -> str:
    """Name of the register that counts a pulse of NPU ``n``, one of ``Npu.pulses``: NPU0_BEATS, NPU0_WAIT_INPUT."""
    return f"NPU{n}_{'BEATS' if pulse == 'beat' else pulse.upper()}"


def shows_progress(name: str) -> bool:
    """Whether a register counts what moves only while the device gets on: words, frames or beats, but not time."""
    return (name in DESIGN_COUNTERS and name != "CYCLES") or name.endswith("_BEATS")


def counter_names(design: Design) -> tuple[str, ...]:
    """Names of all registers that count, and wrap at 2^32: those of the design, then those of each NPU."""
    of_npus = [counter_name(n, pulse) for n, npu in enumerate(design.npus) for pulse in npu.pulses]
    return (*DESIGN_COUNTERS, *of_npus)


def register_map(design: Design) -> list[Register]:
    """All registers of a design.

    Parameters
    ----------
    design
        The design.

    Returns
    -------
    list of Register
        Those of COMMON, then those of each NPU.
    """
    return [*COMMON, *(register for n, npu in enumerate(design.npus) for register in npu_registers(npu, n))]
