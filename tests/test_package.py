"""The package bitloom itself: the names that it has."""

import shutil
import subprocess
import sys

import bitloom
from tests.paths import ROOT


def test_all_names_are_listed():
    assert {"Accelerator", "BitloomOverlay", "Model", "Network", "__version__"} <= set(dir(bitloom))
    assert dir(bitloom) == sorted(dir(bitloom))
    for name in dir(bitloom):
        assert hasattr(bitloom, name)


def test_listing_names_imports_no_pynq():
    code = "import bitloom, sys; dir(bitloom); print('pynq' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_the_package_is_the_command():
    command = [sys.executable, "-m", "bitloom", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.endswith(f"bitloom, version {bitloom.__version__}\n")


def test_a_copy_without_links_is_not_installed(tmp_path):
    """As git leaves it on a file system without links: a text file with the link's target."""
    shutil.copy(ROOT / "setup.py", tmp_path)
    package = tmp_path / "src" / "bitloom"
    package.mkdir(parents=True)
    for link in (ROOT / "src" / "bitloom").iterdir():
        if link.is_symlink():
            (package / link.name).write_text(str(link.readlink()))
    done = subprocess.run([sys.executable, "setup.py", "--name"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("src/bitloom has links to the folders golden, driver and others")
    assert done.stderr.count("\n") == 1


def test_every_link_of_the_package_is_asked_for():
    links = {link.name for link in (ROOT / "src" / "bitloom").iterdir() if link.is_symlink()}
    text = (ROOT / "setup.py").read_text()
    assert links
    assert all(f'"{name}"' in text for name in links)
