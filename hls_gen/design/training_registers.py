"""The register map of the training machine; names and offsets are the inference engine's where both have a register.

The hardware decodes these offsets (hls_gen/rtl/training/registers.py), the machine's manifest carries the map, and the
driver finds registers by name.
"""

from .fields import Field, named
from .registers import DIGEST_REGISTERS, VERSION_REGISTER, Register

IDENT = 0x424C5431
"""Content of register IDENT: "BLT1" in ASCII, by which the driver knows the machine."""
VERSION = {"MAJOR": 0, "MINOR": 1, "PATCH": 0}
"""Version of the interface between driver and machine: fields of register VERSION."""
REGISTERS = (
    Register("IDENT", 0x000, "RO", f'0x{IDENT:08X}, "BLT1"'),
    VERSION_REGISTER,
    *(
        Register(f"DIGEST_{k}", 0x008 + 4 * k, "RO", f"bytes {4 * k}..{4 * k + 3} of the machine's digest")
        for k in range(DIGEST_REGISTERS)
    ),
    Register(
        "GEOMETRY",
        0x018,
        "RO",
        "shape of the machine",
        (
            Field("SLAVES", 0, 8, "slaves"),
            Field("WORD_BITS", 8, 8, "bits of a word"),
            Field("FRACTION", 16, 8, "bits of its fraction"),
            Field("CODE_BITS", 24, 8, "bits of the widest code"),
        ),
    ),
    Register("SCRATCH", 0x01C, "RW", "gives back what was written: to try the bus"),
    Register(
        "CONTROL",
        0x020,
        "RW",
        "control",
        (
            Field("SOFT_RESET", 1, 1, "write 1: reset, clears itself"),
            Field("CLEAR_COUNTERS", 2, 1, "write 1: counters to 0, clears itself"),
        ),
    ),
    Register(
        "STATUS",
        0x024,
        "RO",
        "status",
        (Field("IDLE", 0, 1, "no packet has begun"), Field("ERROR", 1, 1, "a fault has stopped the machine")),
    ),
    Register("ERROR_CODE", 0x028, "RO", "which rule was broken; 0 = none"),
    Register("ERROR_PLACE", 0x02C, "RO", "address of the instruction at fault"),
    Register(
        "IRQ_ENABLE",
        0x040,
        "RW",
        "enabled interrupts",
        (Field("RESULT", 0, 1), Field("ERROR", 1, 1), Field("END", 2, 1)),
    ),
    Register(
        "IRQ_STATUS",
        0x044,
        "RW1C",
        "pending interrupts",
        (
            Field("RESULT", 0, 1, "a word with tlast has left"),
            Field("ERROR", 1, 1, "a rule was broken"),
            Field("END", 2, 1, "a program has ended"),
        ),
    ),
    Register("CYCLES", 0x050, "RO", "cycles in which a program runs, since CLEAR_COUNTERS"),
    Register("RUNS", 0x054, "RO", "programs that have ended"),
    Register("WORDS_IN", 0x058, "RO", "stream words taken"),
    Register("WORDS_OUT", 0x05C, "RO", "stream words given"),
    Register("ARRAY_BEATS", 0x060, "RO", "cycles with a beat for the slaves"),
    Register("VECTOR_BEATS", 0x064, "RO", "results of the master's own arithmetic"),
)
"""All registers, by offset."""
COUNTERS = ("CYCLES", "RUNS", "WORDS_IN", "WORDS_OUT", "ARRAY_BEATS", "VECTOR_BEATS")
"""Registers that count, and wrap at 2^32."""


def training_register(name: str) -> Register:
    """The register of that name; KeyError with the names that exist."""
    return named(REGISTERS, name, "register")
