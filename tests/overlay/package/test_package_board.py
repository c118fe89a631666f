"""Packages of a board, in a clean environment with a board's Python, numpy and pynq: no extras, no Veriloggen.

The image PYNQ 3.0.1 has Python 3.10, numpy 1.21 and pynq 3.0.1. The driver's tests with a fake device, and golden's,
run there; compiled programs, packed frames and golden's outputs must be the same bytes as here.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest

from bitloom.golden import zoo as networks
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.overlay.build.reference_designs import DIGITS
from tests.overlay.conftest import ROOT

from .environments import CLEAN, TESTS_WITHOUT_EXTRAS, Environment, pinned

pytestmark = pytest.mark.slow

PINS = ("numpy==1.21.6", "pynq==3.0.1")
TOOLS = ("setuptools", "wheel", "pycparser", "pytest")
DRIVER = ("accelerator", "accelerator_async", "overlay", "frames", "registers", "state")
TESTS = (*(f"driver/test_{name}.py" for name in DRIVER), *TESTS_WITHOUT_EXTRAS)


@pytest.fixture(scope="module")
def board(wheel, tmp_path_factory):
    """Python of a new environment with PINS and our wheel, no extras."""
    environment = Environment(tmp_path_factory.mktemp("board"), "3.10", pinned(*PINS))
    environment.install_or_skip(*TOOLS)
    environment.install_or_skip("--no-build-isolation", *PINS)
    environment.install(str(wheel))
    return environment.python


def test_versions(board, tmp_path):
    code = (
        "import bitloom.driver as d, numpy as n, pynq, sys; "
        "print(sys.version_info[:2], n.__version__, pynq.__version__, d)"
    )
    done = subprocess.run([board, "-c", code], cwd=tmp_path, env=CLEAN, check=True, capture_output=True, text=True)
    assert done.stdout.startswith("(3, 10) 1.21.6 3.0.1 ")
    assert "site-packages" in done.stdout
    listed = subprocess.run([board, "-m", "pip", "list"], check=True, capture_output=True, text=True).stdout
    assert "veriloggen" not in listed.lower()


def test_every_module_imports(board, tmp_path):
    code = (
        "import importlib, pkgutil\n"
        "from bitloom import driver, golden\n"
        "from bitloom.hls_gen import compiler, design\n"
        "for package in (golden, design, compiler, driver):\n"
        "    for module in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        importlib.import_module(module.name)\n"
    )
    subprocess.run([board, "-c", code], cwd=tmp_path, env=CLEAN, check=True)


def test_drivers_and_goldens_own_tests(board, tmp_path):
    skipped = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "tests", tmp_path / "tests", ignore=skipped)  # away from our sources
    files = [str(tmp_path / "tests" / name) for name in TESTS]
    command = [board, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", *files]
    done = subprocess.run(command, cwd=tmp_path, env=CLEAN, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout


COMPILE = """
import sys
import numpy as np
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.driver.frames import Frames
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.program import Program
from bitloom.golden.file import load

model, manifest = load(sys.argv[1]), Manifest.load(sys.argv[2])
compile_model(model, manifest).save("program.npz")
program = Program.load("program.npz")
frames = Frames(manifest, program, 1 << 20)
words = np.zeros(3 * frames.words, np.uint32)
images = np.arange(3 * program.input.size).reshape(3, *program.input.shape) % 17
frames.fill(words, images, signature=0x1234, number=0)
np.save("frames.npy", words)
np.save("outputs.npy", model.forward(images))
"""


def test_programs_frames_and_golden_give_the_same_bytes(board, tmp_path):
    model = networks.load("digits-cnn")
    manifest = Manifest.of(size_memories("digits", [model], DIGITS), "0" * 64)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest.to_dict()))
    source = ROOT / "golden" / "zoo" / "digits-cnn.npz"
    for name, python, environment in (("here", sys.executable, os.environ), ("board", board, CLEAN)):
        (tmp_path / name).mkdir()
        command = [python, "-c", COMPILE, str(source), "../manifest.json"]
        subprocess.run(command, cwd=tmp_path / name, env=environment, check=True)
    for name in ("program.npz", "frames.npy", "outputs.npy"):
        assert (tmp_path / "board" / name).read_bytes() == (tmp_path / "here" / name).read_bytes(), name
