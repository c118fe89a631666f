"""Output that all commands share: errors in one line, tables for people and JSON for machines."""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from errno import ENOSPC
from functools import wraps
from typing import Any

import click
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bitloom.driver.errors import DeviceError
from bitloom.golden.reading.file import system_words
from bitloom.overlay.virtual.sim import BuildError, ProtocolError, SimulationTimeout

from . import interrupted

EXPECTED = (
    ValueError,
    OSError,
    ImportError,
    DeviceError,
    BuildError,
    ProtocolError,
    SimulationTimeout,
)


PIPED_WIDTH = 80
"""Characters of a line where output is no terminal, as far as wrapping between words allows it."""
PROSE_WORDS = 6
"""Words that a cell of figures has at most."""
LONG_WORD = 16
"""Characters that a word of a label has at least where it may be wrapped inside."""


json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on standard output.")
"""``--json``."""


def one_line_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Expected errors end the command with one line and status 1; an interrupt ends it with status 130."""

    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except EXPECTED as e:
            raise SystemExit(_line(e)) from None
        except KeyboardInterrupt:
            interrupted()

    return wrapped


def _line(error: BaseException) -> str:
    if isinstance(error, OSError) and (error.filename or error.errno == ENOSPC):  # without a name: standard output
        text = _file_error(error)
    else:
        text = str(error) or type(error).__name__
    first, _, rest = text.partition("\n")
    first = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in first)  # a file's words must not steer a terminal
    return f"bitloom: {first}" + (f"\n{rest}" if isinstance(error, SimulationTimeout) and rest else "")


def _file_error(error: OSError) -> str:
    """The system's error on a file, as thing, rule and value."""
    if isinstance(error, FileNotFoundError):
        return f"{error.filename}: must exist, got no such file or folder"
    if isinstance(error, FileExistsError):  # a folder was to be made there
        kind = "a file" if os.path.exists(error.filename) else "a link to nothing"
        return f"{error.filename}: must be a folder, got {kind}"
    return system_words(error)


def table(title: str, rows: Mapping[str, str]) -> None:
    """Print names and values, one pair a row, on standard output.

    Parameters
    ----------
    title : str
        Line above the table; never wrapped.
    rows : mapping of str to str
        Value of each name. A value that is too long for the terminal is wrapped between words, never inside one.
    """
    _print_title(title)
    _print_columns(
        [_TableColumn("", list(rows)), _TableColumn("", list(rows.values()))], 1, _line_width(), headings=False
    )


def grid(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], labels: int = 1) -> None:
    """Print rows under headings, on standard output.

    No cell is ever cut. Where the terminal is too narrow, headings are wrapped between words; where that is not enough,
    the table is printed in several parts one below the other, each with the label columns. Words of labels that are
    longer than LONG_WORD are wrapped inside where nothing else helps: names in files of others may be of any length.
    Output that is no terminal, and for which COLUMNS is not set, has lines of PIPED_WIDTH characters where wrapping is
    enough for that; else they are as long as the table needs, in one part.

    Parameters
    ----------
    title : str
        Line above the table; never wrapped.
    header : sequence of str
        Heading of each column.
    rows : sequence of sequence of str
        A cell for each heading.
    labels : int
        Columns, from the left, that name the row; >= 1.
    """
    columns = [_TableColumn(heading, [row[k] for row in rows]) for k, heading in enumerate(header)]
    room = _line_width()
    _print_title(title)
    for part in _parts(columns, labels, room):
        _print_columns(part, labels, room)


@dataclass(frozen=True)
class _TableColumn:
    """A column of a table."""

    heading: str
    cells: list[str]

    @property
    def is_prose(self) -> bool:
        """Whether the cells are sentences, which are read from the left; figures stand at the right."""
        return any(len(cell.split()) > PROSE_WORDS for cell in self.cells)

    @property
    def width(self) -> int:
        """Characters that the column takes when nothing is wrapped."""
        return max(cell_len(text) for text in (self.heading, *self.cells))

    @property
    def width_wrapped_heading(self) -> int:
        """Characters that the column takes when its heading is wrapped between words."""
        return max(cell_len(text) for text in (*self.heading.split(), *self.cells, ""))

    @property
    def width_wrapped(self) -> int:
        """Characters that the column takes when heading and cells are wrapped between words."""
        return max(cell_len(word) for text in (self.heading, *self.cells, "") for word in (text.split() or [""]))


def _line_width() -> int | None:
    """Characters that a line of standard output may have; None where there is no limit."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80  # some pseudo-terminals say 0
    except (AttributeError, ValueError, OSError):  # no terminal
        return None


def _total(widths: Sequence[int]) -> int:
    """Characters of a row whose columns have these widths: each has a space on both sides, and lines between."""
    return sum(widths) + 3 * len(widths) + 1


def _parts(columns: list[_TableColumn], labels: int, room: int | None) -> list[list[_TableColumn]]:
    """The columns in as many parts as fit ``room`` with wrapped headings, each with the label columns first."""
    names = columns[:labels]
    others = columns[labels:]
    parts: list[list[_TableColumn]] = []
    for column in others:
        widths = [c.width_wrapped_heading for c in [*(parts[-1] if parts else names), column]]
        if parts and (room is None or _total(widths) <= room):
            parts[-1].append(column)
        else:
            parts.append([*names, column])
    return parts or [names]


def _widths(columns: list[_TableColumn], labels: int, room: int | None) -> list[int]:
    """Width of each column: as wide as the room allows, and never less than its longest word.

    Wrapped are, as far as the room needs it, headings, then values, then labels, then long words of labels; labels only
    where that is enough. Without a limit columns are wrapped if that brings them to PIPED_WIDTH.
    """
    natural = [column.width for column in columns]
    if room is None:
        wrapped = _widths(columns, labels, PIPED_WIDTH)
        return wrapped if _total(wrapped) <= PIPED_WIDTH else natural
    if _total(natural) <= room:
        return natural
    headings = [column.width_wrapped_heading for column in columns]
    values = headings[:labels] + [column.width_wrapped for column in columns[labels:]]
    everything = [column.width_wrapped for column in columns]
    tried = (headings, values, everything, _folded(everything, labels, room))
    least = next((widths for widths in tried if _total(widths) <= room), values)
    widths = list(least)
    for _ in range(max(0, room - _total(least))):  # to the column whose cells have most lines
        widths[max(range(len(widths)), key=lambda k: natural[k] / widths[k] if natural[k] > widths[k] else 0)] += 1
    return widths


def _folded(widths: list[int], labels: int, room: int) -> list[int]:
    """The widths with label columns so narrow that the row fits the room, but none below LONG_WORD."""
    folded = list(widths)
    for _ in range(_total(widths) - room):
        widest = max(range(labels), key=lambda k: folded[k])
        folded[widest] -= folded[widest] > LONG_WORD
    return folded


def _print_title(title: str) -> None:
    Console().print(Text(title, style="italic"), soft_wrap=True)


def _print_columns(columns: list[_TableColumn], labels: int, room: int | None, headings: bool = True) -> None:
    """One table on standard output; longer lines than ``room`` only where a word needs them."""
    widths = _widths(columns, labels, room)
    out = Table(show_header=headings)
    for k, (column, width) in enumerate(zip(columns, widths)):
        style = "bold" if k < labels else None
        justify = "left" if k < labels or (headings and column.is_prose) else "right"
        out.add_column(Text(column.heading), width=width, style=style, justify=justify, overflow="fold")
    for row in zip(*(column.cells for column in columns)):
        out.add_row(*(Text(cell) for cell in row))
    # With the height, rich asks neither the terminal nor TERM for the width.
    Console(width=_total(widths), height=25).print(out)


def dump(data: Any) -> None:
    """JSON on standard output."""
    click.echo(json.dumps(data, indent=1))


def fail_unless_exact(network: str, frames: int, exact: int) -> None:
    """ValueError unless every frame equals golden."""
    if exact != frames:
        raise ValueError(f"{network}: all {frames} frames must equal golden, got {exact}")
