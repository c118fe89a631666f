"""Shared builds: loop.v is compiled once a session for each width (and found in the cache afterwards); a wheel."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bitloom.overlay.virtual.sim import Simulation
from tests.paths import ROOT

LOOP = Path(__file__).parent / "virtual" / "loop.v"


FAULT = 0x104
FAULTS = {
    "none": 0,
    "drops_valid": 1,
    "changes_data": 2,
    "changes_last": 3,
    "depends_on_ready": 4,
    "hangs": 5,
    "read_data_changes": 6,
    "bvalid_falls": 7,
    "no_read_answer": 8,
    "fatal": 9,
    "combinational_ready": 10,  # no fault: correct, but unusual
}
"""Values of loop.v's register FAULT."""


def loop_verilog(stream_bits: int = 32) -> str:
    """loop.v for a stream width."""
    return LOOP.read_text().replace("STREAM_BITS", str(stream_bits))


def fatal_loop_verilog(stream_bits: int = 32) -> str:
    """loop.v with the fault "fatal", which no Verilog from a file may have."""
    before, end, after = loop_verilog(stream_bits).rpartition("endmodule")
    fatal = 'always @(posedge clk) if (fault == 9 & words_out == 3) $fatal(1, "told to");'
    return f"{before}    {fatal}\n{end}{after}"


@pytest.fixture
def loop():
    """loop(fault, ...) -> a running Simulation; all of them are closed after the test."""
    running = []

    def start(fault="none", *, stream_bits=32, **options):
        verilog = fatal_loop_verilog if fault == "fatal" else loop_verilog
        simulation = Simulation.build(verilog(stream_bits), stream_bits=stream_bits, **options)
        running.append(simulation)
        if fault != "none":
            simulation.write_register(FAULT, FAULTS[fault])
        return simulation

    yield start
    for simulation in running:
        simulation.close()


@pytest.fixture
def no_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without plots, which take a second or two."""
    monkeypatch.setattr("bitloom.overlay.show.report.page.svg", lambda report, picture: f"<svg>{picture.name}</svg>")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """A wheel of this tree. It is built in a copy, ``source`` beside it, because setuptools leaves files behind."""
    folder = tmp_path_factory.mktemp("wheel")
    unpacked = {path for path in ROOT.iterdir() if path.name in ("build", "tests", "docs")}
    rubbish = shutil.ignore_patterns(".*", "*.egg-info", "__pycache__")

    def skipped(parent, names):
        return {*rubbish(parent, names), *(path.name for path in unpacked if path.parent == Path(parent))}

    shutil.copytree(ROOT, folder / "source", symlinks=True, ignore=skipped)
    return wheel_of(folder / "source", folder)


def wheel_of(source, folder):
    """The wheel that pip makes of a folder of sources, written to ``folder``."""
    command = [sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    subprocess.run([*command, str(source)], check=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="session")
def sdist(wheel, tmp_path_factory):
    """A source distribution of this tree, as build front ends ask setuptools for it."""
    folder = tmp_path_factory.mktemp("sdist")
    code = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    command = [sys.executable, "-c", code, str(folder)]
    subprocess.run(command, cwd=wheel.parent / "source", check=True, capture_output=True)
    return next(folder.glob("*.tar.gz"))
