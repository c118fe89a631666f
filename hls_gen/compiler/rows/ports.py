"""Rows of the ports: by which inlet a layer's words come, in which chunks, and to which outlet its map goes."""

from bitloom.hls_gen.compiler.planned_layer import PlannedLayer

from .layer_rows import Columns, row
from .stores import fork_fields


def inlet_row(planned: PlannedLayer) -> Columns:
    """Where the words of a layer come from, by fields of memory ``inputs``."""
    npu = planned.npu
    read = planned.read
    fields = dict[str, int]()
    if len(npu.sources) > 1:
        fields["source"] = npu.sources.index(read.inlet)
    if npu.joined_words:
        first, second = read.joined_words or (1, 1)
        fields |= {
            "joins": int(read.joined_words is not None),
            "first_words_minus_1": first - 1,
            "second_words_minus_1": second - 1,
        }
    return row(fields)


def chunk_rows(planned: PlannedLayer) -> dict[str, Columns]:
    """The words of a chunk of the map that a layer reads, where that comes from the NPU before."""
    words = planned.chunk_words
    return {} if words is None else {"chunks": row({"words_minus_1": words - 1})}


def way_fields(planned: PlannedLayer) -> dict[str, int]:
    """Where a layer's map goes, by fields of the unit that gives it its last form."""
    targets = planned.npu.targets
    target = {"target": targets.index(planned.way.target)} if len(targets) > 1 else {}
    return {**target, **fork_fields(planned)}
