"""The driver in C99, for boards without pynq or without an operating system. docs/how-to/without-pynq.md tells how."""

from pathlib import Path

FOLDER = Path(__file__).parent
"""Where the C files lie, in a clone and in an installed package."""
SUFFIXES = (".c", ".h", ".hpp", ".txt")


def files() -> tuple[Path, ...]:
    """The files of the C side: sources, headers, the example and the CMake file, all of one folder."""
    return tuple(sorted(path for path in FOLDER.iterdir() if path.suffix in SUFFIXES))
