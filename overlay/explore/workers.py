"""Who does the jobs: this process, several on this machine, or a Dask cluster.

The jobs of a search take a second each, those of a refit (synthesis) up to half a minute; the order of what comes back
is that of the tasks.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

NO_DASK = "--scheduler needs dask.distributed: pip install 'bitloom[cluster]'"


@dataclass(frozen=True)
class Workers:
    """jobs : processes.  scheduler : address of a Dask scheduler, or None."""

    jobs: int = 1
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise ValueError(f"workers: jobs must be >= 1, got {self.jobs}")

    def map(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        """``work`` of every task, in their order. ``work`` and tasks are pickled where others do them."""
        if self.scheduler is not None:
            yield from self._cluster(work, tasks)
        elif self.jobs > 1:
            with ProcessPoolExecutor(self.jobs) as pool:
                yield from pool.map(work, tasks)
        else:
            yield from map(work, tasks)

    def _cluster(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        try:
            from distributed import Client
        except ImportError:
            raise ImportError(NO_DASK) from None
        with Client(self.scheduler, timeout="10s") as client:
            futures = client.map(work, tasks, pure=False)
            for future in futures:
                yield future.result()
