"""Bytes of a file, and errors that name it."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LONGEST_REASON = 200
"""Characters of an error of a library that a message shows."""


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Read a whole file.

    Parameters
    ----------
    path : path
        A regular file, or a link to one.

    Returns
    -------
    bytes
        Its content.

    Raises
    ------
    OSError
        If there is no file, or it can't be read.
    ValueError
        If it is a folder, a device or a pipe, of which some have no end.
    """
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a device or a pipe"
        raise ValueError(f"{os.fspath(path)}: must be a file, got {kind}")
    return Path(path).read_bytes()


@contextmanager
def naming(where: object) -> Iterator[None]:
    """Put ``where: `` in front of the message of each ValueError that comes from the block."""
    try:
        yield
    except ValueError as e:
        raise ValueError(f"{where}: {reason(e)}") from None


def reason(error: BaseException) -> str:
    """An error in one line that fits a message: the first line of what it says, else its class."""
    text = error.args[0] if isinstance(error, KeyError) and error.args else str(error)
    lines = str(text).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def system_words(error: OSError) -> str:
    """An error of the system as thing, rule and value; the thing is a file, or standard output, which has no name. An
    error that isn't the system's, but pynq's, keeps its words."""
    if error.errno is None:
        return reason(error)
    said = error.strerror or type(error).__name__
    return f"{error.filename or 'standard output'}: must be usable, got: {said[:1].lower()}{said[1:]}"


def foreign_reason(error: BaseException) -> str:
    """As `reason`, of an error that isn't ours: what it quotes of a file may be of any length, and is cut off."""
    text = reason(error)
    return text if len(text) <= LONGEST_REASON else f"{text[: LONGEST_REASON - 3]}..."
