"""Results of a search so far, in a file, from which a search that was interrupted goes on.

A search gives the same tasks in the same order each time, and a task the same rows. So the file is a list: the rows of
each task that is done, in the order of the tasks, and what the search depends on, for the file of another search is not
used.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from bitloom.golden.atomic import write_text
from bitloom.golden.names import shown
from bitloom.golden.reading.file import naming
from bitloom.golden.reading.json_text import read_json
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.area.netlist import Resources

from .candidate import Candidate
from .figures import Figures
from .tries import Row

FORMAT = "bitloom-search"
VERSION = 1


class Journal:
    """The tasks of a search that are done.

    Parameters
    ----------
    path
        The file, which need not be there; that of another search is replaced. None: nothing is kept.
    search
        Facts on which the search depends, as JSON data.

    Raises
    ------
    ValueError
        If the file holds no search.
    """

    def __init__(self, path: Path | None = None, search: Mapping[str, Any] | None = None) -> None:
        self._path = path
        self._search = dict(search or {})
        self._done: list[list[Row]] = []
        self._next = 0
        if path is None or not path.exists():
            return
        data = read_json(path, "a search")
        with naming(path):
            if not isinstance(data, dict) or (data.get("format"), data.get("version")) != (FORMAT, VERSION):
                rule = f"must be a search that was interrupted, format {FORMAT!r}, version {VERSION}"
                raise ValueError(f"{rule}, got {shown(data)}")
            if data.get("search") == self._search:
                self._done = [_rows(number, rows) for number, rows in enumerate(data.get("tasks", []))]

    def done(self, count: int) -> list[list[Row]]:
        """The rows of those of the next ``count`` tasks that were done before."""
        before = self._done[self._next : self._next + count]
        self._next += len(before)
        return before

    def keep(self, rows: Sequence[Row]) -> None:
        """Write that the next task is done, with its rows."""
        if self._path is None:
            return
        self._done.append(list(rows))
        self._next += 1
        tasks = [[_data(row) for row in each] for each in self._done]
        data = {"format": FORMAT, "version": VERSION, "search": self._search, "tasks": tasks}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_text(self._path, json.dumps(data) + "\n")

    def end(self) -> None:
        """The search is at its end, and the file has no use any more."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def _data(row: Row) -> dict[str, Any]:
    """A row as JSON data, with all memory sizes of its NPUs, which a foldings file leaves out."""
    candidate = {
        **{field.name: getattr(row.candidate, field.name) for field in fields(Candidate)},
        "npus": [npu.to_dict() for npu in row.candidate.npus],
    }
    return {"candidate": candidate, "figures": asdict(row.figures), "asked": row.asked, "fits": row.fits}


def _rows(number: int, data: Any) -> list[Row]:
    """The rows of a task, by its number; ValueError where they aren't whole."""
    try:
        return [_row(row) for row in data]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        got = f"{type(error).__name__}: {error}"
        raise ValueError(f"tasks must be lists of whole rows, got another in task {number}: {got}") from None


def _row(data: Any) -> Row:
    candidate = {key: tuple(value) if isinstance(value, list) else value for key, value in data["candidate"].items()}
    candidate["npus"] = tuple(Npu.from_dict(npu) for npu in candidate["npus"])
    figures = dict(data["figures"])
    area = Resources(**figures.pop("area"))
    return Row(Candidate(**candidate), Figures(area, **figures), data["asked"], data["fits"])
