"""A board of one's own, from a small TOML file.

    name = "AUP-ZU3-4GB"
    part = "xczu3eg-sfvc784-2-e"
    board_part = "realdigital.org:aup-zu3-4gb:part0"
    board_files = "https://www.realdigital.org"

    [budget]
    lut = 70560
    lutram = 28800
    ff = 141120
    bram36 = 216
    dsp = 360

Documented in docs/how-to/board.md, "A board of your own".
"""

import os
import sys
from pathlib import Path
from typing import Any

from bitloom.golden.reading.file import naming, read_file, reason
from bitloom.hls_gen.design.reader import Reader

from .boards import Board, board

SUFFIX = ".toml"
"""Ending of such a file's name; any other text that is given for a board is a board's name."""
MOST_BYTES = 16 << 10
"""Bytes of such a file at most: a file with comments has a few hundred."""
MOST_BRACKETS = 32
"""Brackets and braces at most, so that values can't lie deeper in each other than the parser can go."""
KEYS = ("name", "part", "board_part", "board_files", "budget")
MOST = {"lut": 10_000_000, "lutram": 10_000_000, "ff": 20_000_000, "bram36": 100_000, "dsp": 100_000}
"""Entries of the budget, and what each may be at most: several times what the largest devices have."""
LEAST_LUT_RAM = 0.3
"""Share of the LUTs that may be memory where a board doesn't say how many: the xc7z015 has 31 %, and no
Zynq is known here that has less."""


def find_board(text: str) -> Board:
    """The board that a user means.

    Parameters
    ----------
    text
        A name of ours, in upper or lower case, or the path of a file that ends in ``.toml``.

    Raises
    ------
    OSError
        If there is no such file.
    ValueError
        If there is no board of that name, or the file isn't what `load_board` takes.
    """
    return load_board(text) if is_board_file(text) else board(text)


def is_board_file(text: str) -> bool:
    """Whether a user means a file of a board, and no name."""
    return text.lower().endswith(SUFFIX)


def load_board(path: str | os.PathLike[str]) -> Board:
    """Read a board.

    Parameters
    ----------
    path
        A TOML file with ``name``, ``part``, ``board_part`` and the table ``budget``, all of it needed, and
        ``board_files`` and the budget's ``lutram``, which may be left out: LEAST_LUT_RAM of the LUTs then.

    Raises
    ------
    OSError
        If there is no file.
    ValueError
        If it is too large, no TOML, or says too little, too much or something impossible. One line with the path.
    """
    path = Path(path)
    if path.is_file() and path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{path}: a board must be <= {MOST_BYTES:,} bytes, got {path.stat().st_size:,}")
    data = read_file(path)
    with naming(path):
        return board_of(_parse(data))


def _parse(data: bytes) -> dict[str, Any]:
    """TOML as Python's values."""
    brackets = data.count(b"[") + data.count(b"{")
    if brackets > MOST_BRACKETS:
        raise ValueError(f"a board must have <= {MOST_BRACKETS} brackets, got {brackets}")
    if sys.version_info >= (3, 11):
        import tomllib
    else:  # of the extra cli: needed where a file is read, and nowhere else
        import tomli as tomllib
    try:
        return tomllib.loads(data.decode())
    except ValueError as e:
        raise ValueError(f"a board must be TOML, got: {reason(e)}") from None


def board_of(data: dict[str, Any]) -> Board:
    """The board that the values of a file say, or `Board.to_dict`; errors as of `load_board`, without the path."""
    whole = Reader(data, "board")
    whole.only(KEYS)
    whole.require(isinstance(data.get("budget"), dict), "budget must be a table", data.get("budget"))
    budget = Reader(data["budget"], "board: budget")
    budget.only(MOST)
    texts = {key: whole.text(key) for key in ("name", "part", "board_part")}
    source = whole.text("board_files") if "board_files" in data else "the board's maker"
    sizes = {key: budget.number(key, 1, most) for key, most in MOST.items() if key in budget.data or key != "lutram"}
    sizes.setdefault("lutram", int(LEAST_LUT_RAM * sizes["lut"]) or 1)
    return Board(**texts, **sizes, board_files=source)
