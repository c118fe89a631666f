"""Memories of an NPU: the rows of its layers, one layer behind the other, in the words that hardware is sent."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from bitloom.golden.encoding import Array, Ints
from bitloom.hls_gen.compiler.needs import needs_of
from bitloom.hls_gen.compiler.planned_layer import PlannedLayer
from bitloom.hls_gen.design.headers import Words
from bitloom.hls_gen.design.memories.memory import Memory
from bitloom.hls_gen.design.memories.memory_map import memory_map, memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.rows import pack_fields, pack_rows

from .array import array_rows, offset_row
from .layer_rows import Columns, LayerRows
from .pool_unit import pool_unit_rows, reciprocals
from .ports import chunk_rows, inlet_row
from .results import result_rows
from .sequencer import array_sequencer_rows, waiting_rows


def rows_of(planned: PlannedLayer) -> LayerRows:
    """Make the rows of a layer.

    Parameters
    ----------
    planned
        The layer, planned for the NPU that has it.

    Raises
    ------
    ValueError
        Lanes that share a weight need different ones, or a layer needs a code that kernel rows have no bit for.
    """
    memories = {
        **array_sequencer_rows(planned),
        **array_rows(planned),
        **result_rows(planned),
        **pool_unit_rows(planned),
        **chunk_rows(planned),
    }
    memories["inputs"] = {**memories["inputs"], **inlet_row(planned)}
    memories["layers"] = {**memories["layers"], **offset_row(planned)}
    rows = LayerRows(planned.layer.name, memories)
    _check_counts(rows, planned)
    return rows


def _check_counts(rows: LayerRows, planned: PlannedLayer) -> None:
    """Raise AssertionError unless a layer has as many rows as it needs."""
    needs = needs_of(planned)
    for memory in memory_map(planned.npu):
        if memory.rows.counted_as:
            needed = needs.sizes.get(memory.rows.counted_as, 0)
            count = rows.count(memory.name)
            assert count == needed, f"{rows.name}: {needed} rows of {memory.name} are needed, {count} are made"


def npu_columns(layers: Sequence[LayerRows], npu: Npu, kernels_at: Sequence[Mapping[str, int]]) -> dict[str, Columns]:
    """Put the rows of layers one behind the other.

    Parameters
    ----------
    layers
        Rows of the layers of an NPU, in their order; at least one.
    npu
        The NPU.
    kernels_at
        Where each layer's kernels lie, by field of memory ``layers``.

    Returns
    -------
    dict
        Name of a memory -> its rows, from row 0 on.
    """
    based = [
        replace(rows, memories=_with_fields(rows.memories, fields))
        for rows, fields in zip(layers, _bases(layers, npu, kernels_at), strict=True)
    ]
    columns = dict[str, Columns]()
    for memory in memory_map(npu):
        name = memory.name
        parts = [rows.memories[name] for rows in based if name in rows.memories]
        if parts:
            columns[name] = {field: np.concatenate([part[field] for part in parts]) for field in parts[0]}
    return columns


def kernels_in_turn(layers: Sequence[LayerRows], first: int = 0) -> list[dict[str, int]]:
    """Where each layer's kernels lie, as `npu_columns` takes it, if they follow one another from row ``first`` on."""
    counts = [rows.count("kernels") for rows in layers]
    return [{"kernel_base": first + sum(counts[:number])} for number in range(len(layers))]


def memory_words(
    layers: Sequence[LayerRows], npu: Npu, kernels_at: Sequence[Mapping[str, int]], limits: Ints
) -> dict[str, Words]:
    """Make the words of each memory that an NPU's layers fill.

    An NPU without layers gets a layer that waits for a word, and no word ever comes.

    Parameters
    ----------
    layers, npu, kernels_at
        As of `npu_columns`, but there may be no layer.
    limits
        (words of an input tuple, kfp) thresholds of the binariser; no rows where there is none.

    Returns
    -------
    dict
        Name of a memory -> (rows, words of a row) uint32, by id, as they are sent.
    """
    if not layers:
        waiting = {name: rows for sequencer in npu.sequencers for name, rows in waiting_rows(sequencer).items()}
        return {name: packed(memory_of(npu, name), rows) for name, rows in waiting.items()}
    columns = npu_columns(layers, npu, kernels_at)
    if len(limits):
        columns["binariser"] = {"thresholds": limits}
    if any(memory.name == "reciprocals" for memory in memory_map(npu)):
        columns["reciprocals"] = {"reciprocal": reciprocals(npu.reciprocal_bits)}
    return {memory.name: packed(memory, columns[memory.name]) for memory in memory_map(npu) if memory.name in columns}


def _bases(
    layers: Sequence[LayerRows], npu: Npu, kernels_at: Sequence[Mapping[str, int]]
) -> list[dict[str, dict[str, int]]]:
    """By layer: fields of its rows that say where it begins in other memories, by memory. A field is 0 where the layer
    has no row there, since the memory may end where the layer would begin."""
    based = [(memory.name, *memory.rows.based_by) for memory in memory_map(npu) if memory.rows.based_by]
    counts = dict.fromkeys((name for name, _, _ in based), 0)
    of_layers = []
    for rows, kernels in zip(layers, kernels_at, strict=True):
        fields = dict[str, dict[str, int]]()
        for name, memory, field in based:
            if memory in rows.memories:
                fields.setdefault(memory, {})[field] = counts[name] if rows.count(name) else 0
        fields["layers"] = {**fields.get("layers", {}), **kernels}
        of_layers.append(fields)
        counts = {name: before + rows.count(name) for name, before in counts.items()}
    return of_layers


def _with_fields(memories: Mapping[str, Columns], fields: Mapping[str, Mapping[str, int]]) -> dict[str, Columns]:
    """Rows of a layer, with more fields in the one row that some memories have of it."""
    return {
        name: {**columns, **{field: np.array([value]) for field, value in fields.get(name, {}).items()}}
        for name, columns in memories.items()
    }


def packed(memory: Memory, columns: Columns) -> Words:
    """Words of a memory's rows."""
    if all(column.ndim == 1 for column in columns.values()):
        return pack_fields(memory, columns)
    return pack_rows(memory.width, np.concatenate([_bits(columns[f.name], f.width) for f in memory.fields], axis=1))


def _bits(column: Array, width: int) -> Array:
    """(rows, width) bits of 0 and 1, low bit first, of (rows, n) integers side by side in a field of that width."""
    each = width // column.shape[1]
    bits = np.empty((*column.shape, each), np.uint8)
    for bit in range(each):  # one at a time: a board has little memory
        bits[..., bit] = (column >> bit) & 1
    return bits.reshape(len(column), width)
