"""Where pynq can't be used, one line says why and what to do, whatever of ours is imported first."""

import os
import subprocess
import sys
from collections.abc import Sequence

import pytest
from pynq.buffer import PynqBuffer

from bitloom.driver import pynq_api
from bitloom.golden.distribution import PYNQ_ALONE

INSTALL = "pip install 'bitloom-fpga[sim]'"
MODULES = (
    "bitloom.driver.accelerator",
    "bitloom.driver.overlay",
    "bitloom.driver.link",
    "bitloom.driver.training_machine",
    "bitloom.overlay.virtual.board",
    "bitloom.overlay.show.notebook",
)
"""Modules that need pynq."""


def without_pynq(version: tuple[int, int, int], code: str) -> str:
    """``code`` for a Python of this version that has no pynq. What reads more of the version is imported before."""
    imported = "import sys, numpy, bitloom, bitloom.golden.file"
    return f"{imported}; sys.modules['pynq'] = None; sys.version_info = {version}; {code}"


def last_line(code: str, *options: str) -> str:
    """The last line on standard error of a Python that runs ``code``."""
    command = [sys.executable, *options, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr.splitlines()[-1]


def import_errors(statements: Sequence[str], *options: str, before: str = "") -> list[str]:
    """Outcomes of statements in a Python that runs ``before`` and then tries each."""
    code = f"{before}\nfor statement in {list(statements)}:\n    try:\n        exec(statement)\n"
    code += "        print('nothing')\n    except ImportError as e:\n        print(e)"
    done = subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_buffers_have_a_device_of_their_own():
    """Arrays of numpy 2 have an attribute ``device`` that can't be set; an attribute of the class hides it."""
    remote = pytest.importorskip("pynq.pl_server.remote_device", reason="pynq 3.0 has no remote boards")
    for buffer in (PynqBuffer, remote.RemoteBuffer):
        assert vars(buffer)["device"] is None


def test_pynq_is_missing():
    errors = import_errors([f"import {module}" for module in MODULES], before=without_pynq((3, 12, 1), "pass"))
    assert errors == [f"pynq: must be installed, to simulate and to drive a board: {INSTALL}"] * len(MODULES)


def test_pynq_is_missing_where_pip_would_not_find_what_it_asks_for():
    code = without_pynq((3, 13, 0), "import bitloom.driver.accelerator")
    said = f"ImportError: pynq: must be installed, to simulate and to drive a board: {INSTALL} && {PYNQ_ALONE}"
    assert last_line(code) == said


def test_what_pynq_itself_misses_is_said_as_it_is():
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'pynqutils'\Z"), pynq_api.explained():
        raise ModuleNotFoundError("No module named 'pynqutils'", name="pynqutils")


@pytest.mark.slow
@pytest.mark.parametrize("words", ["demo", "simulate x", "report x", "serve x", "evaluate digits-cnn --hardware 2"])
def test_commands_say_it_in_one_line(tmp_path, words):
    if words == "report x":
        pytest.importorskip("matplotlib", reason="report asks for matplotlib first, which is not installed")
    code = without_pynq((3, 12, 1), "from bitloom.overlay.cli import main; main()")
    command = [sys.executable, "-c", code, *words.split()]
    environment = {**os.environ, "BITLOOM_CACHE": str(tmp_path / "cache"), "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    said = f"bitloom: pynq: must be installed, to simulate and to drive a board: {INSTALL}"
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, said)
    assert "Traceback" not in done.stderr


def test_docstrings_are_needed():
    said = "needs docstrings, which python -OO drops: use python -O (PYTHONOPTIMIZE=1) at most"
    rooms = {
        "pynq": "import bitloom.driver.accelerator",
        "hls_gen.rtl": "import bitloom.hls_gen.rtl.generate",
        "hls_gen.check": "from bitloom.hls_gen.check import check; check('module a(); endmodule', 'a')",
    }
    assert import_errors(list(rooms.values()), "-OO") == [f"{room}: {said}" for room in rooms]
    main = "import sys; sys.argv = ['bitloom', 'build', 'digits-cnn']; from bitloom.overlay.cli import main; main()"
    assert last_line(main, "-OO") == f"bitloom: hls_gen.rtl: {said}"


def test_golden_needs_no_docstrings():
    code = "from bitloom.golden import zoo; import numpy as n; m = zoo.load('digits-cnn')\n"
    code += "print(m.forward(n.zeros((1, *m.network.input.shape), int)).shape)"
    done = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "(1, 1, 1, 10)\n"
