"""Bytes of files: what is no file, and messages that fit in a line."""

import os

import pytest

from bitloom.golden.names import shown
from bitloom.golden.reading.file import foreign_reason, naming, read_file, reason
from tests.errors import value_error


def test_what_is_no_file_is_refused(tmp_path):
    with value_error(f"{tmp_path}: must be a file, got a folder"):
        read_file(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with value_error(f"{path}: must be a file, got a device or a pipe"):
            read_file(path)
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "absent")
    (tmp_path / "there").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("there")
    assert read_file(tmp_path / "link") == b"abc"


def test_errors_are_named_and_in_one_line():
    with value_error("a.npz: first"), naming("a.npz"):
        raise ValueError("first\nsecond")
    assert reason(KeyError("missing")) == "missing"
    assert reason(EOFError()) == "EOFError"
    assert foreign_reason(ValueError("x" * 200)) == "x" * 200
    assert foreign_reason(ValueError("x" * 201)) == "x" * 197 + "..."
    assert shown("\x1b[31m") == "'\\x1b[31m'"
    assert shown("x" * 100) == "'" + "x" * 56 + "..."
