"""Which intervals are tried where a run of the flow model takes long: the shortest ones whose designs may fit the
budget, by what the search knows of their area and cycles.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from .task import STEPS, Task, raised
from .tries import ROUNDS, Tries

FEW = 3
"""Intervals of a way that are tried."""
CLOSER = 3
"""Times that the gap between the shortest interval that may fit and the next shorter one is halved."""


def promising(tries: Tries, tasks: Sequence[Task]) -> list[Task]:
    """Choose among the tasks of a sweep.

    Parameters
    ----------
    tries
        The search's data.
    tasks
        Tasks of one or several ways.

    Returns
    -------
    list of Task
        All of them, unless a run of the flow model takes long: then of each way a few intervals, each with one price.
    """
    if not tries.heavy:
        return list(tasks)
    found = list[Task]()
    for way in dict.fromkeys(task.way for task in tasks):
        own = {task.interval: task for task in reversed(tasks) if task.way == way}
        mine = [own[interval] for interval in sorted(own)]
        fits = list(islice((made for task in mine if (made := _fitting(tries, task))), FEW)) or mine[-1:]
        shorter = [task for task in mine if task.interval < fits[0].interval]
        nearer = _nearer(tries, shorter[-1], fits[0]) if shorter and way == tasks[0].way else None
        found += [nearer, *fits[:-1]] if nearer else fits
    return found


def _nearer(tries: Tries, short: Task, fits: Task) -> Task | None:
    """A task between one that can't fit and one that may, as near to the first as CLOSER halvings find; None where none
    of these may fit."""
    found = None
    for _ in range(CLOSER):
        middle = replace(fits, interval=round((short.interval * fits.interval) ** 0.5))
        made = _fitting(tries, middle)
        if made:
            found = fits = made
        else:
            short = middle
    return found


def _fitting(tries: Tries, task: Task) -> Task | None:
    """The task, or one with counters for tables, which need memory, if it may fit; else None."""
    counted = replace(task, setting=replace(task.setting, map_order="raster", counters=True))
    tasks = (task, counted) if counted.setting in tries.settings and counted != task else (task,)
    return next((one for one in tasks if _may_fit(tries, one)), None)


def _may_fit(tries: Tries, task: Task) -> bool:
    """Whether a task comes to a candidate that isn't hopeless, with prices that rise."""
    for _ in range(ROUNDS):
        segments = tries.segments(task)
        if segments is None:
            return False
        over = tries.over(tries.candidate(segments, task.setting))
        if not over:
            return True
        dear = over.keys() & STEPS.keys()
        if not dear:
            return False
        task = replace(task, price=raised(task.price, dear))
    return False
