"""Who does the tasks of a search: this process, several on this machine, or a Dask cluster.

A task of a search takes a second, one of a refit (a synthesis) up to half a minute. Results come back in the order of
the tasks.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from typing import Any

from bitloom.golden.distribution import pip_install
from bitloom.golden.names import shown
from bitloom.golden.reading.file import reason

MOST_JOBS = 256
"""Processes at most: all of them are begun at once, and each takes about 100 MB."""
AHEAD = 2
"""Tasks for each process that are on their way, so that none waits for the next."""
NO_DASK = f"--scheduler needs dask.distributed: {pip_install('cluster')}"
"""Message where a cluster's package is missing: the command that installs it."""


@dataclass(frozen=True)
class Workers:
    """Who does tasks.

    Raises
    ------
    ValueError
        If ``jobs`` is out of range.
    """

    jobs: int = 1
    """Processes on this machine, 1 to MOST_JOBS."""
    scheduler: str | None = None
    """Address of a Dask scheduler, whose workers are used instead; None: this machine."""

    def __post_init__(self) -> None:
        if not 1 <= self.jobs <= MOST_JOBS:
            raise ValueError(f"workers: jobs must be 1..{MOST_JOBS}, got {self.jobs}")

    def map(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        """Results of ``work`` on every task, in their order.

        Another process gets ``work`` once, when it begins: what ``work`` keeps there, its next task finds. Tasks are
        pickled.

        Raises
        ------
        ImportError
            If a scheduler is given and Dask is missing.
        """
        if self.scheduler is not None:
            with _client(self.scheduler) as client:
                for future in client.map(work, tasks, pure=False):
                    yield future.result()
        elif self.jobs > 1:
            with ProcessPoolExecutor(self.jobs, initializer=_begin, initargs=(work,)) as pool:
                try:
                    yield from pool.map(_do, tasks)
                except BaseException:  # an interrupt: nobody waits for the other tasks
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
        else:
            yield from map(work, tasks)

    def stream(self, work: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterator[Any]:
        """As ``map``, but a task is asked for only when a process will soon need it: there may be any number."""
        if self.scheduler is not None:
            with _client(self.scheduler) as client:
                most = AHEAD * max(1, sum(client.ncores().values()))
                yield from _ahead(lambda task: client.submit(work, task, pure=False), tasks, most)
        elif self.jobs > 1:
            spawn = get_context("spawn")  # gRPC and models survive no fork
            with ProcessPoolExecutor(self.jobs, spawn, initializer=end_with_parent) as pool:
                yield from _ahead(lambda task: pool.submit(work, task), tasks, AHEAD * self.jobs)
        else:
            yield from map(work, tasks)


_WORK: Callable[[Any], Any]
"""Function that a process calls with every task that it gets."""


def _begin(work: Callable[[Any], Any]) -> None:
    """Let this process do ``work``, as long as the one that began it is there."""
    global _WORK
    _WORK = work
    end_with_parent()


def _do(task: Any) -> Any:
    """The result of a task."""
    return _WORK(task)


def end_with_parent() -> None:
    """Let this process end when its parent does, even where the parent is killed: nobody waits for this process
    then."""
    parent = parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _client(scheduler: str | None) -> Any:
    """A connection to a Dask scheduler.

    ImportError where Dask is missing, ValueError where the address is none, OSError where nobody answers there.
    """
    try:
        from distributed import Client
    except ImportError:
        raise ImportError(NO_DASK) from None
    try:
        return Client(scheduler, timeout="10s")
    except ValueError as error:
        rule = "--scheduler must be the address of a Dask scheduler"
        raise ValueError(f"{rule}, got {shown(scheduler)}: {reason(error)}") from None
    except OSError as error:
        raise OSError(f"--scheduler {scheduler}: no Dask scheduler answers: {reason(error)}") from None


def _ahead(submit: Callable[[Any], Any], tasks: Iterable[Any], most: int) -> Iterator[Any]:
    """Results in the order of the tasks, of which ``most`` are on their way at a time."""
    waiting: deque[Any] = deque()
    for task in tasks:
        waiting.append(submit(task))
        if len(waiting) >= most:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
