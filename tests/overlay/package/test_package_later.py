"""Packages of Pythons for which pip finds no numpy 1, and so not what pynq asks for: all but pynq itself, which
a second command installs. Nothing is pinned. What is built must be the same bytes as here.
"""

import pytest

from bitloom.golden.distribution import PYNQ_ALONE
from bitloom.overlay.cli.group import bitloom
from tests.paths import ROOT

from .environments import TESTS_WITHOUT_EXTRAS, Environment

pytestmark = pytest.mark.slow

PYTHONS = ("3.13", "3.14")
NO_PYNQ = f"pynq: must be installed, to simulate and to drive a board: pip install 'bitloom-fpga[sim]' && {PYNQ_ALONE}"
WITH_PYNQ = (["demo"], ["simulate", "made"], ["report", "made"], ["serve", "made"], ["bench", "digits-cnn"])
WITH_PYNQ += (["evaluate", "digits-cnn", "digits", "--hardware", "2"],)


@pytest.fixture(scope="module", params=PYTHONS)
def later(request, wheel, tmp_path_factory):
    """An environment with all extras as pip picks them, and no pynq; the last test installs it."""
    environment = Environment(tmp_path_factory.mktemp("later"), request.param, "")
    environment.install(f"bitloom-fpga[all] @ {wheel.as_uri()}", "pytest", "hypothesis")
    return environment


def test_golden_and_designs_pass_their_tests(later, tmp_path):
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    files = [str(tmp_path / "tests" / name) for name in TESTS_WITHOUT_EXTRAS]
    options = ("-q", "-p", "no:cacheprovider", "-W", "ignore", "-o", "pythonpath=", f"--rootdir={tmp_path}")
    done = later.run("pytest", *options, *files, cwd=tmp_path)
    assert " passed" in done.stdout


def test_a_build_is_the_same_bytes_as_here(later, tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    later.run("bitloom", "build", "digits-cnn", "--board", "pynq-z2", "--out", "made", cwd=tmp_path / "there")
    monkeypatch.chdir(tmp_path)
    bitloom.main(["build", "digits-cnn", "--board", "pynq-z2", "--out", "made"], standalone_mode=False)
    here, there = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "made", tmp_path / "there" / "made")
    )
    assert len(there) > 50
    assert {str(path) for path in here.keys() ^ there.keys() | {p for p in here if here[p] != there.get(p)}} == {
        "build.log"
    }


def test_networks_are_evaluated_exported_imported_and_measured(later, tmp_path):
    assert "360" in later.run("bitloom", "evaluate", "digits-cnn", "digits", cwd=tmp_path).stdout
    later.run("bitloom", "export", "digits-cnn", "--qonnx", "--out", "net.onnx", cwd=tmp_path)
    later.run("bitloom", "import", "net.onnx", "--out", "net.npz", cwd=tmp_path)
    later.run("bitloom", "area", "digits-cnn", cwd=tmp_path)
    later.run("bitloom", "explore", "digits-cnn", "--board", "pynq-z2", "--points", "1", cwd=tmp_path)


def test_what_needs_pynq_says_so_in_one_line(later, tmp_path):
    for words in WITH_PYNQ:
        said = later.run("bitloom", *words, cwd=tmp_path, status=1).stderr
        assert said.splitlines()[-1] == f"bitloom: {NO_PYNQ}", words
        assert "Traceback" not in said
    code = "import bitloom; from bitloom import BitloomOverlay"
    said = later.run("python", "-c", code, cwd=tmp_path, status=1).stderr
    assert said.splitlines()[-1] == f"ImportError: {NO_PYNQ}"


def test_the_second_command_brings_pynq(later, tmp_path):
    later.install(*PYNQ_ALONE.removeprefix("pip install ").split())
    assert "bit-exact" in later.run("bitloom", "demo", "--frames", "8", cwd=tmp_path).stdout
    assert later.run("python", "-c", "import numpy; print(numpy.__version__)", cwd=tmp_path).stdout >= "2.1"
