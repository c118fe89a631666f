"""Rows of the pool unit: its sequencer's, and where it has weights, kernels and scales of depthwise convolutions."""

import numpy as np

from bitloom.golden.encoding import Ints
from bitloom.hls_gen.compiler.actions import Depthwise
from bitloom.hls_gen.compiler.planned_layer import PlannedLayer
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.memories.pool_unit import MARKS
from bitloom.hls_gen.design.memories.results import numbers_of
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.results import REQUANTISATION
from bitloom.hls_gen.design.widths import COUNT_BITS

from .layer_rows import Columns, row
from .ports import way_fields
from .results import activation_columns
from .sequencer import sequencer_rows


def pool_unit_rows(planned: PlannedLayer) -> dict[str, Columns]:
    """Rows of the pool unit for a layer; none where its results don't pass one."""
    layer = planned.layer
    npu = planned.npu
    if planned.on_pool_unit is None:
        return {}
    rows = sequencer_rows(planned.on_pool_unit)
    fields = way_fields(planned)
    known = memory_of(npu, "pool_layers").widths
    fields |= {mark: int(mark == layer.reduction.mark) for mark in MARKS if mark in known}
    if "last_piece" in known:
        fields["last_piece"] = (len(planned.steps) - 1) % npu.pool_word_steps
    if "shares_lanes" in known:
        lines = planned.on_pool_unit.lines
        fields["shares_lanes"] = int(lines is not None and present(npu.pool_unit).beat.shares_lanes(lines.window))
    if npu.depthwise:
        rows |= _depthwise_rows(planned, layer.depthwise)
    rows["pool_layers"] = {**rows["pool_layers"], **row(fields)}
    return rows


def _depthwise_rows(planned: PlannedLayer, depthwise: Depthwise | None) -> dict[str, Columns]:
    """Rows of a pool unit with weights for a layer with or without a depthwise convolution."""
    npu = planned.npu
    numbers = depthwise.scale.of_layer if depthwise else {}
    rows = {
        "pool_results": row(
            {"depthwise": int(depthwise is not None), **numbers_of(npu, REQUANTISATION.of_layer, numbers)}
        )
    }
    if depthwise is None:
        return rows
    return {
        **rows,
        "pool_kernels": {"weights": _kernels(depthwise, planned)},
        "pool_scales": activation_columns(REQUANTISATION, depthwise.scale, depthwise.sum_range, planned.steps, npu),
    }


def _kernels(depthwise: Depthwise, planned: PlannedLayer) -> Ints:
    """(tuples of a window * words, beat_lanes) weights, for each word of a tuple that the pool unit takes those of the
    tuple's taps side by side; unused lanes have weight 0."""
    words = planned.pooled
    beat = present(planned.npu.pool_unit).beat
    split = present(planned.layer.pooled_window)
    weight = np.append(depthwise.weight, np.zeros((len(depthwise.weight), 1), np.int64), axis=1)
    tuples = split.dealt(weight[:, words])
    tuples = np.append(tuples, np.zeros_like(tuples[:, :1]), axis=1)  # UNUSED: zeros
    places = beat.places(split.formed)
    lanes = words.shape[1] // places.shape[1]
    weights: Ints = tuples[:, places, :, :lanes].transpose(0, 3, 1, 2, 4).reshape(-1, beat.taps * words.shape[1])
    return weights


def reciprocals(bits: int) -> Ints:
    """Rows of the memory ``reciprocals``, by which averages are divided (hls_gen/rtl/pool_unit/divide.py).

    Parameters
    ----------
    bits
        Width of a reciprocal, ``Npu.reciprocal_bits``.

    Returns
    -------
    ndarray
        (2^COUNT_BITS,): row c is ceil(2^bits / (2 c)), which is 2^(bits - 1) / c rounded up. Row 0 is 0, and is never
        read.
    """
    counts = np.arange(1, 1 << COUNT_BITS)
    return np.append(0, -(-(1 << bits) // (2 * counts)))
