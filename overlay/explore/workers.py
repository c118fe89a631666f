"""Who does the tasks of a search: this process, several on this machine, or a Dask cluster.

A task of a search takes a second, one of a refit (a synthesis) up to half a minute. Results come back in the order of
the tasks.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

NO_DASK = "--scheduler needs dask.distributed: pip install 'bitloom[cluster]'"
"""What to install for a cluster."""


@dataclass(frozen=True)
class Workers:
    """Who does tasks.

    Attributes
    ----------
    jobs
        Processes on this machine.
    scheduler
        Address of a Dask scheduler, whose workers are used instead; None: this machine.

    Raises
    ------
    ValueError
        If ``jobs`` is below 1.
    """

    jobs: int = 1
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise ValueError(f"workers: jobs must be >= 1, got {self.jobs}")

    def map(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        """Results of ``work`` on every task, in their order.

        ``work`` and the tasks are pickled where another process does them.

        Raises
        ------
        ImportError
            If a scheduler is given and Dask is missing.
        """
        if self.scheduler is not None:
            yield from self._cluster(work, tasks)
        elif self.jobs > 1:
            with ProcessPoolExecutor(self.jobs) as pool:
                yield from pool.map(work, tasks)
        else:
            yield from map(work, tasks)

    def _cluster(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        """The same on a Dask cluster."""
        try:
            from distributed import Client
        except ImportError:
            raise ImportError(NO_DASK) from None
        with Client(self.scheduler, timeout="10s") as client:
            futures = client.map(work, tasks, pure=False)
            for future in futures:
                yield future.result()
