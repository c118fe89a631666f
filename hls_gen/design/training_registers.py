"""The register map of the training machine; names and offsets are the inference engine's where both have a register.

The hardware decodes these offsets (hls_gen/rtl/training/registers.py), the machine's manifest carries the map, and the
driver finds registers by name.
"""

from dataclasses import replace

from .fields import Field, named
from .registers import COMMON, DIGEST_REGISTERS, Register

IDENT = 0x424C5431
"""Content of register IDENT: "BLT1" in ASCII, by which the driver knows the machine."""
VERSION = {"MAJOR": 0, "MINOR": 1, "PATCH": 0}
"""Version of the interface between driver and machine: fields of register VERSION."""
_ENGINE = {register.name: register for register in COMMON}
"""The inference engine's registers by name."""
REGISTERS = (
    replace(_ENGINE["IDENT"], description=f'0x{IDENT:08X}, "BLT1"'),
    _ENGINE["VERSION"],
    *(
        replace(_ENGINE[f"DIGEST_{k}"], description=f"bytes {4 * k}..{4 * k + 3} of the machine's digest")
        for k in range(DIGEST_REGISTERS)
    ),
    replace(
        _ENGINE["GEOMETRY"],
        description="shape of the machine",
        fields=(
            Field("SLAVES", 0, 8, "slaves"),
            Field("WORD_BITS", 8, 8, "bits of a word"),
            Field("FRACTION", 16, 8, "bits of its fraction"),
            Field("CODE_BITS", 24, 8, "bits of the widest code"),
        ),
    ),
    _ENGINE["SCRATCH"],
    replace(
        _ENGINE["CONTROL"],
        fields=tuple(_ENGINE["CONTROL"].field(name) for name in ("SOFT_RESET", "CLEAR_COUNTERS")),
    ),
    replace(
        _ENGINE["STATUS"],
        fields=(Field("IDLE", 0, 1, "no packet has begun"), Field("ERROR", 1, 1, "a fault has stopped the machine")),
    ),
    replace(_ENGINE["ERROR_CODE"], description="which rule was broken; 0 = none"),
    Register("ERROR_PLACE", 0x02C, "RO", "address of the instruction at fault"),
    replace(_ENGINE["IRQ_ENABLE"], fields=(*_ENGINE["IRQ_ENABLE"].fields, Field("END", 2, 1))),
    replace(
        _ENGINE["IRQ_STATUS"],
        fields=(
            _ENGINE["IRQ_STATUS"].field("RESULT"),
            Field("ERROR", 1, 1, "a rule was broken"),
            Field("END", 2, 1, "a program has ended"),
        ),
    ),
    replace(_ENGINE["CYCLES"], description="cycles in which a program runs, since CLEAR_COUNTERS"),
    Register("RUNS", 0x054, "RO", "programs that have ended"),
    _ENGINE["WORDS_IN"],
    _ENGINE["WORDS_OUT"],
    Register("ARRAY_BEATS", 0x060, "RO", "cycles with a beat for the slaves"),
    Register("VECTOR_BEATS", 0x064, "RO", "results of the master's own arithmetic"),
)
"""All registers, by offset."""
COUNTERS = ("CYCLES", "RUNS", "WORDS_IN", "WORDS_OUT", "ARRAY_BEATS", "VECTOR_BEATS")
"""Registers that count, and wrap at 2^32."""


def training_register(name: str) -> Register:
    """The register of that name; KeyError with the names that exist."""
    return named(REGISTERS, name, "register")
