"""The folder of sources: what is in it, and that it is the same each time."""

import re

import pytest

from bitloom.overlay.platform.block_design import BlockDesign
from bitloom.overlay.platform.boards import board
from bitloom.overlay.platform.target import BoardTarget
from bitloom.overlay.platform.vivado import source_files
from bitloom.overlay.platform.vivado.tables import table, word
from tests.errors import value_error

from . import tcl
from .conftest import PROGRAM


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_same_text_each_time(sources):
    first = contents(sources("KV260", 64).folder)
    assert contents(sources("KV260", 64).folder) == first
    assert contents(sources("ZCU104", 64).folder) != first


def test_files(sources):
    project = sources()
    files = set(contents(project.folder))
    verilog = {f"src/{name}.v" for name in project.modules}
    named = {"README.md", "component.xml", "constraints.xdc", "digits-cnn.manifest.json", PROGRAM}
    scripts = {"Makefile", "build.tcl", "core.tcl", "design.mk", "design.tcl", "package_ip.tcl"}
    assert files - verilog == named | scripts
    assert verilog <= files
    listed = re.findall(r"^    \{(src/\S+)\}$", (project.folder / "core.tcl").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(verilog)


def test_a_board_is_needed(sources):
    project = sources()
    design = BlockDesign.from_manifest(project.manifest)
    with value_error("block design digits-cnn: sources for a bitstream need a board"):
        source_files(design, project.manifest, project.modules, {})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arch": "zynq"}, "block design digits-cnn: arch must be zynqmp on KV260, got 'zynq'"),
        ({"clock_mhz": 500.0}, "block design digits-cnn: clock_mhz must be 1..400, got 500.0"),
        ({"clock_mhz": 0.0}, "block design digits-cnn: clock_mhz must be 1..400, got 0.0"),
    ],
)
def test_rules(sources, change, message):
    manifest = sources().manifest
    with value_error(message):
        BlockDesign.from_manifest(manifest, BoardTarget(board=board("kv260"), **change))


NASTY = [
    "",
    "a b",
    "{",
    "}",
    "a{b",
    "} {",
    "{a} b",
    "$x [exit]",
    'say "x"',
    "back\\slash",
    "{\\}",
    "a\nb",
    "#",
    ";",
    "ä",
]


@pytest.mark.parametrize("backend", tcl.BACKENDS)
@pytest.mark.parametrize("text", NASTY)
def test_any_text_is_one_word(text, backend):
    heard = []
    tcl.run(
        f"set x {word(text)}\nhear $x\nhear {word(text)}\nforeach y {{{word(text)}}} {{hear $y}}",
        ["hear"],
        lambda name, *words: heard.append(words) or (0, ""),
        backend,
    )
    assert heard == [(text,)] * 3


def test_a_long_row_keeps_its_words():
    text = " ".join(["a description"] * 20)
    heard = []
    tcl.run(
        table("rows", "name, text, {key value ...}", [("a", text, {f"key_{i}": i for i in range(30)})])
        + "hear {*}[lindex $rows 0]",
        ["hear"],
        lambda name, *words: heard.append(words) or (0, ""),
    )
    ((name, told, values),) = heard
    assert (name, told) == ("a", text)
    assert tcl.split(values) == [word for i in range(30) for word in (f"key_{i}", str(i))]
