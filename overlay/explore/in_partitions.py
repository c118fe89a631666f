"""Designs in partitions, where no design within the budget holds the whole network.

    intervals --one NPU, block RAM without a price--> foldings --cut for the block RAM that there is--> figures

A partition has a few layers, so that most NPUs of a chain would wait: one NPU is tried. Cycles are those of all
programs together, by the flow model; their loading, once a round of frames, is not in them.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from bitloom.overlay.build.partitioning import fitting_partitions

from .candidate import Candidate
from .figures import figures
from .task import FEW_NPUS, Connection, Task
from .tries import Row, Tries

MOST_CUT = 4
"""Foldings that are cut at most, the fastest ones that fit but for block RAM: cutting takes most of the time."""


def tasks(tries: Tries, points: int) -> list[Task]:
    """The tasks of the search: one NPU for all layers, in intervals from about the fastest one on.

    Parameters
    ----------
    tries
        Of the network, with a budget that has no limit of block RAM.
    points
        Intervals.
    """
    connection = Connection(tries.engines[0], (0,) * len(tries.names(tries.engines[0])))
    settings = [replace(setting, streamed=False) for setting in dict.fromkeys(tries.connections.swept)]
    return [
        Task(connection, setting, interval, FEW_NPUS)
        for setting in settings
        for interval in tries.intervals(points, setting)
    ]


def cut_rows(tries: Tries, limit: Tries, each: Sequence[Task]) -> list[Row]:
    """Rows of the fastest foldings of some tasks, in partitions: those that can be cut and finish a frame.

    Parameters
    ----------
    tries
        As of `tasks`.
    limit
        With the whole budget.
    each
        The tasks.
    """
    by_npus = dict[object, tuple[int, Candidate]]()
    for task in each:
        for offer in islice((offer for offer in tries.offers(task) if not offer.over), 1):
            by_npus.setdefault(offer.candidate.npus, (task.interval, offer.candidate))
    fastest = sorted(by_npus.values(), key=lambda pair: pair[0])
    rows = (_cut(limit, candidate, interval) for interval, candidate in fastest)
    return list(islice((row for row in rows if row is not None), MOST_CUT))


def _cut(limit: Tries, candidate: Candidate, interval: int) -> Row | None:
    """The row of a candidate that is cut for the budget's block RAM; None where it can't be."""
    assert limit.budget.bram36 is not None
    whole = replace(candidate, dataflow={})
    try:
        cuts = fitting_partitions(limit.model, whole.npus, limit.budget.bram36, whole.choices, whole.stream_bits)
    except ValueError:
        return None
    cut_candidate = replace(whole, partitions=cuts)
    reached = figures(limit.model, cut_candidate)
    return None if reached is None else Row(cut_candidate, reached, interval, limit.budget.holds(reached))
