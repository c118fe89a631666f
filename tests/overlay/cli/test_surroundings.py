"""The tests of commands again in other surroundings: narrow terminals, other locales, each path of the processor."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bitloom.golden.kernels.tiled import cpu
from tests.paths import ROOT

TESTS = ROOT / "tests"
CALLS = re.compile(r"CliRunner|from tests.*\bcommands\b")
NARROW = {"COLUMNS": "60", "LINES": "20", "TERM": "vt100"}
NO_UTF8 = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
SURROUNDINGS = {
    "narrow": NARROW,
    "no_utf8": NO_UTF8,
    **{f"path_{path}": {**NARROW, **NO_UTF8, "BITLOOM_CPU_PATH": path} for path in cpu.PATHS},
}


def command_line_tests() -> list[str]:
    """The files of tests that call commands, and those of what commands print."""
    files = [path for path in sorted(TESTS.rglob("test_*.py")) if path != Path(__file__)]
    paths = [path for path in files if CALLS.search(path.read_text(encoding="utf-8"))]
    return [str(path.relative_to(ROOT)) for path in (*paths, TESTS / "overlay" / "cli" / "test_show.py")]


def test_files_are_found() -> None:
    assert {"tests/overlay/cli/test_cli.py", "tests/overlay/study/test_bench_conv.py"} <= set(command_line_tests())


@pytest.mark.slow
@pytest.mark.parametrize("surroundings", SURROUNDINGS)
def test_commands(surroundings: str) -> None:
    chosen = SURROUNDINGS[surroundings]
    path = chosen.get("BITLOOM_CPU_PATH")
    if path and path not in cpu.paths():
        pytest.skip(f"this processor can't run {path}")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "LC_", "LANG"))}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *command_line_tests()]
    environment = {**kept, **chosen, "BITLOOM_TEST_SURROUNDINGS": surroundings}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-6000:]
