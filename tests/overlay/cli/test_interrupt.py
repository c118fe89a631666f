"""Ctrl-C, at any moment: one line, exit status 130."""

import subprocess
import sys

import pytest


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["click", "bitloom.overlay.cli.train", "rich.table"])
def test_while_packages_are_imported(name):
    done = subprocess.run([sys.executable, "-c", script(name)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "bitloom: interrupted\n")


def script(name: str) -> str:
    """The command line in a Python that is interrupted when it begins to import ``name``."""
    return (
        "import sys\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {name!r}:\n"
        "            raise KeyboardInterrupt\n"
        "from bitloom.overlay.cli import main\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        "sys.argv = ['bitloom', 'train', '--help']\n"
        "main()\n"
    )
