"""What a board installs, in a clean environment with a board's Python, numpy and pynq: no extras, no Veriloggen.

The image PYNQ 3.0.1 has Python 3.10, numpy 1.21 and pynq 3.0.1. The driver's tests with a fake device, and golden's,
run there; compiled programs, packed frames and golden's outputs must be the same bytes as here.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bitloom.golden import zoo as networks
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.overlay.build.reference_designs import DIGITS
from tests.overlay.conftest import ROOT

pytestmark = pytest.mark.slow

CLEAN = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
"""What the board's Python runs with: it finds what is installed, and no checkout."""
PINS = ("numpy==1.21.6", "pynq==3.0.1")
TOOLS = ("setuptools", "wheel", "pycparser", "pytest")
TESTS = (
    "driver/test_accelerator.py", "driver/test_accelerator_async.py", "driver/test_overlay.py",
    "driver/test_frames.py", "driver/test_registers.py", "driver/test_waiting.py",
    "hls_gen/design/test_manifest.py", "hls_gen/design/test_packets.py", "hls_gen/design/test_program.py",
    "golden/layers/test_batch_norm.py", "golden/layers/test_conv.py", "golden/layers/test_pool.py",
    "golden/layers/test_threshold.py", "golden/test_encoding.py", "golden/test_file.py", "golden/test_layer.py",
    "golden/test_network.py", "golden/test_packing.py", "golden/test_window.py", "golden/kernels/test_packed.py",
)  # fmt: skip


def python_of_the_board() -> str:
    """A Python 3.10 that can make environments; skips the test where there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = [sys.executable, shutil.which("python3.10"), *map(str, pyenv.glob("versions/3.10.*/bin/python"))]
    code = "import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != (3, 10))"
    for candidate in filter(None, candidates):
        if subprocess.run([candidate, "-c", code], capture_output=True, check=False).returncode == 0:
            return candidate
    pytest.skip("no Python 3.10 with venv, neither as python3.10 nor below ~/.pyenv/versions")


@pytest.fixture(scope="module")
def board(wheel, tmp_path_factory):
    """Python of a new environment with PINS and our wheel, no extras."""
    folder = tmp_path_factory.mktemp("board")
    subprocess.run([python_of_the_board(), "-m", "venv", str(folder / "venv")], check=True)
    constraints = [
        line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith(("numpy=", "pynq="))
    ]
    (folder / "constraints.txt").write_text("\n".join([*constraints, *PINS]))
    python = str(folder / "venv" / "bin" / "python")
    install = [
        python,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "-q",
        "install",
        "-c",
        str(folder / "constraints.txt"),
    ]
    for what in (TOOLS, ("--no-build-isolation", *PINS)):
        done = subprocess.run([*install, *what], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"{' '.join(PINS)} can't be installed: {done.stderr.strip().splitlines()[-1]}")
    subprocess.run([*install, str(wheel)], check=True)
    return python


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
    made = Manifest.of(size_memories("digits", [model], DIGITS), "0" * 64)
    (tmp_path / "manifest.json").write_text(json.dumps(made.to_dict()))
    source = ROOT / "golden" / "zoo" / "digits-cnn.npz"
    for name, python, environment in (("here", sys.executable, os.environ), ("board", board, CLEAN)):
        (tmp_path / name).mkdir()
        command = [python, "-c", COMPILE, str(source), "../manifest.json"]
        subprocess.run(command, cwd=tmp_path / name, env=environment, check=True)
    for name in ("program.npz", "frames.npy", "outputs.npy"):
        assert (tmp_path / "board" / name).read_bytes() == (tmp_path / "here" / name).read_bytes(), name
