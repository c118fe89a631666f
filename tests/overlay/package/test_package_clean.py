"""Packages that a stranger installs: wheel and source distribution in clean environments, on each Python.

Once with numpy alone, once with all extras.
"""

import json
import re
import tarfile
import zipfile

import pytest

from tests.overlay.conftest import wheel_of
from tests.paths import ROOT

from .environments import Environment, pinned

pytestmark = pytest.mark.slow

PYTHONS = ("3.10", "3.11", "3.12")
VERSION = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M).group(1)
WITHOUT_NUMPY_ALONE = {"pynq", "grpc", "veriloggen", "pyverilog", "click"}
"""Packages of extras without which a module can't be imported. All others are imported where they are first needed."""
NEEDS_NUMPY_ALONE = ("bitloom.golden", "bitloom.hls_gen.design", "bitloom.hls_gen.compiler")
"""Modules that need numpy alone, as the project promises; the rest of what can be imported is let in."""

IMPORT_ALL = """
import importlib, json, pkgutil
import bitloom
missing = {}
for module in pkgutil.walk_packages(bitloom.__path__, "bitloom.", onerror=lambda name: None):
    try:
        importlib.import_module(module.name)
    except ImportError as e:  # without a name it is ours, and begins with the package
        missing[module.name] = e.name.partition(".")[0] if e.name else str(e).partition(":")[0]
print(json.dumps(missing))
"""
MYPY = """
import bitloom
from bitloom import Accelerator, BitloomOverlay, Model, Network
from bitloom.golden.zoo import load
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.platform.boards import board
reveal_type(load("digits-cnn"))
reveal_type(Npu.of().engine)
reveal_type(board("pynq-z2").lut)
reveal_type(bitloom.__version__)
reveal_type(Accelerator.counters)
reveal_type(BitloomOverlay.counters)
reveal_type(BitloomOverlay.classify)
"""


@pytest.fixture(scope="module")
def wheel_of_sdist(sdist, tmp_path_factory):
    """The wheel that pip makes of the source distribution."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder)
    return wheel_of(next(folder.iterdir()), folder)


def contents(path):
    """Contents of a wheel: bytes by name, without the list of digests, which has the same names."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/RECORD")}


def test_the_source_distribution_makes_the_same_wheel(wheel, wheel_of_sdist):
    assert wheel.name == wheel_of_sdist.name == f"bitloom_fpga-{VERSION}-py3-none-any.whl"
    assert contents(wheel) == contents(wheel_of_sdist)


def test_the_source_distribution_holds_what_a_wheel_is_made_of(sdist):
    with tarfile.open(sdist) as archive:
        links = [member.name for member in archive.getmembers() if member.issym() or member.islnk()]
        top = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert links == []  # src/bitloom/golden and the others are folders there
    pages = {"CHANGELOG.md", "LICENSE", "MANIFEST.in", "PKG-INFO", "README.md"}
    assert top == {*pages, "constraints.txt", "pyproject.toml", "setup.cfg", "setup.py", "src"}


@pytest.fixture(scope="module", params=PYTHONS)
def plain(request, wheel_of_sdist, tmp_path_factory):
    """An environment with numpy and bitloom, nothing else."""
    environment = Environment(tmp_path_factory.mktemp("plain"), request.param, pinned())
    environment.install(str(wheel_of_sdist))
    return environment


def test_numpy_alone(plain, tmp_path):
    listed = json.loads(plain.run("python", "-m", "pip", "list", "--format=json", cwd=tmp_path).stdout)
    assert {package["name"] for package in listed} - {"pip", "setuptools"} == {"bitloom-fpga", "numpy"}
    done = plain.run("python", "-W", "error", "-c", IMPORT_ALL, cwd=tmp_path)
    missing = json.loads(done.stdout)
    assert done.stderr == ""
    assert set(missing.values()) == WITHOUT_NUMPY_ALONE
    assert [name for name in missing if name.startswith(NEEDS_NUMPY_ALONE)] == []
    said = plain.run("bitloom", "--help", cwd=tmp_path, status=1)
    assert said.stderr == "bitloom: the command line needs click: pip install 'bitloom-fpga[hls,sim,cli]'\n"


def test_the_version_is_said_once(plain, tmp_path):
    code = "import bitloom, importlib.metadata as m; print(bitloom.__version__, m.version('bitloom-fpga'))"
    assert plain.run("python", "-c", code, cwd=tmp_path).stdout == f"{VERSION} {VERSION}\n"


def test_a_network_of_the_package_computes(plain, tmp_path):
    code = "from bitloom.golden import zoo; import numpy as np; m = zoo.load('digits-cnn'); "
    code += "print(m.forward(np.zeros((2, *m.network.input.shape), int)).shape)"
    assert plain.run("python", "-c", code, cwd=tmp_path).stdout == "(2, 1, 1, 10)\n"


@pytest.fixture(scope="module", params=PYTHONS)
def whole(request, wheel_of_sdist, tmp_path_factory):
    """An environment with all extras."""
    environment = Environment(tmp_path_factory.mktemp("whole"), request.param, pinned())
    environment.install("setuptools", "wheel")  # several of what we need have no wheel
    environment.install(
        "--no-build-isolation", "--use-pep517", f"bitloom-fpga[all] @ {wheel_of_sdist.as_uri()}", "mypy"
    )
    return environment


def test_all_extras(whole, tmp_path):
    assert json.loads(whole.run("python", "-W", "ignore", "-c", IMPORT_ALL, cwd=tmp_path).stdout) == {}
    assert whole.run("bitloom", "--version", cwd=tmp_path).stdout == f"bitloom, version {VERSION}\n"
    listed = whole.run("bitloom", "--help", cwd=tmp_path).stdout.partition("Commands:\n")[2]
    names = re.findall(r"^  ([a-z-]+)  ", listed, re.M)  # the lines of a long description begin further right
    assert {"build", "demo", "explore", "report", "simulate"} <= set(names)
    for name in names:
        assert whole.run("bitloom", name, "--help", cwd=tmp_path).stdout.startswith(f"Usage: bitloom {name} ")


def test_everything_that_a_command_reads_is_there(whole, tmp_path):
    """Simulation's C++, zoo, Vivado's scripts, the page's template, the model of area: all from the package."""
    assert "bit-exact" in whole.run("bitloom", "demo", cwd=tmp_path).stdout
    whole.run("bitloom", "build", "digits-cnn", "--board", "pynq-z2", "--out", "made", cwd=tmp_path)
    assert (tmp_path / "made" / "vivado" / "build.tcl").is_file()
    whole.run("bitloom", "report", "made", "--frames", "4", cwd=tmp_path)
    assert list((tmp_path / "made").rglob("*.html"))
    whole.run("pynq", "get-notebooks", "--ignore-overlays", "-p", "mine", "bitloom", cwd=tmp_path)
    assert len(list((tmp_path / "mine").rglob("*.ipynb"))) == len(list((ROOT / "notebooks").glob("*.ipynb")))


def test_others_see_our_types(whole, tmp_path):
    (tmp_path / "theirs.py").write_text(MYPY)
    said = whole.run("mypy", "--follow-imports=silent", "theirs.py", cwd=tmp_path).stdout
    matches = re.findall(r'Revealed type is "(.+)"', said)
    *plain, classify = [name.removeprefix("builtins.") for name in matches]
    assert plain == [
        "bitloom.golden.network.Model",
        "str",
        "int",
        "str",
        "def (self: bitloom.driver.accelerator.Accelerator) -> dict[str, int]",
        "def (bitloom.driver.overlay.BitloomOverlay) -> dict[str, int]",
    ]
    assert classify.endswith(") -> numpy.ndarray[Any, numpy.dtype[Any]]")
