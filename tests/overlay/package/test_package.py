"""Files that pip installs from this folder and from a wheel; pynq finds our driver, notebooks and bitstreams."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from bitloom.overlay.platform.boards import BOARDS
from tests.paths import ROOT

pytest.importorskip("pynq")

PACKAGES = ("golden", "hls_gen", "driver", "overlay", "boards", "notebooks")
GROUPS = {"pynq.lib": "bitloom.driver.link", "pynq.overlays": "bitloom.boards", "pynq.notebooks": "bitloom.notebooks"}
ENTRY_POINTS = """
import json, sys
from importlib.metadata import entry_points
print(json.dumps({group: {e.name: e.value for e in entry_points(group=group)} for group in sys.argv[1:]}))
"""
GET_NOTEBOOKS = "from pynq._cli.get_notebooks import main; main()"


def python(code, *arguments, cwd, **environment):
    """Output of Python for ``code``, away from this folder."""
    command = [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": "", "BOARD": "", **environment}
    return subprocess.run(command, cwd=cwd, env=environment, check=True, capture_output=True, text=True).stdout.strip()


def files(folder):
    """Files under ``folder`` as they are delivered and packed."""
    paths = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    return {path.as_posix() for path in paths if not {"__pycache__", ".ipynb_checkpoints"} & set(path.parts)}


@pytest.fixture(scope="module")
def site(wheel, tmp_path_factory):
    """A folder with the wheel's content, in front of everything else with PYTHONPATH."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_entry_points(tmp_path):
    data = json.loads(python(ENTRY_POINTS, *GROUPS, cwd=tmp_path))
    assert {group: names.get("bitloom") for group, names in data.items()} == GROUPS, "install again: pip install -e ."


def test_pynq_delivers_the_notebooks(tmp_path):
    python(GET_NOTEBOOKS, "--ignore-overlays", "--path", tmp_path / "out", "bitloom", cwd=tmp_path)
    delivered = files(tmp_path / "out" / "bitloom")
    assert delivered == files(ROOT / "notebooks") - {"__init__.py"}
    assert any(name.endswith(".ipynb") for name in delivered)


def test_pynq_finds_the_driver_by_itself(tmp_path):
    code = "import pynq, sys; pynq.Overlay._register_drivers(None); from pynq.overlay import _ip_drivers as d; "
    code += "print(d['bitloom:bitloom:npu:0.2'].__module__, 'bitloom.overlay' in sys.modules)"
    assert python(code, cwd=tmp_path) == "bitloom.driver.link False"


BITLOOM = """#!/bin/sh
echo "$*" > called
mkdir -p "$6/vivado" && touch "$6/build.json"
cat > "$6/vivado/Makefile" <<'END'
all:
\tmkdir -p output
\tfor suffix in bit hwh xsa manifest.json; do echo $(BOARD) > output/mine_0.$$suffix; done
\ttouch -d "1 hour ago" output/mine_0.bit && touch output/digits-cnn.program.npz
\tfor suffix in bit hwh xsa manifest.json; do echo new > output/mine_1.$$suffix; done
END
"""
"""Stands for bitloom, whose sources stand for Vivado's: an older bitstream and a newer one."""


def test_there_is_a_folder_for_each_board():
    assert sorted(path.parts[-3] for path in (ROOT / "boards").glob("*/*/makefile")) == sorted(BOARDS)


@pytest.mark.parametrize("board", BOARDS)
def test_boards(board, tmp_path):
    """make asks for the sources of the folder's board, and keeps what pynq needs."""
    folder = tmp_path / "boards" / board / "digits-cnn"
    shutil.copytree(ROOT / "boards", tmp_path / "boards")
    (tmp_path / "bitloom").write_text(BITLOOM)
    (tmp_path / "bitloom").chmod(0o755)
    environment = {**os.environ, "BOARD": "another"}
    subprocess.run(["make", "-s", f"BITLOOM={tmp_path / 'bitloom'}"], cwd=folder, env=environment, check=True)
    assert (folder / "called").read_text() == f"build digits-cnn --board {board} --out build\n"
    assert (folder / "build/vivado/output/mine_0.bit").read_text() == f"{board}\n"
    kept = {"digits-cnn.bit", "digits-cnn.hwh", "digits-cnn.manifest.json"}
    assert {name for name in files(folder) if not name.startswith("build/")} - {"called", "makefile"} == {
        *kept,
        "digits-cnn.program.npz",
    }
    assert {(folder / name).read_text() for name in kept} == {"new\n"}


@pytest.mark.slow
def test_the_wheel_holds_every_file(wheel):
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == {
        "bitloom/__init__.py",
        "bitloom/__main__.py",
        "bitloom/py.typed",
        *(f"bitloom/{room}/{name}" for room in PACKAGES for name in files(wheel.parent / "source" / room)),
    }


@pytest.mark.slow
def test_pynq_delivers_the_notebooks_of_a_wheel(site, tmp_path):
    options = ("--ignore-overlays", "--path", tmp_path / "out", "bitloom")
    python(GET_NOTEBOOKS, *options, cwd=tmp_path, PYTHONPATH=str(site))
    assert files(tmp_path / "out" / "bitloom") == files(ROOT / "notebooks") - {"__init__.py"}


@pytest.mark.slow
def test_pynq_finds_the_bitstreams_of_its_board(site, tmp_path):
    for board in ("Pynq-Z2", "KV260"):
        folder = site / "bitloom" / "boards" / board / "mine"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "mine.bit").write_bytes(b"")
    code = "from pynq.bitstream import Bitstream; print(Bitstream('mine.bit', device=object()).bitfile_name)"
    for board in ("Pynq-Z2", "KV260"):
        path = python(code, cwd=tmp_path, PYTHONPATH=str(site), BOARD=board)
        assert Path(path) == site / "bitloom" / "boards" / board / "mine" / "mine.bit"
    with pytest.raises(subprocess.CalledProcessError) as e:
        python(code, cwd=tmp_path, PYTHONPATH=str(site), BOARD="ZCU104")
    assert e.value.stderr.endswith("OSError: Bitstream file mine.bit does not exist.\n")
