"""Which intervals are tried where a run of the flow model takes long: the shortest ones whose designs may fit the
budget, by what the search knows of their area and cycles.

    chains that the search cuts                --> FEW intervals of each choice of engines
    mappings: rings, chains with copies        --> one interval of the BEST ones, where they beat the chain
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from .price import Price
from .task import FEW_NPUS, Connection, Task
from .tries import ROUNDS, Tries
from .variations import MapSetting

FEW = 3
"""Intervals of a connection that are tried."""
CLOSER = 3
"""Times that the gap between the shortest interval that may fit and the next shorter one is halved."""
BEST = 2
"""Mappings of rings, and of chains with copies, that are tried."""
RAISES = 9
"""Times that prices rise where weights are streamed."""
SHORTER = 4
"""How many times shorter than the chain's an interval of a mapping may be."""


@dataclass(frozen=True)
class Promise:
    """A task whose design may fit the budget, and what the search knows of that design."""

    task: Task
    """The task."""
    lut: int
    """LUTs, those of memory included."""
    cycles: int
    """Cycles a frame, or a round of several networks."""
    price: Price
    """The task's price after it has risen until the design may fit."""


Look = Callable[[Task], Promise | None]
"""Finds a task like the given one that may fit; None where there is none."""


def promising(tries: Tries, tasks: Sequence[Task], looked_at: Callable[[], None]) -> list[Task]:
    """Choose among the tasks of a sweep.

    Parameters
    ----------
    tries
        The search's data.
    tasks
        Tasks of one or several connections.
    looked_at
        Called for each interval that is looked at.

    Returns
    -------
    list of Task
        All of them, unless a run of the flow model takes long: then of each connection a few intervals, each with one
        price; where a rate is asked for, the longest ones. Weights are streamed where no chain of the first connection
        fits without, and no other connection is tried then; where none fits with them either, one task with streamed
        weights and one without are left, to find the nearest design.
    """
    if not tries.heavy:
        return list(tasks)

    seen = dict[tuple[Connection, MapSetting, int], Promise | None]()

    def look(task: Task) -> Promise | None:
        key = task.connection, task.setting, task.interval
        if key not in seen:
            looked_at()
            seen[key] = _fitting(tries, task)
        return seen[key]

    chosen = list[Task]()
    asked = tries.budget.cycles
    connections = list(dict.fromkeys(task.connection for task in tasks))
    for connection, setting in dict.fromkeys(
        (task.connection, task.setting) for task in tasks if task.connection.mapping is None
    ):
        by_interval = {
            task.interval: task for task in reversed(tasks) if (task.connection, task.setting) == (connection, setting)
        }
        ordered = [
            by_interval[interval] for interval in sorted(by_interval, key=lambda n: (n > asked, -n) if asked else n)
        ]
        rising = sorted(by_interval)
        longer = by_interval[rising[len(rising) // 2]], by_interval[rising[-1]]  # where neither fits, no interval does
        promises = list(islice(filter(None, map(look, ordered)), FEW)) if any(map(look, longer)) else []
        if not promises and connection == connections[0]:  # other engines and mappings take no less memory
            coming = _coming(tries, ordered)
            return list(islice(_streamed(tries, coming, looked_at), FEW)) or [*coming[-1:], *ordered[-1:]]
        fits = [promise.task for promise in promises] or ordered[-1:]
        shorter = [] if asked else [task for task in ordered if task.interval < fits[0].interval]
        nearer = _nearer(look, shorter[-1], fits[0]) if shorter and connection == tasks[0].connection else None
        chosen += [nearer.task, *fits[:-1]] if nearer else fits
    return chosen + _mapped(tries, look, [each for each in connections if each.mapping is not None], chosen)


def _coming(tries: Tries, tasks: Sequence[Task]) -> list[Task]:
    """The tasks with weights that come down the stream, and counters; none where streamed weights are not to be
    tried. It is for networks whose weights block RAM has no room for."""
    setting = MapSetting("raster", counters=True, streamed=True)
    return [replace(task, setting=setting) for task in tasks] if setting in tries.settings else []


def _streamed(tries: Tries, tasks: Sequence[Task], looked_at: Callable[[], None]) -> Iterator[Task]:
    """Of the tasks with streamed weights those that may fit, at the price at which they do."""
    for task in tasks:
        looked_at()
        promise = _promise(tries, task, RAISES)
        if promise:
            yield replace(promise.task, price=promise.price)


def _mapped(tries: Tries, look: Look, connections: Sequence[Connection], chains: Sequence[Task]) -> list[Task]:
    """One task for each of the best mappings: those with the fewest LUTs at the rate that is asked for, else those with
    the fewest cycles."""
    asked = tries.budget.cycles
    interval = int(asked) if asked else min(task.interval for task in chains)
    promises = list[Promise]()
    for connection in connections:
        promise = look(Task(connection, tries.first, interval, FEW_NPUS))
        if promise and not asked:
            promise = (
                _nearer(look, replace(promise.task, interval=interval // SHORTER), promise.task, CLOSER + 1) or promise
            )
        if promise:
            promises.append(promise)
    each = ([promise for promise in promises if promise.task.connection.closed == closed] for closed in (True, False))
    ranked = (sorted(kind, key=lambda promise: promise.lut if asked else promise.cycles) for kind in each)
    return [promise.task for kind in ranked for promise in kind[:BEST]]


def _nearer(look: Look, short: Task, fits: Task, halvings: int = CLOSER) -> Promise | None:
    """A task between one that can't fit and one that may, as near to the first as so many halvings find; None where
    none of these may fit."""
    nearest = None
    for _ in range(halvings):
        middle = replace(fits, interval=round((short.interval * fits.interval) ** 0.5))
        promise = look(middle)
        if promise:
            nearest = promise
            fits = promise.task
        else:
            short = middle
    return nearest


def _fitting(tries: Tries, task: Task) -> Promise | None:
    """The task, or one with counters for tables, which need memory, if it may fit; else None."""
    counted = replace(task, setting=replace(task.setting, map_order="raster", counters=True))
    tasks = (task, counted) if counted.setting in tries.settings and counted != task else (task,)
    return next((promise for task_of_kind in tasks if (promise := _promise(tries, task_of_kind))), None)


def _promise(tries: Tries, asked: Task, rounds: int = ROUNDS) -> Promise | None:
    """The offer of a task with prices that rise, if it isn't hopeless; else None."""
    offer = next((offer for offer in tries.offers(asked, rounds) if not offer.over), None)
    if offer is None:
        return None
    cycles = tries.connections.of(asked.connection, asked.setting).round(offer.mapped_npus)
    return Promise(asked, tries.luts(offer.candidate), cycles, offer.task.price)
