"""The order in which every map is wanted: pulled by its reader, row-major or column-major (spec B2, B7, D4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bitloom.golden.encoding import Ints
from bitloom.hls_gen.compiler.in_use import InUse
from bitloom.hls_gen.compiler.input_maps import is_input

from .stage import Stage
from .tables import StageTables, frozen

ORDERS = ("pull", "raster", "columns")
AUTOMATIC = ORDERS[:2]
"""Those that "auto" compares; columns are there for chunks of columns (hls_gen/compiler/choices.py)."""


class Visits(NamedTuple):
    """The valid taps of a stage, window after window."""

    window: Ints
    tap: Ints
    position: Ints
    """window, tap, position: of each tap its window, counted in the order of the map that the stage makes; its place in
    the kernel; and the position of the map that it reads."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Schedule:
    """Orders and tables of stages."""

    map_order: str
    """One of ORDERS."""
    tables: tuple[StageTables, ...]
    """Of each stage. The output order of a stage is the input order of the one that reads its map."""

    @cached_property
    def by_stage(self) -> Mapping[str, StageTables]:
        """The tables by the name of their stage."""
        return {tables.stage.name: tables for tables in self.tables}

    @property
    def input_orders(self) -> list[Ints]:
        """The pixel reorder (B2): row-major position of the i-th tuple to send, for each stage that reads the input."""
        return [tables.input_order for tables in self.tables if is_input(tables.stage.reads)]


_IN_USE = InUse[Schedule]()
"""Schedules by stages and map order."""


def schedule(chain: Sequence[Stage], map_order: str) -> Schedule:
    """Find the order of every map, and make the tables for it.

    A position that no window reads (stride larger than the kernel, borders) is neither sent nor computed, and neither
    is what only such positions need: the orders shrink all the way to the input. Where one stage reads each map, the
    positions kept are the same in all orders: some rows x some columns.

    A map with several readers has one order, and so have two maps that are added or read side by side: readers skip
    what others need. Such two maps have the same positions, too.

    Parameters
    ----------
    chain : sequence of Stage
        The stages, each behind those whose maps it reads and adds.
    map_order : str
        "pull" (B2): the last map is wanted row-major, each earlier map in the order in which its first reader visits it
        first; what others need beside follows. "raster": every map row-major. "columns": every map column after column,
        but for the last one, which leaves row-major. Which one takes less memory depends on the NPUs
        (hls_gen/compiler/plan.py, map order "auto").

    Returns
    -------
    Schedule
        Its tables are in the order of the stages.

    Raises
    ------
    ValueError
        If there is no stage, if a stage doesn't fit the maps that it reads and adds, or if there is no such map order.
    """
    _check(chain)
    if map_order not in ORDERS:
        raise ValueError(f"schedule: map_order must be one of {', '.join(ORDERS)}, got {map_order!r}")
    return _IN_USE.get((tuple(chain), map_order), lambda: _schedule(chain, map_order))


def _schedule(chain: Sequence[Stage], map_order: str) -> Schedule:
    """The schedule of stages, made anew."""
    orders, visits = _orders(chain, map_order)
    tables = (_tables(stage, orders, visits.pop(stage.name), map_order) for stage in chain)
    return Schedule(map_order=map_order, tables=tuple(tables))


def _orders(chain: Sequence[Stage], map_order: str) -> tuple[dict[str, Ints], dict[str, Visits]]:
    """The order in which each map is wanted, and the valid taps of each stage, by the name of the stage.

    Backwards, each map's order follows from those of its readers. A map that is added to another one must have the same
    positions. Where an earlier reader needs further positions, all orders are worked out anew with these.
    """
    last_of = _last_of_groups(chain)
    inputs = [stage.reads for stage in chain if is_input(stage.reads)]
    widths = {last_of[stage.reads]: stage.width for stage in chain}
    more: dict[str, list[Ints]] = {last: [] for last in last_of.values()}
    while True:
        orders = dict[str, Ints]()
        visits_by_stage = dict[str, Visits]()
        needs = {last: [*visits] for last, visits in more.items()}
        read = {name for stage in chain for name in (stage.reads, stage.adds, stage.joins)}
        for stage in chain:
            if stage.name not in read:
                orders[last_of[stage.name]] = frozen(np.arange(stage.output_size[0] * stage.output_size[1]))
        for stage in reversed(chain):
            last_map = last_of[stage.name]
            if last_map not in orders:
                orders[last_map] = _merged(needs[last_map], map_order, widths[last_map])
            visits_by_stage[stage.name] = _visits(stage, orders[last_map])
            needs[last_of[stage.reads]].insert(0, _first_visits(stage, visits_by_stage[stage.name]))
        for name in inputs:
            orders[last_of[name]] = _merged(needs[last_of[name]], map_order, widths[last_of[name]])
        missing = {last: np.setdiff1d(np.concatenate(visits), orders[last]) for last, visits in needs.items() if visits}
        if not any(len(positions) for positions in missing.values()):
            return {name: orders[last] for name, last in last_of.items()}, visits_by_stage
        for last, positions in missing.items():
            more[last] += [positions] * (len(positions) > 0)


def _last_of_groups(chain: Sequence[Stage]) -> dict[str, str]:
    """Map -> the map whose order it takes. Maps that are added to each other or read side by side, directly or by way
    of further maps, all take the order of the last of them."""
    inputs = (stage.reads for stage in chain if is_input(stage.reads))
    last_of = {name: name for name in (*inputs, *(stage.name for stage in chain))}
    place = {name: number for number, name in enumerate(last_of)}
    for stage in chain:
        pairs = [(stage.adds, stage.name)] * bool(stage.adds) + [(stage.reads, stage.joins)] * bool(stage.joins)
        for pair in pairs:
            both = {last_of[name] for name in pair}
            last = max(both, key=place.__getitem__)
            last_of |= {name: last for name, latest in last_of.items() if latest in both}
    return last_of


def _merged(orders: Sequence[Ints], map_order: str, width: int) -> Ints:
    """One order of all positions in ``orders``, of a map ``width`` wide. In pull order the positions of the first order
    come first, then those that other orders have besides."""
    positions = np.concatenate(orders)
    rising, places = np.unique(positions, return_index=True)
    if map_order == "pull":
        return frozen(positions[np.sort(places)])
    return frozen(rising if map_order == "raster" else rising[np.argsort(rising % width, kind="stable")])


def _check(chain: Sequence[Stage]) -> None:
    """Raise ValueError unless each stage reads the map of an earlier stage, in the size in which that stage makes the
    map; reads beside it, if anything, a map of the same size; and adds, if anything, a map of the size of its own."""
    if not chain:
        raise ValueError("schedule: there must be at least one stage (conv, dense or pool), got none")
    known = dict[str, Stage]()
    for stage in chain:
        maker = known.get(stage.reads)
        if maker is None and not is_input(stage.reads):
            raise ValueError(f"{stage.name}: must read the map of a stage before it, got {stage.reads}")
        if maker and maker.output_size != (stage.height, stage.width):
            rows, columns = maker.output_size
            raise ValueError(
                f"{stage.name}: must read the {rows} x {columns} map of {maker.name}, "
                f"got {stage.height} x {stage.width}"
            )
        beside = known.get(stage.joins)
        if stage.joins and (beside is None or beside.output_size != (stage.height, stage.width)):
            size = f"{stage.height} x {stage.width}"
            raise ValueError(f"{stage.name}: must read a map of {size} of a stage before it beside, got {stage.joins}")
        added = known.get(stage.adds)
        if stage.adds and added is None:
            raise ValueError(f"{stage.name}: must add the map of a stage before it, got {stage.adds}")
        if added and added.output_size != stage.output_size:
            sizes = [" x ".join(map(str, each.output_size)) for each in (stage, added)]
            raise ValueError(f"{stage.name}: must add a map of its own size, {sizes[0]}, got {sizes[1]}")
        known[stage.name] = stage


def _visits(stage: Stage, output_order: Ints) -> Visits:
    """The valid taps of a stage that makes its map in this order."""
    positions = stage.window.positions(stage.height, stage.width)[output_order]  # (windows, taps), -1 where invalid
    window, tap = np.nonzero(positions >= 0)
    return Visits(window, tap % stage.places, positions[window, tap])


def _first_visits(stage: Stage, visits: Visits) -> Ints:
    """The positions that a stage reads, in the order in which it visits them first."""
    position = visits.position
    first = np.full(stage.height * stage.width, -1)
    first[position[::-1]] = np.arange(len(position))[::-1]  # the last write stays: the first visit
    order: Ints = position[first[position] == np.arange(len(position))]
    return order


def _tables(stage: Stage, orders: Mapping[str, Ints], visits: Visits, map_order: str) -> StageTables:
    """The tables of one stage, where each map has its order."""
    input_order = orders[stage.reads]
    output_order = orders[stage.name]
    rank = np.full(stage.height * stage.width, -1)
    rank[input_order] = np.arange(len(input_order))
    return StageTables(
        stage=stage,
        map_order=map_order,
        input_order=input_order,
        output_order=output_order,
        window=frozen(visits.window),
        tap=frozen(visits.tap),
        index=frozen(rank[visits.position]),
    )
