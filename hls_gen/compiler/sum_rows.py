"""Rows of a lowered layer up to its sums: of the array's sequencer, and of the kernel memory."""

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.hls_gen.design.npu import Npu

from . import integer_rows as integer
from .layout import UNUSED, Layout
from .lowered_layers import LoweredLayer, Xnor
from .npu_plan import NpuPlan
from .planned_layer import MapWords, PlannedLayer
from .tables import rows


def append_sums(made: NpuPlan, planned: PlannedLayer) -> None:
    """Append the rows of a layer up to its sums to those of its NPU."""
    p = planned.layer
    npu = planned.npu
    layout = planned.read.layout
    part = planned.part
    groups = planned.groups
    places = p.weight.shape[1]
    words = planned.words
    inner = planned.inner
    outer = planned.passes
    made.conv.append(planned.conv, words, visits=p.visits, reread=outer > 1, inner=inner, part=part.words)
    _append_ways(made, planned.read)
    made.conv.layers[-1] |= {
        "kernel_base": rows(made.kernels),
        "group_rows": places * part.words if outer > 1 else 0,
        "groups_minus_1": outer - 1,
    }
    if npu.tuple_parts:
        made.conv.layers[-1] |= part.fields
    if npu.accumulators > 1:
        made.conv.layers[-1] |= {"inner_groups_minus_1": inner - 1, "tap_rows_minus_1": part.words * inner - 1}
    arithmetic = p.arithmetic
    if isinstance(arithmetic, Xnor):
        offset = arithmetic.tap_offset - (planned.left_out if arithmetic.double else planned.left_out // 2)
        made.conv.layers[-1] |= {"tap_offset": offset, **({"twice": p.visits - 1} if made.conv.raster else {})}
        kernels = _kernels(p, p.weight, layout, npu)
    else:
        kernels = integer.kernels(p, layout, npu.kgp, npu.weight_bits)
    order = np.arange(groups * places * words)
    if part.words < words:
        order = order[part.rows(groups, places, words)]
    if inner > 1:  # from (group, place, word) to (place, word, group)
        order = order.reshape(groups, -1).T.ravel()
    made.kernels.append(kernels[order])
    if isinstance(arithmetic, Xnor) and npu.kernel_binariser:
        made.magnitudes.append(_kernels(p, arithmetic.magnitudes, layout, npu)[order])
    made.codes.append(np.tile(planned.read.codes, groups * places)[order])
    accumulate = arithmetic.accumulate if isinstance(arithmetic, Xnor) else "popcount"
    made.any_match.append(accumulate == "or")
    made.by_words.append(accumulate == "or_words")


def _append_ways(made: NpuPlan, read: MapWords) -> None:
    """Append where the words of a layer come from to its row of memory ``inputs``."""
    if len(made.folding.sources) > 1:
        made.conv.inputs[-1]["source"] = made.folding.sources.index(read.inlet)
    if made.folding.joined_words:
        first, second = read.parts or (1, 1)
        made.conv.inputs[-1] |= {
            "joins": int(read.parts is not None),
            "first_words_minus_1": first - 1,
            "second_words_minus_1": second - 1,
        }


def _kernels(p: LoweredLayer, weight: Array, layout: Layout, npu: Npu) -> Array:
    """(groups * taps * visits * words, kgp * row_weights) weight bits, or magnitudes, of the layer's ``weight``; unused
    lanes 1, unused kernels as kernel 0."""
    kgp = npu.kgp
    groups = -(-p.out_channels // npu.kgp)
    places = p.weight.shape[1]
    lanes = weight.reshape(p.out_channels, places, -1)
    padded = np.concatenate([lanes, np.ones((*lanes.shape[:2], 1), lanes.dtype)], axis=2)
    kernel = np.zeros(groups * kgp, np.int64)
    kernel[: p.out_channels] = np.arange(p.out_channels)
    bits = _stored(p, padded[kernel][:, :, layout], layout, npu)  # (kernels, places, words, row_weights)
    bits = bits.reshape(groups, kgp, places, len(layout), -1).transpose(0, 2, 3, 1, 4)
    return bits.reshape(groups * places * len(layout), -1)


def _stored(p: LoweredLayer, bits: Array, layout: Layout, npu: Npu) -> Array:
    """The weights of (kernels, places, words, kfp) lanes that are stored: one of each set of lanes that share it.

    ValueError where the lanes of a set have different weights. Unused lanes of bit planes may: what they add in one
    plane, others take away (`layout.plane_words`).
    """
    if npu.lanes_per_weight == 1:
        return bits
    of_lanes = np.array(npu.weight_of_lanes)
    stored: Array = bits[..., np.unique(of_lanes, return_index=True)[1]]
    unused = (layout == UNUSED) & (p.weight.shape[3] > 1)
    if not ((stored[..., of_lanes] == bits) | unused).all():
        raise ValueError(
            f"{p.name}: the lanes that share a weight must be the bits of one value, lanes_per_weight = "
            f"{npu.lanes_per_weight} of them, {npu.lane_step} apart, got other ones"
        )
    return stored
