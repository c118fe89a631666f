"""The map orders of a network side by side (spec B7, D4): tuples that must be held, and bits of memories.

The figures of a layer are what its schedule needs at the least (hls_gen/compiler/schedule): capacities to the tuple,
and tables as narrow as their contents. The totals are what is built: memories that all layers share, tuple memories of
powers of two, tables with rows as wide as the NPU's fields.
"""

from typing import Any

from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.schedule import ORDERS, StageTables
from bitloom.hls_gen.design.npu import Npu

TOTALS = ("tuple_memory_bits", "table_bits", "memory_bits")
"""Figures of a whole network."""


def map_orders(model: Model, folding: Npu) -> dict[str, Any]:
    """Memory that each map order needs, and the one of "pull" and "raster" that "auto" takes: the one with fewer
    memory_bits.

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
    auto = plan(model, [folding])
    plans = {order: plan(model, [folding], CompileChoices(map_order=order)) for order in ORDERS}
    tables = {order: order_plan.schedule.tables for order, order_plan in plans.items()}
    layers = [
        {"name": stage[0].stage.name, **{order: _layer(table) for order, table in zip(tables, stage)}}
        for stage in zip(*tables.values())
    ]
    totals = {
        order: dict(zip(TOTALS, (bits.tuples, bits.tables, bits.total)))
        for order, bits in ((order, order_plan.memory_bits()) for order, order_plan in plans.items())
    }
    return {"network": model.network.name, "auto": auto.schedule.map_order, "layers": layers, "totals": totals}


def _layer(table: StageTables) -> dict[str, int]:
    """Figures of one layer in one map order."""
    tuples = table.capacity(table.stage.weighted)
    return {"tuples": tuples, "tuples_one_pass": table.capacity(False), "table_bits": table.bits(tuples)}
