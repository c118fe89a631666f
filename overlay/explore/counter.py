"""How far a search is, for a progress bar."""

from collections.abc import Callable, Sequence
from typing import Any

from .tries import Row
from .workers import Workers

Progress = Callable[..., None]
"""Takes tasks that are done and all of them, and by the name ``what`` what is under way."""


class Counter:
    """Counts tasks that are done, for a progress bar."""

    def __init__(self, workers: Workers, progress: Progress | None):
        self.total: int | None = None
        self._workers = workers
        self._progress = progress
        self._what = ""
        self._done = self._looked_at = 0
        self.begin("intervals that may fit")

    def begin(self, what: str) -> None:
        """Something is under way."""
        self._what = what
        self._tell(self._done)

    def looked_at(self) -> None:
        """One more interval was looked at, before it is known how many tasks there are."""
        self._looked_at += 1
        self._tell(self._looked_at)

    def rows(self, what: str, work: Callable[[Any], list[Row]], tasks: Sequence[Any], out: list[Row]) -> None:
        """Append what ``work`` gives for the tasks to ``out``, counted one by one; ``what`` is under way."""
        self.begin(what)
        for found in self._workers.map(work, tasks):
            out += found
            self._done += 1
            self._tell(self._done)

    def end(self) -> None:
        """All is done, also where fewer halvings were needed."""
        self._tell(self.total)

    def _tell(self, done: int | None) -> None:
        if self._progress is not None:
            self._progress(done, self.total, what=self._what)
