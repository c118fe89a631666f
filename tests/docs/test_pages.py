"""Lists in pages are whole."""

import re

from bitloom.driver import errors
from bitloom.overlay.build import build as builds
from bitloom.overlay.platform.boards import BOARDS

from .blocks import ROOT


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def test_install_tells_every_extra():
    project = (ROOT / "pyproject.toml").read_text()
    section = project.partition("[project.optional-dependencies]\n")[2].partition("\n[")[0]
    extras = re.findall(r"^([\w-]+) = \[", section, re.M)
    assert len(extras) > 5
    told = re.findall(r"^\| `([\w-]+)` \|", page("start/install.md"), re.M)
    assert sorted(told) == sorted(extras)


def test_bring_up_tells_every_board():
    line = next(line for line in page("how-to/board.md").splitlines() if line.startswith("Boards: "))
    assert line.removeprefix("Boards: ").partition(". ")[0].split(", ") == list(BOARDS)


def test_errors_tells_every_exception():
    classes = [name for name, kind in vars(errors).items() if getattr(kind, "__module__", "") == errors.__name__]
    named = re.findall(r"^\| \[`(\w+)`\]\[bitloom\.driver\.errors\.\1\]", page("reference/errors.md"), re.M)
    assert sorted(named) == sorted(name for name in classes if name[0].isupper())


def test_files_tells_what_a_build_writes():
    """By the docstring of overlay.build.build."""
    written = re.findall(r"^ *(\S+?)(?:, \S+)*  +\S", builds.__doc__, re.M)
    assert len(written) > 4
    for name in written:
        assert f"| `{name.replace('<name>', '<design>')}`" in page("reference/files.md"), name
