"""Rows of the array: the kernel memory.

Unused lanes have weight 1 in the binary engine, which meets feature bits of 0, and 0 in the integer engine: both add
nothing. Unused kernels repeat kernel 0.
"""

import numpy as np

from bitloom.golden.encoding import Array, Ints
from bitloom.hls_gen.compiler.fixed_kernels import integers
from bitloom.hls_gen.compiler.layout import WordLayout
from bitloom.hls_gen.compiler.lowered_layers import LoweredLayer, Xnor
from bitloom.hls_gen.compiler.planned_layer import PlannedLayer
from bitloom.hls_gen.design.array import kernel_groups
from bitloom.hls_gen.design.lanes import UNUSED
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.reducer import SerialPopcount

from .layer_rows import Columns, row


def array_rows(planned: PlannedLayer) -> dict[str, Columns]:
    """Kernel rows of a layer.

    Raises
    ------
    ValueError
        Lanes that share a weight need different ones, or a layer needs a code that the rows have no bit for.
    """
    layer = planned.layer
    npu = planned.npu
    layout = planned.read.layout
    order = _order(planned)
    if not isinstance(layer.arithmetic, Xnor):
        return {"kernels": {"weights": _integer_kernels(layer, layout, npu.array.kgp)[order]}}
    codes = _code_bits(planned, np.tile(planned.read.codes, planned.groups * layer.weight.shape[1])[order])
    weights = _binary_kernels(layer, layer.weight, layout, npu)[order]
    if npu.array.kernel_binariser:
        weights = integers(weights, _binary_kernels(layer, layer.arithmetic.magnitudes, layout, npu)[order])
        codes = integers(codes, codes)
    return {"kernels": {"weights": weights, **({"code": codes} if codes.shape[1] else {})}}


def offset_row(planned: PlannedLayer) -> Columns:
    """Numbers that the array adds to the sums of a layer, by fields of memory ``layers``; none in the integer
    engine."""
    arithmetic = planned.layer.arithmetic
    if not isinstance(arithmetic, Xnor):
        return {}
    left_out = planned.left_out if arithmetic.double else planned.left_out // 2
    twice = {"twice": planned.layer.visits - 1} if planned.npu.sequencer.raster else {}
    return row({"tap_offset": arithmetic.tap_offset - left_out, **twice})


def check_shared_weights(planned: PlannedLayer) -> None:
    """Raise ValueError where lanes that share a weight need different ones."""
    layer = planned.layer
    if planned.npu.array.lanes_per_weight > 1 and layer.binary:
        _binary_kernels(layer, layer.weight, planned.read.layout, planned.npu)


def _order(planned: PlannedLayer) -> Ints:
    """Which of the rows (kernel group, place, word) the array reads, in the order in which it reads them."""
    places = planned.layer.weight.shape[1]
    order = np.arange(planned.groups * places * planned.words)
    if planned.tuple_part.words < planned.words:
        order = order[planned.tuple_part.rows(planned.groups, places, planned.words)]
    if planned.inner > 1:  # of each pass from (group, place, word) to (place, word, group)
        order = order.reshape(planned.passes, planned.inner, -1).transpose(0, 2, 1).ravel()
    return order


def _integer_kernels(layer: LoweredLayer, layout: WordLayout, kgp: int) -> Array:
    """(groups * taps * words, kgp * kfp) weights of a layer for the integer engine."""
    weight = layer.weight.astype(np.int16)  # WEIGHT_BITS at most
    padded = np.concatenate([weight, np.zeros((*weight.shape[:2], 1), weight.dtype)], axis=2)
    return _by_group(padded[_kernels(layer, kgp)][:, :, layout], kgp)


def _binary_kernels(layer: LoweredLayer, weight: Array, layout: WordLayout, npu: Npu) -> Array:
    """(groups * taps * visits * words, kgp * row weights) weight bits, or magnitudes, of the layer's ``weight``."""
    lanes = weight.reshape(layer.out_channels, layer.weight.shape[1], -1)
    padded = np.concatenate([lanes, np.ones((*lanes.shape[:2], 1), lanes.dtype)], axis=2)
    return _by_group(_stored(layer, padded[_kernels(layer, npu.array.kgp)][:, :, layout], layout, npu), npu.array.kgp)


def _kernels(layer: LoweredLayer, kgp: int) -> Ints:
    """The kernel that each PE has in each kernel group: kernel 0 where there is none."""
    kernel = np.zeros(kernel_groups(layer.out_channels, kgp) * kgp, np.int64)
    kernel[: layer.out_channels] = np.arange(layer.out_channels)
    return kernel


def _by_group(weights: Array, kgp: int) -> Array:
    """(kernels, places, words, lanes) -> (groups * places * words, kgp * lanes)."""
    kernels, places, words, _ = weights.shape
    groups = kernels // kgp
    by_group = weights.reshape(groups, kgp, places, words, -1).transpose(0, 2, 3, 1, 4)
    return by_group.reshape(groups * places * words, -1)


def _stored(layer: LoweredLayer, bits: Array, layout: WordLayout, npu: Npu) -> Array:
    """The weights of (kernels, places, words, kfp) lanes that are stored: one of each set of lanes that share it.

    ValueError where the lanes of a set have different weights. Unused lanes of bit planes may have other weights: what
    such a lane adds in one plane, the other planes take away (`layout.plane_words`).
    """
    if npu.adds_integers:
        return bits[..., : npu.row_weights]  # of plane 0, which comes first: all planes have the same
    if npu.array.lanes_per_weight == 1:
        return bits
    of_lanes = np.array(npu.array.weight_of_lanes)
    stored: Array = bits[..., np.unique(of_lanes, return_index=True)[1]]
    unused = (layout == UNUSED) & (layer.weight.shape[3] > 1)
    if not ((stored[..., of_lanes] == bits) | unused).all():
        raise ValueError(
            f"{layer.name}: the lanes that share a weight must be the bits of one value, lanes_per_weight = "
            f"{npu.array.lanes_per_weight} of them, {npu.array.lane_step} apart, got other ones"
        )
    return stored


def _code_bits(planned: PlannedLayer, codes: Ints) -> Array:
    """(kernel rows, code bits) of 0 and 1, which follow the weights in each kernel row, of a binary layer.

    An NPU with plane groups has one bit: whether the words that the row meets are those of an integer input; none if no
    other words ever come. An NPU without has the shift of the row's bit plane, low bit first, and then its sign; none
    if it can't shift. On top come, in an NPU that can accumulate both ways, whether the layer accumulates by OR, and in
    an NPU that counts words beside products, whether the layer does.
    ValueError where the layer needs a code that the rows have no bit for.
    """
    reducer = planned.npu.array.reducer
    bits = list[Array]()
    if planned.npu.adds_integers:
        if not codes.all():
            name = planned.layer.name
            raise ValueError(f"{name}: an NPU with planes and no inlet but host must read integers, got bits")
    elif isinstance(reducer, SerialPopcount) and reducer.planes:
        bits.append(codes)
    elif isinstance(reducer, SerialPopcount):
        shift = np.where(codes < 0, -1 - codes, codes)
        bits += [(shift >> k) & 1 for k in range(reducer.shift_bits)]
        bits += [(codes < 0).astype(np.int64)] * (reducer.shift_bits > 0)
    for choice in reducer.choices:
        bits.append(np.full(len(codes), int(planned.layer.arithmetic.accumulate == choice)))
    return np.stack(bits, axis=1) if bits else np.zeros((len(codes), 0), np.int64)
