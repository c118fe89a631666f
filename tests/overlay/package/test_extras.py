"""Names of the distribution and of its extras, wherever they are written; and the command that adds an extra."""

import ast
import re
import subprocess
import sys

import pytest
from packaging.requirements import Requirement

from bitloom.golden.distribution import DISTRIBUTION, pip_install
from tests.paths import ROOT

PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
OPTIONAL = PROJECT.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
EXTRAS = set(re.findall(r"^([a-z]+) = \[", OPTIONAL, re.M))
SOURCES = [path for room in ("golden", "hls_gen", "driver", "overlay") for path in (ROOT / room).rglob("*.py")]


def test_commands_in_messages_name_extras_that_there_are():
    named = [
        argument.value
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
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


@pytest.mark.parametrize("package", ["pynq", "setuptools", "pycparser"])
def test_what_ends_with_pynqs_pythons_is_left_out_of_later_ones(package):
    (line,) = re.findall(rf'^  "({package}[<>=][^"]*)"', OPTIONAL, re.M)
    marker = Requirement(line).marker
    assert [marker.evaluate({"python_version": version}) for version in ("3.10", "3.12", "3.13", "3.14")] == [
        True, True, False, False,
    ]  # fmt: skip
