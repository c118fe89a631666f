"""The order in which every map is wanted: pulled by its reader, or row-major (spec B2, B7)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from bitloom.golden.network import Network

from .stage import Stage, stages
from .tables import Ints, StageTables, frozen

ORDERS = ("pull", "raster")


@dataclass(frozen=True, kw_only=True, eq=False)
class Schedule:
    """Orders and tables of a chain of stages; tables[i].output_order is tables[i + 1].input_order."""

    map_order: str
    """"pull" or "raster"."""
    tables: tuple[StageTables, ...]
    compared: tuple["Schedule", ...] = field(default=(), repr=False)
    """Every order's schedule, if ``auto`` chose."""

    @property
    def input_order(self) -> Ints:
        """The pixel reorder (B2): row-major position of the i-th tuple to send."""
        return self.tables[0].input_order

    @property
    def output_order(self) -> Ints:
        """Order in which the last map leaves: row-major, all positions."""
        return self.tables[-1].output_order

    @property
    def tuple_memory_bits(self) -> int:
        """Bits of all tuple memories at their smallest capacity, convolutions with re-reading."""
        return sum(t.capacity(t.stage.kind == "conv") * t.stage.tuple_bits for t in self.tables)

    @property
    def table_bits(self) -> int:
        """Bits of all tables for those capacities."""
        return sum(t.bits(t.capacity(t.stage.kind == "conv")).total for t in self.tables)

    @property
    def memory_bits(self) -> int:
        """Bits of tuple memories and tables."""
        return self.tuple_memory_bits + self.table_bits


def schedule(chain: Network | Sequence[Stage], map_order: str = "auto") -> Schedule:
    """Schedule of a network's stages, or of ``chain`` itself.

    map_order : "pull" (B2): the last map is wanted row-major; each earlier map in the order in which its reader visits
        it first. "raster": every map row-major. "auto": the one with fewer ``memory_bits``, pull if equal (B7).

    In both orders a position that no window reads (stride larger than the kernel, borders) is neither sent nor
    computed, and neither is what only such positions need: in a chain the orders shrink all the way to the input.
    The positions kept are the same in both: some rows x some columns.
    """
    chain = stages(chain) if isinstance(chain, Network) else tuple(chain)
    check(chain)
    if map_order == "auto":
        compared = tuple(schedule(chain, o) for o in ORDERS)
        best = min(compared, key=lambda s: s.memory_bits)
        return Schedule(map_order=best.map_order, tables=best.tables, compared=compared)
    if map_order not in ORDERS:
        raise ValueError(f"schedule: map_order must be one of {', '.join(ORDERS)}, auto, got {map_order!r}")
    rows, columns = chain[-1].output_size
    wanted = frozen(np.arange(rows * columns))
    tables: list[StageTables] = []
    for stage in reversed(chain):
        tables.insert(0, stage_tables(stage, wanted, map_order))
        wanted = tables[0].input_order
    return Schedule(map_order=map_order, tables=tuple(tables))


def check(chain: Sequence[Stage]) -> None:
    """Raise ValueError unless each stage reads a map of the size that the one before it makes."""
    if not chain:
        raise ValueError("schedule: there must be at least one stage (conv, dense or pool), got none")
    for before, stage in pairwise(chain):
        if before.output_size != (stage.height, stage.width):
            rows, columns = before.output_size
            raise ValueError(
                f"{stage.name}: must read the {rows} x {columns} map of {before.name}, "
                f"got {stage.height} x {stage.width}"
            )


def stage_tables(stage: Stage, output_order: Ints, map_order: str) -> StageTables:
    """Tables of a stage that makes its outputs in ``output_order``, reading its map in ``map_order``."""
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
