"""Dataflows: what stays in the PEs, sums or words, and how a layer's is chosen (spec B9, A10)."""

from collections.abc import Mapping
from typing import Any

from bitloom.hls_gen.design.folding import Folding

from .chunk import Chunk
from .lowered_layers import LoweredLayer
from .schedule import ORDERS

DATAFLOWS = ("output_stationary", "input_stationary", "auto")
Dataflow = str | Mapping[str, str]
"""Dataflow: one for all layers, or by layer name ("output_stationary" for those not named).

"output_stationary" (spec B9): sums stay in the PEs, and a window is passed once for each group of kgp kernels.
"input_stationary" (A10): a word stays until all groups have used it, so that nothing is read again; needs as many
accumulators as groups. "auto": "input_stationary" where there are several groups and accumulators for two windows.
"""

OLD_DATAFLOWS = {"output": "output_stationary", "input": "input_stationary"}
"""Names that files written by bitloom 0.1 have."""


def read_choices(data: Mapping[str, Any]) -> tuple[str, Any]:
    """(map order, dataflow) of a file's JSON data, by their present names or by those of bitloom 0.1.

    Raises
    ------
    ValueError
        One of them is missing, or isn't one that there is.
    """
    if "work" in data and "map_order" not in data:
        old = data["work"]
        dataflow = {name: _present(value) for name, value in old.items()} if isinstance(old, Mapping) else _present(old)
        data = {"map_order": data.get("order"), "dataflow": dataflow}
    map_order, dataflow = data.get("map_order"), data.get("dataflow")
    if map_order not in (*ORDERS, "auto"):
        raise ValueError(f"map_order must be one of {', '.join(ORDERS)}, auto, got {map_order!r}")
    for value in dataflow.values() if isinstance(dataflow, Mapping) else [dataflow]:
        if value not in DATAFLOWS:
            raise ValueError(f"dataflow must be one of {', '.join(DATAFLOWS)}, got {value!r}")
    return map_order, dataflow


def read_chunk(data: Mapping[str, Any]) -> str:
    """The chunk (hls_gen/compiler/chunk.py) of a file's JSON data, "" where none is said; ValueError if it is none."""
    text = data.get("chunk", "")
    if not isinstance(text, str):
        raise ValueError(f"chunk must be a text, got {text!r}")
    Chunk.of(text)
    return text


def _present(name: Any) -> Any:
    """A dataflow by its present name."""
    return OLD_DATAFLOWS.get(name, name) if isinstance(name, str) else name


def dataflow_of(p: LoweredLayer, dataflow: Dataflow) -> str:
    """The dataflow of a pass, where one may be given for all or by name."""
    return dataflow if isinstance(dataflow, str) else dataflow.get(p.name, "output_stationary")


def inner_groups(p: LoweredLayer, folding: Folding, dataflow: str) -> int:
    """Kernel groups that use a word in turn: all of them where the dataflow is input_stationary, else 1."""
    if dataflow not in DATAFLOWS:
        raise ValueError(f"{p.name}: dataflow must be one of {', '.join(DATAFLOWS)}, got {dataflow!r}")
    groups, accumulators = -(-p.out_channels // folding.kgp), folding.accumulators
    if dataflow == "input_stationary" and groups > accumulators:
        raise ValueError(
            f"{p.name}: dataflow input_stationary needs accumulators >= {groups}, the NPU has {accumulators}"
        )
    return groups if dataflow == "input_stationary" or (dataflow == "auto" and 2 * groups <= accumulators) else 1
