"""docs/explanation/training-machine.md says what is generated: kinds of packets, registers, faults, operations."""

import re

from bitloom.golden.discrete.machine.faults import FAULTS
from bitloom.golden.discrete.machine.instruction import FUNCTIONS, OPERATIONS
from bitloom.hls_gen.design.headers import PROGRAM, RUN
from bitloom.hls_gen.design.training_registers import IDENT, REGISTERS

from .blocks import ROOT

TEXT = (ROOT / "docs" / "explanation" / "training-machine.md").read_text(encoding="utf-8")


def table(title: str) -> list[list[str]]:
    """Cells of the first table of a section, its headings left out."""
    section = TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    first = re.search(r"(^\|.*\n)+", section, re.MULTILINE)
    assert first is not None
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in first[0].splitlines()]
    return rows[2:]


def test_packets():
    assert [row[0] for row in table("Packets")] == [f"{PROGRAM} PROGRAM", f"{RUN} RUN"]


def test_faults():
    assert table("Faults") == [[str(fault.code), fault.name, fault.rule] for fault in FAULTS]


def test_every_function_is_named():
    told: dict[str, str] = {}
    for row in table("Instructions"):
        operation = row[0].partition(",")[0]
        told[operation] = f"{told.get(operation, '')} {row[1]}"
    assert list(told) == list(OPERATIONS)
    for name, operation in OPERATIONS.items():
        words = set(re.findall(r"[A-Z_]+", told[name]))
        for function in FUNCTIONS[operation]:
            what, _, of = function.partition("_")  # LOAD, STORE of neurons, weights, ...
            assert function in words or (what in words and of.lower() in told[name]), function


def test_registers():
    """Offset, name and access of each, and its fields with their bits."""
    registers = {name: (offset, access, content) for offset, name, access, content in table("Registers")}
    digests = registers.pop("DIGEST_0..3")
    assert digests[:2] == ("0x008.. 0x014", "RO")
    others = [register for register in REGISTERS if not register.name.startswith("DIGEST_")]
    assert {name: row[:2] for name, row in registers.items()} == {
        r.name: (f"0x{r.offset:03X}", r.access) for r in others
    }
    assert f"0x{IDENT:08X}" in registers["IDENT"][2]
    for register in others:
        for field in register.fields:
            bits = str(field.lsb) if field.width == 1 else f"{field.lsb + field.width - 1}..{field.lsb}"
            assert f"{bits} {field.name}" in registers[register.name][2], f"{register.name}.{field.name}"
