"""Characters that a terminal lacks, and how wide it is."""

import io
import os
import sys

import pytest

from bitloom.overlay import cli
from bitloom.overlay.cli import group, show

WRITTEN = {
    "ascii": b"\\xe9 \xff\\xe9 \\u65e5\n",
    "latin-1": b"\xe9 \xff\xe9 \\u65e5\n",
    "utf-8": b"\xc3\xa9 \xff\xc3\xa9 \xe6\x97\xa5\n",
}


@pytest.mark.parametrize(("encoding", "written"), WRITTEN.items())
def test_a_terminal_without_a_letter_gets_its_escape(encoding, written, monkeypatch):
    """Names may have any letters; a byte of a path that is none comes out as it came in."""
    out = io.TextIOWrapper(io.BytesIO(), encoding, newline="\n")
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.setattr(group, "bitloom", lambda: print("\xe9 \udcff\xe9 \u65e5"))
    cli.main()
    out.flush()
    assert out.buffer.getvalue() == written


@pytest.mark.parametrize(("columns", "size", "width"), [("", 132, 132), ("", 0, 80), ("60", 132, 60), ("0", 132, 132)])
def test_lines_are_as_wide_as_the_terminal(columns, size, width, monkeypatch):
    """A pseudo-terminal that says 0 has 80 characters."""
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.FileIO(os.dup(1), "w")))
    monkeypatch.setattr(os, "get_terminal_size", lambda number: os.terminal_size((size, 24)))
    assert show._line_width() == width
