"""The driver and the virtual board with each pynq that boards have, every one in an environment of its own.

What differs between them, and where it is met: Overlay fails on a Zynq-7000 whose hwh has no UltraScale+ clock (4.0.0,
overlay/platform/hwh.py); PYNQ's remote protocol carries all 32 bits of
a register from 4.0 on (overlay/cli/serve.py); before 4.0 the computer's own processor is taken for the device's
(overlay/virtual/board/device.py).
"""

import shutil

import pytest

from bitloom.golden.distribution import PYNQ_ALONE
from tests.paths import ROOT

from .environments import Environment, pinned

pytestmark = pytest.mark.slow

VERSIONS = (("3.0.1", "3.10"), ("3.1.2", "3.10"), ("4.0.0", "3.12"), ("4.0.0", "3.14"))
"""pynq, and a Python with which it is tried."""
ALONE = PYNQ_ALONE.removeprefix("pip install ").split()
VIRTUAL = ("board", "simulation_overlay")
TESTS = ("driver", *(f"overlay/virtual/test_{name}.py" for name in VIRTUAL))
TESTS += ("overlay/package/test_package.py::test_pynq_finds_the_driver_by_itself",)
TESTS += ("overlay/package/test_package.py::test_pynq_delivers_the_notebooks",)
"""Below tests/: with a fake device, and with generated hardware in Verilator behind pynq's Overlay and DMA."""


@pytest.fixture(scope="module", params=VERSIONS, ids="-".join)
def installed(request, wheel, tmp_path_factory):
    """An environment with that pynq, and our wheel with what the virtual board needs."""
    pynq, python = request.param
    environment = Environment(tmp_path_factory.mktemp("pynq"), python, pinned(f"pynq=={pynq}"))
    environment.install_or_skip("setuptools", "wheel")
    environment.install_or_skip("--no-build-isolation", "--use-pep517", *ALONE)
    ours = f"bitloom-fpga[hls,sim,cli] @ {wheel.as_uri()}"
    environment.install("--no-build-isolation", "--use-pep517", ours, "pytest", "hypothesis")
    environment.pynq = pynq
    return environment


def test_our_tests_of_driver_and_virtual_board(installed, tmp_path):
    shutil.copytree(ROOT / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks", ignore=shutil.ignore_patterns("__pycache__", "build"))
    version = installed.run("python", "-W", "ignore", "-c", "import pynq; print(pynq.__version__)", cwd=tmp_path)
    assert version.stdout == f"{installed.pynq}\n"
    files = [f"tests/{name}" for name in TESTS]
    options = ("-q", "-p", "no:cacheprovider", "-W", "ignore", "-o", "pythonpath=")
    done = installed.run("pytest", *options, f"--rootdir={tmp_path}", *files, cwd=tmp_path)
    assert " passed" in done.stdout
    assert "error" not in done.stdout


def test_the_demo(installed, tmp_path):
    said = installed.run("bitloom", "demo", "--frames", "8", cwd=tmp_path).stdout
    assert "bit-exact" in said


def test_a_folder_for_a_board(installed, tmp_path):
    """The wheel in it takes the place of what is installed, and its driver script runs on the virtual board."""
    installed.run("bitloom", "build", "digits-cnn", "--out", "made", cwd=tmp_path)
    installed.run("bitloom", "deploy", "made", "--to", "board", cwd=tmp_path)
    (packed,) = (tmp_path / "board").glob("*.whl")
    installed.install("--no-deps", "--no-index", "--force-reinstall", str(packed))
    version = "import importlib.metadata as m; print(m.version('bitloom-fpga'))"
    assert installed.run("python", "-c", version, cwd=tmp_path).stdout.strip() in packed.name
    said = installed.run("python", "-W", "ignore", "board/driver.py", "--check", "--virtual", cwd=tmp_path).stdout
    assert said.startswith("digits-cnn: 4 of 4 images are golden's in every bit")


def test_serve_needs_pynq_4(installed, tmp_path):
    installed.run("bitloom", "build", "digits-cnn", "--out", "made", cwd=tmp_path)
    if installed.pynq.startswith("4"):
        code = "import pynq.remote, bitloom.overlay.virtual.serve.server"
        installed.run("python", "-W", "ignore", "-c", code, cwd=tmp_path)
    else:
        said = installed.run("bitloom", "serve", "made", "--port", "0", cwd=tmp_path, status=1).stderr
        assert said.startswith("bitloom: serve: pynq >= 4.0 with PYNQ's remote protocol must be installed, got: ")
