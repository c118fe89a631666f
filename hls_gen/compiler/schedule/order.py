"""The order in which every map is wanted: pulled by its reader, or row-major (spec B2, B7)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bitloom.golden.graph import INPUT
from bitloom.golden.network import Network

from .stage import Stage, stages
from .tables import Ints, StageTables, frozen

ORDERS = ("pull", "raster")


@dataclass(frozen=True, kw_only=True, eq=False)
class Schedule:
    """Orders and tables of stages.

    Attributes
    ----------
    map_order : str
        "pull" or "raster".
    tables : tuple of StageTables
        Of each stage. The output order of a stage is the input order of the one that reads its map.
    """

    map_order: str
    tables: tuple[StageTables, ...]

    @property
    def input_order(self) -> Ints:
        """The pixel reorder (B2): row-major position of the i-th tuple to send."""
        return self.tables[0].input_order

    @property
    def output_order(self) -> Ints:
        """Order in which the last map leaves: row-major, all positions."""
        return self.tables[-1].output_order


def schedule(chain: Network | Sequence[Stage], map_order: str) -> Schedule:
    """Find the order of every map, and make the tables for it.

    A position that no window reads (stride larger than the kernel, borders) is neither sent nor computed, and neither
    is what only such positions need: the orders shrink all the way to the input. The positions kept are the same in
    both orders: some rows x some columns.

    Parameters
    ----------
    chain : Network or sequence of Stage
        The stages, or the network whose stages are meant. One stage reads each map.
    map_order : str
        "pull" (B2): the last map is wanted row-major, each earlier map in the order in which its reader visits it
        first. "raster": every map row-major. Which one takes less memory depends on the NPUs (hls_gen/compiler/plan.py,
        map order "auto").

    Returns
    -------
    Schedule
        Its tables are in the order of the stages.

    Raises
    ------
    ValueError
        If there is no stage, if a stage doesn't fit the map that it reads, if several stages read a map, or if there
        is no such map order.
    """
    chain = linked(stages(chain) if isinstance(chain, Network) else chain)
    if map_order not in ORDERS:
        raise ValueError(f"schedule: map_order must be one of {', '.join(ORDERS)}, got {map_order!r}")
    rows, columns = chain[-1].output_size
    wanted = {chain[-1].name: frozen(np.arange(rows * columns))}  # of each map, by name
    tables: list[StageTables] = []
    for stage in reversed(chain):
        tables.insert(0, stage_tables(stage, wanted[stage.name], map_order))
        wanted[stage.reads] = tables[0].input_order
    return Schedule(map_order=map_order, tables=tuple(tables))


def linked(chain: Sequence[Stage]) -> list[Stage]:
    """The stages, each with the name of the stage whose map it reads.

    ValueError unless each reads the map of one before it that no other reads, and of the size that this one makes.
    """
    if not chain:
        raise ValueError("schedule: there must be at least one stage (conv, dense or pool), got none")
    before, readers = [INPUT, *(stage.name for stage in chain)], dict[str, str]()
    out = [replace(stage, reads=stage.reads or name) for stage, name in zip(chain, before)]
    by_name = {stage.name: stage for stage in out}
    for number, stage in enumerate(out):
        if stage.reads not in before[: number + 1]:
            raise ValueError(f"{stage.name}: must read the map of a stage before it, got {stage.reads}")
        if stage.reads in readers:
            others = f"{readers[stage.reads]} and {stage.name}"
            raise ValueError(f"{stage.reads}: one stage must read its map, got {others}")
        readers[stage.reads] = stage.name
        maker = by_name.get(stage.reads)
        if maker and maker.output_size != (stage.height, stage.width):
            rows, columns = maker.output_size
            raise ValueError(
                f"{stage.name}: must read the {rows} x {columns} map of {maker.name}, "
                f"got {stage.height} x {stage.width}"
            )
    return out


def stage_tables(stage: Stage, output_order: Ints, map_order: str) -> StageTables:
    """Make the tables of one stage.

    Parameters
    ----------
    stage : Stage
    output_order : (windows,) int64
        Row-major positions of the map that the stage makes, in the order in which they are wanted.
    map_order : str
        "pull" or "raster": the order in which the stage's own map is wanted.
    """
    visits = stage.window.positions(stage.height, stage.width)[output_order]  # (windows, taps), -1 where invalid
    window, tap = np.nonzero(visits >= 0)
    position = visits[window, tap]  # (valid taps)
    first = np.full(stage.height * stage.width, -1)
    first[position[::-1]] = np.arange(len(position))[::-1]  # the last write stays: the first visit
    if map_order == "pull":
        input_order = position[first[position] == np.arange(len(position))]
    else:
        input_order = np.flatnonzero(first >= 0)
    rank = np.full(stage.height * stage.width, -1)
    rank[input_order] = np.arange(len(input_order))
    return StageTables(
        stage=stage,
        map_order=map_order,
        input_order=frozen(input_order),
        output_order=output_order,
        window=frozen(window),
        tap=frozen(tap),
        index=frozen(rank[position]),
    )
