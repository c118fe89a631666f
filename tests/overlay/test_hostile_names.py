"""Names, labels and folders that mean something to a shell, to make, Tcl, XML, HTML or C++ are words like any other.

One build, of a network with the strangest name that is allowed and with labels and folders that are worse, goes through
every writer; what each wrote is read by the tool that it is for.
"""

import ast
import json
import os
import shutil
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from bitloom.golden import file
from bitloom.golden import zoo as networks
from bitloom.golden.network import Model
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.program import Program
from bitloom.hls_gen.rtl.primitives.text import Header, header_lines
from bitloom.overlay.build import build as builds
from bitloom.overlay.cli import serve
from bitloom.overlay.platform.block_design import BlockDesign
from bitloom.overlay.platform.boards import PYNQ_Z2
from bitloom.overlay.platform.vivado.tables import make_value
from bitloom.overlay.virtual.sim.verilator import build_model
from tests.errors import value_error
from tests.golden.test_names import HOSTILE, said
from tests.overlay.conftest import loop_verilog
from tests.overlay.platform.vivado import tcl
from tests.paths import SOURCES

NAME = "9.A-b_" + "c" * 58
"""As long as a name may be, with every kind of character."""
LABELS = ("<b>&amp;\"'", "$x_{^$", "[red]0[/red]", "Häuschen", "木", "a b", "{\\}", "`id`", "%s", "; rm -rf ~")
FOLDER = os.fsdecode("a $(touch pwned) `touch pwned` ; & 'x' \"y\" <z> [exec touch pwned] {w # ä".encode())
"""A folder of the user's may be called anything: also what a command line without UTF-8 makes of an umlaut."""


@pytest.fixture(scope="module")
def hostile_build(tmp_path_factory: pytest.TempPathFactory) -> tuple[builds.Build, str]:
    """The build, and what the command printed."""
    root = tmp_path_factory.mktemp("names")
    model = networks.load("digits-cnn")
    hostile = Model(replace(model.network, name=NAME, classes=LABELS), model.arrays)
    folder = root / FOLDER
    path = root / "it's $HOME; a net.npz"
    file.save(hostile, path)
    folding = ["--kfp", "8", "--kgp", "4", "--ol", "1", "--pfp", "1", "--planes", "6"]
    words = ["build", str(path), *folding, "--board", "Pynq-Z2", "--out", str(folder)]
    command = [sys.executable, "-c", "from bitloom.overlay.cli import main; main()", *words]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONPATH": str(SOURCES)})
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return builds.load(folder), os.fsdecode(done.stdout)


def test_names_and_labels_come_back(hostile_build: tuple[builds.Build, str]) -> None:
    build, _ = hostile_build
    assert list(build.programs) == [NAME]
    program = build.program(NAME)
    assert (program.name, program.classes) == (NAME, LABELS)
    manifest = Manifest.load(build.bit.with_suffix(".manifest.json"))
    assert manifest.name == build.design.name == NAME
    assert max(len(path.name.encode()) for path in build.folder.rglob("*")) < 255 - 100


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
def test_make(hostile_build: tuple[builds.Build, str], tmp_path: Path) -> None:
    build, _ = hostile_build
    assert build.sources is not None
    environment = {**os.environ, "PATH": "/usr/bin:/bin"}

    def make(*words: str) -> subprocess.CompletedProcess[str]:
        command = ["make", "-C", str(build.sources), *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    assert "BOARD=Pynq-Z2 CLOCK_MHZ=100 " in make("help").stdout
    dry = make("-n")
    assert (dry.returncode, dry.stderr) == (0, "")
    hostile = f'"; touch {tmp_path / "pwned"}; echo "`touch {tmp_path / "pwned"}`'
    assert f"BOARD={hostile} " in make("help", f"BOARD={hostile}").stdout
    refused = make("ip", f"BOARD={hostile}")
    assert refused.returncode == 2
    assert f"got {hostile}: say" in refused.stderr
    assert not list(build.folder.rglob("pwned"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("backend", tcl.BACKENDS)
def test_tcl(hostile_build: tuple[builds.Build, str], backend: str) -> None:
    build, _ = hostile_build
    assert build.sources is not None
    heard: list[tuple[str, ...]] = []
    text = "".join((build.sources / name).read_text() for name in ("design.tcl", "core.tcl"))
    forbidden = ["exec", "open", "file", "exit", "source"]
    program = text + "\nhear $name $manifest {*}$programs $core_display_name $board"
    tcl.run(program, ["hear", *forbidden], lambda name, *words: heard.append((name, *words)) or (0, ""), backend)
    names = (f"{NAME}.manifest.json", f"{NAME}.program.npz", f"bitloom: {NAME}")
    assert heard == [("hear", NAME, *names, "Pynq-Z2")]


def test_xml(hostile_build: tuple[builds.Build, str]) -> None:
    build, _ = hostile_build
    assert build.sources is not None
    hwh = ElementTree.parse(build.bit.with_suffix(".hwh")).getroot()
    assert [node.get("NAME") for node in hwh.iter("SYSTEMINFO")] == [NAME]
    component = ElementTree.parse(build.sources / "component.xml").getroot()
    assert f"bitloom: {NAME}" in [node.text for node in component.iter()]


@pytest.mark.parametrize("name", ["a\nmodule b; endmodule //", "a\rb", "a\u2028b", "ä", "\x1b[2J"])
def test_a_comment_of_verilog_is_one_line(name: str) -> None:
    header = Header("A contract.", "one a cycle", "1 cycle", {"design": name})
    with pytest.raises(ValueError, match=r"^m: a comment must be printable ASCII and begin with no tool's name, got "):
        header_lines("m", header, [])


def test_python_lines(hostile_build: tuple[builds.Build, str]) -> None:
    build, _ = hostile_build
    printed = serve._instructions(build, "127.0.0.1", 1234)
    _, _, python = printed.partition("    python3\n\n")
    calls = [node for node in ast.walk(ast.parse(textwrap.dedent(python))) if isinstance(node, ast.Call)]
    texts = {a.value for call in calls for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)}
    assert texts == {"127.0.0.1", str(build.bit.resolve()), str(build.programs[NAME].resolve())}


def test_labels_are_drawn_as_they_are() -> None:
    """Between dollars matplotlib reads formulas, and refuses wrong ones."""
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    from bitloom.overlay.show import notebook_plots

    figure = Figure()
    axes = figure.subplots(1, 3)
    notebook_plots.confusion(axes[0], np.arange(10), np.arange(10), LABELS)
    notebook_plots.scores(axes[1], np.arange(10), LABELS)
    notebook_plots.images([axes[2]], np.zeros((1, 2, 2, 1)), ["$x_{^$"])
    figure.canvas.draw()
    assert [text.get_text() for text in axes[1].get_yticklabels()] == list(LABELS)
    assert axes[2].get_title() == "$x_{^$"


@pytest.mark.parametrize("text", ["", "Pynq-Z2", "100", "a b", "a$(shell id)b", "$$", "a;b`c`"])
@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
def test_a_value_in_a_makefile(text: str, tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(f"X := {make_value(text)}\nexport X\nall:\n\t@printf '%s' \"$$X\"\n")
    done = subprocess.run(["make", "-s", "-C", str(tmp_path)], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == text


@pytest.mark.parametrize("text", ["a#b", "a\\", "a\nall: ; id", " a", "a ", "\t"])
def test_what_a_makefile_can_not_hold(text: str) -> None:
    message = f"makefile: a value must be printable and have no #, no \\ and no blank at an end, got {text!r}"
    with value_error(message):
        make_value(text)


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_nothing_else_gets_such_a_name(name: object, hostile_build: tuple[builds.Build, str]) -> None:
    build, _ = hostile_build
    program = build.program(NAME)
    manifest = json.loads(build.bit.with_suffix(".manifest.json").read_text())
    with value_error(said("design", name)):
        Design(name=name)
    with value_error(said("board", name)):
        replace(PYNQ_Z2, name=name)
    with value_error(said("program", name)):
        replace(program, name=name)
    with value_error(said("block design", name)):
        BlockDesign.from_manifest({**manifest, "name": name})
    if isinstance(name, str) and name:
        with value_error(f"file: {said('design', name)}"):
            Manifest.from_dict({**manifest, "name": name}, "file")


@pytest.mark.parametrize("name", [name for name in HOSTILE if isinstance(name, str)], ids=ascii)
def test_files_can_not_bring_it(name: str, hostile_build: tuple[builds.Build, str], tmp_path: Path) -> None:
    """A program and a build.json, whole but for the name."""
    build, _ = hostile_build
    program = build.program(NAME)
    object.__setattr__(program, "name", name)
    program.save(tmp_path / "x.npz")
    nothing = "name must be a non-empty string, got ''"  # said by the reader, before a program or a design is made
    with value_error(f"{tmp_path / 'x.npz'}: {said('program', name) if name else f'header: {nothing}'}"):
        Program.load(tmp_path / "x.npz")
    description = json.loads((build.folder / "build.json").read_text())
    description["design"]["name"] = name
    (tmp_path / "build.json").write_text(json.dumps(description))
    with value_error(f"{tmp_path / 'build.json'}: {said('design', name) if name else f'design: {nothing}'}"):
        builds.load(tmp_path)


@pytest.mark.parametrize("change", [{"bit": "../x.bit"}, {"programs": {"a": "/x"}}, {"sources": ".."}], ids=str)
def test_a_build_can_not_lead_elsewhere(change: dict, hostile_build: tuple[builds.Build, str], tmp_path: Path) -> None:
    build, _ = hostile_build
    description = json.loads((build.folder / "build.json").read_text())
    (tmp_path / "build.json").write_text(json.dumps({**description, **change}))
    ((what, value),) = change.items()
    value = value["a"] if isinstance(value, dict) else value
    with value_error(f"{tmp_path / 'build.json'}: {what}: must be a path inside the folder, got {value!r}"):
        builds.load(tmp_path)


@pytest.mark.slow
def test_cpp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C++ is compiled in a folder whose name can't stand between quotes."""
    monkeypatch.setenv("BITLOOM_CACHE", str(tmp_path / 'a "b" <c>'))
    model = build_model(loop_verilog())
    assert model.stat().st_size > 10_000
