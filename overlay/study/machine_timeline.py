"""A picture of which unit of the training machine works when. Needs matplotlib."""

from collections.abc import Sequence
from pathlib import Path

from bitloom.golden.discrete.machine.interpreter import Work
from bitloom.golden.discrete.machine.units import UNITS
from bitloom.overlay.picture import picture

ROWS = {"io": "data access", "array": "slaves", "vector": "own arithmetic"}
"""What the rows are called, by unit."""


def plot_timeline(path: Path, title: str, work: Sequence[Work]) -> None:
    """Write the picture, as PNG or SVG by the file's ending; its folder is made if it isn't there.

    Parameters
    ----------
    path : Path
    title : str
    work : sequence of Work
        One or more, in order of issue.

    Raises
    ------
    ValueError
        If the file's name has another ending.
    ImportError
        If matplotlib is missing.
    """
    with picture(path, (11, 3.2)) as axes:
        first = min(item.begin for item in work)
        for item in work:
            for unit in item.units:
                begin = item.begin - first
                length = item.end - item.begin
                row = UNITS.index(unit)
                axes.barh(row, length, left=begin, height=0.7, edgecolor="white", color=f"C{row}")
                name = str(item.instruction).split()[1]
                axes.text(begin + length / 2, row, name, ha="center", va="center", fontsize=6, rotation=90)
        axes.set(title=title, xlabel="cycles", yticks=range(len(UNITS)))
        axes.set_yticklabels([ROWS[unit] for unit in UNITS])
        axes.invert_yaxis()
