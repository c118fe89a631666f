"""Rows that the layers of a plan fill in the memories of an NPU."""

from bitloom.hls_gen.compiler.plan import Plan
from bitloom.hls_gen.compiler.rows.layer_rows import Columns, LayerRows
from bitloom.hls_gen.compiler.rows.memories import kernels_in_turn, npu_columns, rows_of


def npu_rows(plan: Plan, n: int = 0) -> list[LayerRows]:
    """Rows of each layer on NPU ``n``."""
    return [rows_of(planned) for planned in plan.on(n)]


def memory_rows(plan: Plan) -> dict[str, list[dict[str, int]]]:
    """Memory -> rows by field, of all layers on NPU 0 one behind the other, in memories of single numbers."""
    rows = npu_rows(plan)
    return by_row(npu_columns(rows, plan.foldings[0], kernels_in_turn(rows)))


def by_row(memories: dict[str, Columns]) -> dict[str, list[dict[str, int]]]:
    """Memory -> rows by field, of those memories whose fields are single numbers."""
    return {
        name: [dict(zip(columns, values)) for values in zip(*(column.tolist() for column in columns.values()))]
        for name, columns in memories.items()
        if all(column.ndim == 1 for column in columns.values())
    }
