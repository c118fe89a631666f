"""Work that can be done on Windows, by the rules of tests/windows.py: everything up to the sources for a bitstream."""

import os
import subprocess
import sys
from pathlib import Path
from textwrap import indent

import pytest

from bitloom.golden.distribution import pip_install
from tests.paths import ROOT, SOURCES

NO_PYNQ = f"bitloom: pynq: must be installed, to simulate and to drive a board: {pip_install('sim')}\n"

COMMAND = """
from bitloom.overlay.cli.group import COMMANDS
for name in COMMANDS:
    COMMANDS[name]
"""

FILES = """
import os
from pathlib import Path
from bitloom.golden import atomic
from bitloom.golden.kernels.cache import cached_folder
for text in ("old", "new"):
    atomic.write_text("a", text)
Path("b").mkdir()
for name in "bc":
    with atomic.new_folder(name) as part:
        atomic.write_scratch(part / "x", name)
with atomic.locked(Path("c")), atomic.locked_file("d"):
    pass
folders = []
os.environ["BITLOOM_CACHE"] = os.path.abspath("cache")
for _ in range(2):
    cached_folder("kind", "key", lambda folder: folders.append(folder) or atomic.write_scratch(folder / "y", "y"))
print(Path("a").read_text(), *sorted(os.listdir()), *os.listdir("b"), *os.listdir("c"), len(folders))
"""


def under_the_rules(code: str, folder: Path) -> subprocess.CompletedProcess:
    """Run a program in which Windows' rules hold, in a folder."""
    program = f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(SOURCES)!r}]\n"
    program += f"from tests.windows import begin\nbegin()\n{code}"
    command = [sys.executable, "-c", program]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_commands_are_imported(tmp_path):
    done = under_the_rules(COMMAND, tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_simulation_says_what_is_missing(tmp_path):
    code = "from bitloom.overlay.cli import main\nsys.argv = ['bitloom', 'demo']\nmain()"
    done = under_the_rules(code, tmp_path)
    assert (done.returncode, done.stderr) == (1, NO_PYNQ)


def test_files_and_folders_are_written(tmp_path):
    done = under_the_rules(FILES, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "new a b c cache d x x 1\n"


@pytest.mark.slow
def test_from_a_file_to_sources(tmp_path):
    """The sources are the same bytes as here."""
    source = ROOT / "notebooks" / "residual_digits.tflite"
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
        (folder / "net.tflite").write_bytes(source.read_bytes())
    board = ("--board", "pynq-z2")
    for words in (
        ("import", "net.tflite", "--out", "net.npz"),
        ("explore", "net.npz", *board, "--points", "1", "--jobs", "2", "--save", "foldings.json"),
        ("build", "net.npz", "--foldings", "foldings.json", *board, "--out", "build"),
        ("evaluate", "digits-cnn", "--limit", "10"),
        ("deploy", "build", "--to", "board", "--c"),
    ):
        code = f"from bitloom.overlay.cli import main\nsys.argv = ['bitloom', *{words}]\nmain()"
        done = under_the_rules(f"if __name__ == '__main__':\n{indent(code, '    ')}", there)
        assert done.returncode == 0, (words, done.stderr)
        bitloom_here = [sys.executable, "-m", "bitloom", *words]
        subprocess.run(
            bitloom_here, cwd=here, capture_output=True, check=True, env={**os.environ, "PYTHONPATH": str(SOURCES)}
        )
    for folder in ("build/vivado", "board"):
        texts = [
            {path.relative_to(top): path.read_bytes() for path in (top / folder).rglob("*") if path.is_file()}
            for top in (here, there)
        ]
        assert len(texts[0]) > 10
        assert texts[0] == texts[1]
