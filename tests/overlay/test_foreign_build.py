"""A build's folder that a stranger wrote: every file fits its digest, and no command runs what the files say."""

import json
import re
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from bitloom.driver.training_machine import TrainingMachine
from bitloom.golden import zoo as networks
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.topology import pipeline
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.reference_designs import DIGITS
from bitloom.overlay.build.training import build_training_machine
from bitloom.overlay.exporters.qonnx import to_qonnx
from bitloom.overlay.platform.block_design import BlockDesign
from bitloom.overlay.platform.boards import PYNQ_Z2
from bitloom.overlay.platform.target import BoardTarget
from bitloom.overlay.virtual.board import activate
from bitloom.overlay.virtual.sim import verilator
from bitloom.overlay.virtual.sim.tokens import check_tokens
from bitloom.overlay.virtual.simulation_overlay import (
    SUFFIXES,
    OverlayError,
    bit_bytes,
    read_simulation_overlay,
    simulation_overlay_files,
)
from tests.commands import call
from tests.errors import value_error
from tests.overlay.platform.manifest import loop_manifest

RULE = "Verilog must consist of the tokens of generated Verilog"
COMMANDS = {
    "simulate": ["simulate", "--frames", "2"],
    "report": ["report", "--frames", "2"],
    "evaluate": ["evaluate", "--limit", "2", "--hardware", "2"],
    "serve": ["serve", "--port", "0"],
}
"""Words of each command that simulates a build; the build's folder comes behind the first one."""


def attacks(mark: Path) -> dict[str, tuple[str, str]]:
    """Text that a stranger writes into a module so that ``mark`` is made, and the token that is refused."""
    touch = f"touch {mark}"
    return {
        "system task": (f'initial $system("{touch}");', "'initial'"),
        "system function": (f'wire [31:0] status = $system("{touch}");', "'$system'"),
        "C in place": (f'always @(posedge clk) $c("system(\\"{touch}\\");");', "'$c'"),
        "C as a value": (f'wire x = $c1("system(\\"{touch}\\")");', "'$c1'"),
        "include": ('`include "/etc/passwd"', "'`include'"),
        "macro": (f'`define RUN(a) $``a\n`RUN(system)("{touch}");', "'`define'"),
        "header of C": (f'`systemc_header\nint x = system("{touch}");\n`verilog', "'`systemc_header'"),
        "foreign function": ('import "DPI-C" function int system(input string s);', "'import'"),
        "file": ('reg [7:0] m [0:1];\ninitial $readmemh("/etc/passwd", m);', "'initial'"),
        "escaped name": ("wire \\$system ;", "'\\\\'"),
        "name with a dollar": ("wire a$system;", "'$'"),
        "attribute": ('(* verilator public = "x" *) wire a;', "'(*'"),
        "other attribute": ('(* ram_style = "block", x = 1 *) reg a;', "'(*'"),
        "open comment": ("/* wire a;", "'/'"),
        "broken line": ("wire a = 1 \\\n;", "'\\\\'"),
        "carriage return": ("// a\r$system", ""),
        "other letters": ("wire \uff41;", "'\uff41'"),
        "name of the tool's own": ("wire Vtop__Syms;", "'Vtop__Syms'"),
        "endless loop": ("initial forever begin end", "'initial'"),
        "delay": ("assign #5 irq = 1;", "'#'"),
        "class": ("class a; endclass", "'class'"),
        "scope": ("wire a = std::b;", "':'"),
    }


def signed(bit: Path, verilog: str | None = None, manifest: dict[str, object] | None = None) -> None:
    """Put other content beside a .bit, whose digests then are those of that content."""
    if verilog is not None:
        bit.with_suffix(".v").write_bytes(verilog.encode())
    if manifest is not None:
        bit.with_suffix(".manifest.json").write_text(json.dumps(manifest))
    beside = {suffix: bit.with_suffix(suffix).read_bytes() for suffix in SUFFIXES}
    bit.write_bytes(bit_bytes(BlockDesign.from_manifest(loop_manifest(), BoardTarget()), beside))


def put_into_a_module(verilog: str, text: str) -> tuple[str, int]:
    """Verilog with ``text`` in front of the last ``endmodule``, and the line at which it begins."""
    before, end, after = verilog.rpartition("endmodule")
    return before + text + "\n" + end + after, before.count("\n") + 1


def given_to_verilator(verilog: str) -> str:
    """The Verilog that Verilator would read."""
    given = []

    def see(kind: str, key: str, build: Callable[[Path], None]) -> Path:
        with tempfile.TemporaryDirectory() as folder:
            with suppress(LookupError):
                build(Path(folder))
            given.append((Path(folder) / "bitloom_top.v").read_text())
        return Path()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verilator, "cached_folder", see)
        patch.setattr(verilator, "run_tool", lambda *_, **__: {}["it runs"])
        verilator.build_model(verilog)
    return given[0]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> builds.Build:
    model = networks.load("digits-cnn")
    folder = tmp_path_factory.mktemp("foreign") / "build"
    return builds.build(folder, size_memories("digits", [model], DIGITS), [model])


@pytest.fixture
def whole(build: builds.Build):
    """The build; afterwards its overlay is as it was."""
    before = {path: path.read_bytes() for path in build.folder.iterdir() if path.is_file()}
    yield build
    for path in build.folder.iterdir():
        if path.is_symlink() or (path.is_file() and path not in before):
            path.unlink()
    for path, data in before.items():
        path.write_bytes(data)


@pytest.mark.parametrize("attack", attacks(Path("mark")))
def test_verilog_that_could_run_something_is_refused(whole: builds.Build, attack: str, tmp_path: Path) -> None:
    text, token = attacks(tmp_path / "mark")[attack]
    verilog, line = put_into_a_module(whole.bit.with_suffix(".v").read_text(), text)
    signed(whole.bit, verilog)
    if not token:  # a comment of ours ends where Verilator's does, or Verilator doesn't see it
        assert "$system" not in given_to_verilator(read_simulation_overlay(whole.bit).verilog)
        return
    with pytest.raises(OverlayError) as e:
        read_simulation_overlay(whole.bit)
    assert re.fullmatch(rf"{re.escape(whole.bit.stem)}\.v: line (\d+): {RULE}, got {re.escape(token)}", str(e.value))
    assert f"line {line}:" in str(e.value) or f"line {line + 1}:" in str(e.value)
    assert not (tmp_path / "mark").exists()


@pytest.mark.sample(8)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("attack", ["system task", "C in place", "include", "foreign function", "macro"])
def test_no_command_runs_it(
    whole: builds.Build, command: str, attack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verilator, "run_tool", lambda command, *_, **__: pytest.fail(f"{command} runs"))
    text, token = attacks(tmp_path / "mark")[attack]
    verilog, line = put_into_a_module(whole.bit.with_suffix(".v").read_text(), text)
    signed(whole.bit, verilog)
    name, *words = COMMANDS[command]
    done = call(name, whole.folder, *words)
    assert done.exit_code == 1
    assert done.output.splitlines()[-1] == f"bitloom: {whole.bit.stem}.v: line {line}: {RULE}, got {token}"
    assert not (tmp_path / "mark").exists()


def test_a_comment_never_reaches_verilator(whole: builds.Build, tmp_path: Path) -> None:
    text = "/*verilator public_flat*/ // verilator lint_off ALL\n//synopsys translate_off\nwire a; /* $system\n */"
    verilog, _ = put_into_a_module(whole.bit.with_suffix(".v").read_text(), text)
    signed(whole.bit, verilog)
    source = given_to_verilator(read_simulation_overlay(whole.bit).verilog)
    assert not re.search(r"verilator|synopsys|system\b|//|/\*", source)
    assert source.count("\n") == verilog.count("\n")  # so that a message names the line in the file


def test_verilog_that_could_not_be_read_is_not_written() -> None:
    with value_error(f"loop: line 2: {RULE}, got 'initial'"):
        simulation_overlay_files(loop_manifest(), "module bitloom_top;\ninitial x = 1;\nendmodule\n")


@pytest.mark.parametrize("delay", ["#1", "#(1)", "#(x)", "#x", "# (.W(1))", "#(.5)", "#(/**/.W(1))", "##1"])
def test_a_delay_is_no_parameter(delay: str) -> None:
    with value_error(f"line 2: {RULE}, got '#'"):
        check_tokens(f"wire x;\nassign {delay} x = 1;\n")


def described(build: builds.Build, change: Callable[[dict[str, object]], object]) -> None:
    """Change build.json."""
    path = build.folder / "build.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def said(command: str, build: builds.Build) -> str:
    """The one line that a command says of a build that it refuses."""
    name, *words = COMMANDS[command]
    done = call(name, build.folder, *words)
    assert done.exit_code == 1, done.output
    return done.output.splitlines()[-1].removeprefix("bitloom: ")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("top", ["../../mark", "-CFLAGS", "std"])
def test_the_top_module_is_the_one_that_is_made(whole: builds.Build, command: str, top: str) -> None:
    manifest = json.loads(whole.bit.with_suffix(".manifest.json").read_text())
    signed(whole.bit, manifest={**manifest, "top": top})
    assert " top must be bitloom_top" in said(command, whole)
    assert said(command, whole).endswith(f", got {top!r}")


@pytest.mark.parametrize("top", ["../../mark", "-CFLAGS"])
def test_the_top_module_is_no_path_and_no_option(top: str) -> None:
    rule = "must be 1..64 letters, digits and single _ between them, a letter first"
    with value_error(f"model: top {rule}, got {top!r}"):
        verilator.build_model("module bitloom_top; endmodule", top=top)


@pytest.mark.parametrize("command", ["simulate", "report", "evaluate"])
def test_registers_that_were_moved(whole: builds.Build, command: str) -> None:
    manifest = json.loads(whole.bit.with_suffix(".manifest.json").read_text())
    for register in manifest["registers"]:
        register["offset"] = {"CYCLES": 0x05C, "WORDS_OUT": 0x050}.get(register["name"], register["offset"])
    signed(whole.bit, manifest=manifest)
    assert said(command, whole).endswith("register CYCLES: offset must be 0x050, got '0x05C'")


@pytest.mark.sample(1)
@pytest.mark.parametrize("command", ["simulate", "report", "evaluate"])
def test_hardware_that_counts_no_cycles(whole: builds.Build, command: str) -> None:
    verilog = whole.bit.with_suffix(".v").read_text()
    assert verilog.count(" shown = ") == 1
    cycles = "(counter_done & (read_address == 12'h50)) ? 32'd0 : "
    signed(whole.bit, verilog.replace(" shown = ", f" shown = {cycles}"))
    assert said(command, whole) == "digits-cnn: cycles must be above 0 and grow with the batches, got [0]"


@pytest.mark.parametrize("command", ["simulate", "report", "evaluate"])
def test_another_design_in_the_description(whole: builds.Build, command: str) -> None:
    other = Design(name="digits", npus=pipeline([whole.design.npus[0]] * 2)).to_dict()
    described(whole, lambda data: data.update(design=other))
    line = f"{whole.folder}: build.json must describe the design of {whole.bit.name}, got another one"
    assert said(command, whole) == line


NAME = "name must be 1..64 of A-Z, a-z, 0-9, _, - and ., not beginning with - or ."


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"command": ["rm", "-rf", "/"]}, "command must begin with bitloom build, got ['rm', '-rf', '/']"),
        ({"bit": "../x.bit"}, "bit: must be a path inside the folder, got '../x.bit'"),
        ({"sources": "/etc"}, "sources: must be a path inside the folder, got '/etc'"),
        ({"programs": {"a": "../a.npz"}}, "programs: must be a path inside the folder, got '../a.npz'"),
        ({"models": {"a": "../a.npz"}}, "models: must be a path inside the folder, got '../a.npz'"),
        ({"programs": {"<a>": "a.npz"}}, f"programs: network: {NAME}, got '<a>'"),
    ],
)
def test_strings_of_the_description(whole: builds.Build, change: dict[str, object], rule: str) -> None:
    described(whole, lambda data: data.update(change))
    line = said("simulate", whole)
    assert line.startswith(f"{whole.folder / 'build.json'}: ")
    assert line.endswith(rule)


LINKS = {
    "build.log": ["build", "digits-cnn", "--out"],
    "report.html": ["report"],
    "report.json": ["demo", "--frames", "1", "--out"],
}
"""Words of the command that writes a file of that name into the folder behind them."""


@pytest.mark.parametrize("name", LINKS)
def test_no_link_in_the_folder_is_followed(whole: builds.Build, name: str, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (whole.folder / name).symlink_to(precious)
    done = call(*LINKS[name], whole.folder)
    place = whole.folder / name
    assert done.output.splitlines()[-1] == f"bitloom: {place}: must be a file or not there, got a link"
    assert precious.read_text() == "mine"
    assert place.is_symlink()


CHOSEN = {
    "digits-cnn.onnx": ["export", "digits-cnn", "--qonnx"],
    "net.npz": ["import", "net.onnx"],
    "a.import.md": ["import", "net.onnx", "--explain", "--out", "a.npz"],
    "a.import.html": ["import", "net.onnx", "--explain", "--out", "a.npz"],
    "digits-cnn.program.npz": ["compile", "digits-cnn", "--for"],
    "build/digits-cnn.npz": ["train", "--epochs", "1"],
    "a.seed0.checkpoint.npz": ["train", "--epochs", "1", "--seeds", "2", "--out", "a.npz"],
    "digits-codes-1-0.json": ["learn", "digits", "--epochs", "1", "--out", "."],
    "digits-codes-1-0.npz": ["learn", "digits", "--epochs", "1", "--out", "."],
}
"""Words of the command that chooses a file's name in the working folder."""


@pytest.mark.parametrize("name", CHOSEN)
def test_no_link_is_followed_where_bitloom_chose_the_name(
    build: builds.Build, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [*CHOSEN[name], *([str(build.folder)] if "--for" in CHOSEN[name] else [])]
    if "net.onnx" in words:
        Path("net.onnx").write_bytes(to_qonnx(networks.load("digits-cnn")))
    precious, place = Path("precious"), Path(name)
    precious.write_text("mine")
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(precious.resolve())
    done = call(*words)
    assert done.output.splitlines()[-1] == f"bitloom: {place}: must be a file or not there, got a link"
    assert precious.read_text() == "mine"
    assert place.is_symlink()


def test_a_training_machine_is_written_through_no_link(tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "build" / "vivado").symlink_to(tmp_path / "other")
    with value_error(f"{tmp_path / 'build' / 'vivado'}: must be a folder, got a link"):
        build_training_machine(tmp_path / "build", "t", MachineParameters(), BoardTarget(board=PYNQ_Z2))
    assert list((tmp_path / "other").iterdir()) == []


def test_verilog_of_a_training_machine_is_held_to_the_same_tokens(tmp_path: Path) -> None:
    machine = build_training_machine(tmp_path / "build", "t", MachineParameters())
    read_simulation_overlay(machine.bit)
    text, token = attacks(tmp_path / "mark")["system function"]
    verilog, line = put_into_a_module(machine.bit.with_suffix(".v").read_text(), text)
    signed(machine.bit, verilog)
    board = activate()
    try:
        with pytest.raises(OverlayError, match=re.escape(f"{machine.bit.stem}.v: line {line}: {RULE}, got {token}")):
            TrainingMachine(machine.bit)
    finally:
        board.close()
    assert not (tmp_path / "mark").exists()
