"""The two map orders of a network side by side (spec B7): tuples that must be held, and bits of tables.

Both count what the schedule needs at the least (hls_gen/compiler/schedule): capacities to the tuple, and tables as
narrow as their contents. Memories of a design are a little larger: powers of two, and rows as wide as the design's
fields.
"""

from typing import Any

from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.schedule import Schedule
from bitloom.hls_gen.design.npu import Npu

TOTALS = ("tuple_memory_bits", "table_bits", "memory_bits")
"""Figures of a whole network."""


def map_orders(model: Model, folding: Npu) -> dict[str, Any]:
    """What "pull" and "raster" need, and which of the two "auto" takes: the one with fewer memory_bits.

    Parameters
    ----------
    model
        The network.
    folding
        The one NPU that it runs on.

    Returns
    -------
    dict
        ``layers`` and ``totals`` by map order. Of a layer, ``tuples`` is the smallest legal capacity where a window is
        passed once for each group of kernels (convolutions) or once (pools), ``tuples_one_pass`` where one group holds
        all kernels.

    Raises
    ------
    ValueError
        If the engine of ``folding`` can't compute the network.
    """
    chosen = plan(model, [folding]).schedule
    both = {s.map_order: s for s in chosen.compared}
    layers = [
        {
            "name": table.stage.name, "tuple_bits": table.stage.tuple_bits,
            **{order: _layer(s, index) for order, s in both.items()},
        }
        for index, table in enumerate(chosen.tables)
    ]  # fmt: skip
    totals = {order: {key: getattr(s, key) for key in TOTALS} for order, s in both.items()}
    return {"network": model.network.name, "auto": chosen.map_order, "layers": layers, "totals": totals}


def _layer(chosen: Schedule, index: int) -> dict[str, int]:
    """Figures of one layer in one map order."""
    table = chosen.tables[index]
    tuples = table.capacity(table.stage.kind == "conv")
    return {"tuples": tuples, "tuples_one_pass": table.capacity(False), "table_bits": table.bits(tuples).total}
