"""The Makefile, with the stand-in as vivado on PATH, and with none."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bitloom.overlay.platform.dma_core import OWN
from tests.paths import ROOT

from .conftest import PROGRAM
from .tcl import BACKENDS

pytestmark = [
    pytest.mark.skipif(not shutil.which("make"), reason="needs make"),
    pytest.mark.skipif(not BACKENDS, reason="no Tcl interpreter: neither tkinter nor tclsh is there"),
]


def make(folder: Path, *words: str, vivado: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run make; ``vivado``: with the stand-in on PATH."""
    tools = folder.parent / "tools"
    tools.mkdir(exist_ok=True)
    script = tools / "vivado"
    script.unlink(missing_ok=True)
    if vivado:
        script.write_text(f'#!/bin/sh\nexec env PYTHONPATH={ROOT} {sys.executable} -m {__package__}.vivado "$@"\n')
        script.chmod(0o755)
    path = f"{tools}:/usr/bin:/bin"
    environment = {"PATH": path, "HOME": os.environ.get("HOME", "/"), **environment}
    return subprocess.run(["make", "-C", folder, *words], env=environment, capture_output=True, text=True, timeout=120)


def test_one_command_makes_the_bitstream(sources):
    project = sources()
    done = make(project.folder)
    assert done.returncode == 0, done.stderr
    assert "-source" in done.stdout
    assert "bitloom: WNS 0.25 ns, WHS 0.02 ns at 100 MHz" in done.stdout
    (bit,) = (project.folder / "output").glob("*.bit")
    assert set(project.output) - {f"{bit.stem}.{x}" for x in ("bit", "hwh", "manifest.json", "xsa")} == {
        PROGRAM,
        ".done-100mhz",
    }
    again = make(project.folder)
    assert "-source" not in again.stdout  # nothing is left to do
    other = make(project.folder, "CLOCK_MHZ=62.5")
    assert "at 62.5 MHz" in other.stdout
    assert len(list((project.folder / "output").glob("*.bit"))) == 2
    assert make(project.folder, "clean").returncode == 0
    assert not (project.folder / "work").exists()
    assert len(list((project.folder / "output").glob("*.bit"))) == 2


def test_the_core_of_our_dma(sources):
    project = sources(dma=OWN)
    done = make(project.folder, "ip")
    assert done.returncode == 0, done.stderr
    assert {path.parent.name for path in (project.folder / "work" / "ip").glob("*/component.xml")} == {
        "npu",
        "bitloom_dma",
    }
    later = time.time() + 10  # two files of one tick of the clock are of the same time
    os.utime(project.folder / "dma" / "bitloom_dma.v", (later, later))
    assert "-source" in make(project.folder, "ip").stdout


def test_negative_slack_fails(sources):
    project = sources()
    done = make(project.folder, STUB_SLACK="-0.1")
    assert done.returncode == 2
    assert "slack must be >= 0, got WNS -0.1 ns" in done.stderr
    assert project.output == []
    assert make(project.folder).returncode == 0  # and is tried again


@pytest.mark.parametrize("target", ["ip", "bitstream"])
def test_says_what_is_missing(sources, target):
    folder = sources().folder
    done = make(folder, target, vivado=False)
    assert done.returncode == 2
    said = (
        "bitloom: vivado is not on PATH: source settings64.sh in Vivado's folder, or say make VIVADO=/path/to/vivado\n"
    )
    assert done.stderr.startswith(said)
    done = make(folder, target, "BOARD=KV260")
    assert done.stderr.startswith(
        "bitloom: BOARD must be Pynq-Z2, for which these sources were written, got KV260: "
        "say bitloom build NETWORK --board KV260\n"
    )
