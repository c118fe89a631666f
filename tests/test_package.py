"""The package bitloom itself: the names that it has."""

import subprocess
import sys

import bitloom


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
