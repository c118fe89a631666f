"""docs/reference/device.md says what is generated: ports, packets, registers, error codes, keys of the files."""

import json
import re
import zipfile

import pytest

from bitloom.golden import zoo as networks
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.headers import MAGIC, errors, kinds
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.registers import register_map
from bitloom.hls_gen.design.topology import cascade
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.build.reference_designs import DIGITS

from .blocks import ROOT

TEXT = (ROOT / "docs" / "reference" / "device.md").read_text()
DESIGNS = {
    "one NPU": Design(name="one"),
    "streamed weights": Design(name="streamed", npus=(Npu.of(stream_weights=True),)),
    "two NPUs": Design(name="two", npus=cascade([Npu.of(), Npu.of()])),
}


def section(name: str) -> str:
    return TEXT.partition(f"\n## {name}\n")[2].partition("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    """Cells of the tables in ``text``, headings left out."""
    lines = [line.strip().strip("|") for line in text.splitlines()]
    cells = [[cell.strip() for cell in line.split("|")] for line in lines if "|" in line]
    rules = [k for k, row in enumerate(cells) if set("".join(row)) <= {"-"}]
    return [row for k, row in enumerate(cells) if k not in rules and k + 1 not in rules]


def documented(npus: int) -> dict[int, tuple[str, str, str]]:
    """offset -> (name, access, content) of the page's table, for so many NPUs."""
    registers: dict[int, tuple[str, str, str]] = {}
    base = 0
    for offset, name, access, content in rows(section("Registers")):
        if several := re.fullmatch(r"(0x\w+)\.\. 0x\w+", offset):
            stem, _, last = name.rpartition("_")
            for k in range(int(last.partition("..")[2]) + 1):
                registers[int(several[1], 16) + 4 * k] = (f"{stem}_{k}", access, content)
            continue
        if of_npu := re.fullmatch(r"(0x\w+) \+ 0x40 n", offset):
            base = int(of_npu[1], 16)
            offset = "+0x00"
        if not offset.startswith("+"):
            registers[int(offset, 16)] = (name, access, content)
            continue
        for n in range(npus):
            registers[base + 0x40 * n + int(offset, 16)] = (name.replace("*n*", str(n)), access, content)
    return registers


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_registers(design):
    told = documented(len(design.npus))
    if not design.npus[0].loader.stream_weights:
        told = {offset: row for offset, row in told.items() if "only with `stream_weights`" not in row[2]}
    assert {o: row[:2] for o, row in told.items()} == {r.offset: (r.name, r.access) for r in register_map(design)}


def test_fields():
    told = documented(1)
    for register in register_map(DESIGNS["one NPU"]):
        content = told[register.offset][2].replace("_", " ").lower()
        if "fields in the manifest" in content:
            continue
        for field in register.fields:
            bits = f"{field.lsb + field.width - 1}..{field.lsb}" if field.width > 1 else f"{field.lsb}"
            assert f"{bits} {field.name.replace('_', ' ').lower()}" in content, f"{register.name}.{field.name}"


def test_error_codes():
    """Each by code, name and rule; where the rule is another one with streamed weights, that too."""
    told = [(int(code), name, rule) for code, name, rule in rows(section("Packets")) if name.isupper()]
    plain, streamed = errors(DESIGNS["one NPU"]), errors(DESIGNS["streamed weights"])
    rules = [
        one.rule if one == other else f"{one.rule} (with `stream_weights`: {other.rule})"
        for one, other in zip(plain, streamed, strict=True)
    ]
    assert told == [(error.code, error.name, rule) for error, rule in zip(plain, rules, strict=True)]


def test_packets():
    kind, magic = (next(row[2] for row in rows(section("Packets")) if row[1] == bits) for bits in ("3..0", "31..24"))
    for name, number in kinds(DESIGNS["streamed weights"]).items():
        assert f"{number} {name}" in kind
    assert magic == f"0x{MAGIC:02X}"


def test_ports():
    told = set()
    for ports, *_ in rows(section("Ports of the top module")):
        for port in re.findall(r"`([^`]+)`", ports):
            stem, _, rest = port.rpartition("_")
            told |= {f"{stem}_{end}" for end in rest.split("/")} if "/" in rest else {port}
    top = generate(DESIGNS["one NPU"]).modules["bitloom_top"]
    stated_ports = set(re.findall(r"^\s*(?:input|output)\b.*?(\w+)\s*[,;]?$", top.partition(");")[0], re.M))
    assert len(stated_ports) > 20
    assert {name if not name.startswith("s_axi_") else "s_axi_*" for name in stated_ports} == told


def test_keys_of_the_files(tmp_path):
    model = networks.load("digits-cnn")
    verilog = generate(size_memories("digits", [model], DIGITS))
    for key in verilog.manifest:
        assert f'"{key}":' in section("Manifest"), key
    compile_model(model, Manifest.from_dict(verilog.manifest)).save(tmp_path / "digits.npz")
    with zipfile.ZipFile(tmp_path / "digits.npz") as archive:
        names = {name.removesuffix(".npy") for name in archive.namelist()}
        header = json.loads(archive.read("header.npy").partition(b"\n")[2])
    told = {row[0].strip("`"): row[2] for row in rows(section("Program"))}
    assert names <= set(told)
    assert set(told) - names <= {"host", "tail", "weights", "weights_before", "program_0"}
    for key in header:
        assert key in told["header"], key
