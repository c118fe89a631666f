"""Reads the tables that commands print, whatever the width of the terminal was."""

import re

LINE = re.compile(r"^[│|┃] (.*)[│|┃]$")  # a line between rows has no space there


def lines(text: str) -> list[list[str]]:
    """The cells of each printed line of a table, those of headings and of wrapped cells too."""
    matches = [LINE.match(line) for line in text.splitlines()]
    return [[cell.strip() for cell in re.split("[│|┃]", match.group(1))] for match in matches if match]


def row(text: str, label: str, columns: int | None = None) -> list[str]:
    """The cells of the row ``label``, from all parts of its table. columns : of them are asked for, >= 1, label apart.

    The label may stand in one line only of each part: tables whose cells are wrapped can't be read like this.
    """
    cells = [cell for line in lines(text) if line[0] == label for cell in line[1:]]
    assert columns is None or len(cells) >= columns, f"{label}: {columns} cells, found {cells}"
    return cells[:columns]
