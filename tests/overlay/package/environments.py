"""Clean environments with a Python of one's choice, in which tests install what pip would give a user."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

CLEAN = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
"""Variables with which the environment's Python finds what is installed, and no checkout."""
LAYERS = ("batch_norm", "conv", "pool", "threshold")
GOLDEN = ("encoding", "file", "layer", "network", "packing", "window")
TESTS_WITHOUT_EXTRAS = (
    *(f"golden/layers/test_{name}.py" for name in LAYERS),
    *(f"golden/test_{name}.py" for name in GOLDEN),
    "golden/kernels/test_packed.py",
    *(f"hls_gen/design/test_{name}.py" for name in ("manifest", "packets", "program")),
)
"""Files below tests/ that need what pip installs without extras, and pytest."""


def interpreter(version: str) -> str:
    """A Python of that version, such as "3.10", that can make environments; skips the test where there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    paths = map(str, pyenv.glob(f"versions/{version}.*/bin/python"))
    code = "import sys, venv, ensurepip; sys.exit('%d.%d' % sys.version_info[:2] != sys.argv[1])"
    for candidate in filter(None, [sys.executable, shutil.which(f"python{version}"), *paths]):
        if subprocess.run([candidate, "-c", code, version], capture_output=True, check=False).returncode == 0:
            return candidate
    pytest.skip(f"no Python {version} with venv, neither as python{version} nor below ~/.pyenv/versions")


def pinned(*pins: str) -> str:
    """Text of constraints.txt, with ``pins`` such as ``numpy==1.21.6`` in the place of its own."""
    own = tuple(pin.partition("==")[0] + "=" for pin in pins)
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    kept = [line for line in lines if not (own and line.startswith(own))]
    return "\n".join([*kept, *pins]) + "\n"


class Environment:
    """A new environment below ``folder``.

    Parameters
    ----------
    folder
        Where it is made.
    version
        Of its Python, such as "3.10".
    constraints
        Text of the constraints with which pip installs; "" leaves every choice to pip, as a user without them has it.

    Attributes
    ----------
    python
        Its interpreter.
    """

    def __init__(self, folder: Path, version: str, constraints: str) -> None:
        subprocess.run([interpreter(version), "-m", "venv", str(folder / "venv")], check=True)
        self.folder = folder
        self.python = str(folder / "venv" / "bin" / "python")
        (folder / "constraints.txt").write_text(constraints)

    def install(self, *what: str) -> None:
        """Install; the test fails with pip's last words if it can't."""
        done = self._pip(*what)
        assert done.returncode == 0, done.stderr[-3000:]

    def install_or_skip(self, *what: str) -> None:
        """Install what others offer; skips the test, with pip's last line, where it can't be had."""
        done = self._pip(*what)
        if done.returncode:
            pytest.skip(f"{' '.join(what)} can't be installed: {done.stderr.strip().splitlines()[-1]}")

    def _pip(self, *what: str) -> "subprocess.CompletedProcess[str]":
        """Run ``pip install``."""
        words = ["-m", "pip", "--disable-pip-version-check", "-q", "install", "-c", f"{self.folder}/constraints.txt"]
        return subprocess.run([self.python, *words, *what], capture_output=True, text=True, check=False)

    def run(self, *words: str, cwd: Path, status: int = 0) -> "subprocess.CompletedProcess[str]":
        """Run a program of the environment by its name; ``python`` begins with -I, so that no checkout is seen."""
        program, *rest = words
        command = [str(Path(self.python).parent / program), *(["-I"] if program == "python" else []), *rest]
        done = subprocess.run(command, cwd=cwd, env=CLEAN, capture_output=True, text=True, check=False)
        assert done.returncode == status, f"{' '.join(words)}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
        return done
