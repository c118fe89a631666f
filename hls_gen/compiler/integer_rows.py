"""Rows of the memories for the integer engine: weights, scales, reciprocals, and where an input's bits go.

A lane of a word is a feature of ``feature_bits`` in two's complement, low bit first. Unused lanes have weight 0,
which adds nothing; unused kernels repeat kernel 0.
"""

from collections.abc import Mapping

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layer import Map
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.program_checks import ZERO
from bitloom.hls_gen.design.widths import COUNT_BITS, SHIFT_BITS

from .layout import UNUSED, Ints, Layout
from .lowered_layers import Depthwise, LoweredLayer, Scale

SCALES = {"bias": 0, "multiplier": 1, "shift": 1 << SHIFT_BITS + 1}
"""Fields that memory ``scales`` has for each lane, and their values where no kernel is: whatever comes becomes 0, which
the binary engine counts on in lanes that no channel has. No NPU has so large a shift: `scale_fields` takes the NPU's
largest."""


def two_complement(values: Array, bits: int) -> Array:
    """Take integers apart into bits, low bit first.

    Parameters
    ----------
    values
        (..., n) integers.
    bits
        Bits of each, in two's complement.

    Returns
    -------
    ndarray
        (..., n * bits) of 0 and 1.
    """
    planes: Array = (values[..., None] >> np.arange(bits)) & 1
    flat: Array = planes.reshape(*values.shape[:-1], -1)
    return flat


def lane_bits(layout: Layout, bits: int) -> Layout:
    """Lay out the bits of lanes.

    Parameters
    ----------
    layout
        (words, lanes) layout.
    bits
        Bits of a lane, low bit first.

    Returns
    -------
    ndarray
        (words, lanes * bits): lane * bits + bit, or UNUSED.
    """
    wide = layout[..., None] * bits + np.arange(bits)
    return np.where(layout[..., None] == UNUSED, UNUSED, wide).reshape(len(layout), -1)


def input_words(source: Map, layout: Layout, order: Ints, feature_bits: int) -> Layout:
    """Find where the bits of a frame's words come from.

    Parameters
    ----------
    source
        The input map.
    layout
        (words, lanes) layout of a tuple.
    order
        (tuples,) row-major position of each tuple that is sent.
    feature_bits
        Bits of a lane. Above the stored bits of a signed number its sign is repeated; above an unsigned one's come
        zeros.

    Returns
    -------
    ndarray
        (tuples * words, word bits): number of the image bit in each place, or ZERO.
    """
    stored = source.encoding.bits
    above = ZERO if source.encoding.kind == "unsigned" else stored - 1
    bit = np.array([b if b < stored else above for b in range(feature_bits)])
    channel = np.arange(source.channels)[:, None]
    of_bit = np.where(bit >= 0, channel * stored + bit, ZERO).ravel()
    lanes = np.append(of_bit, ZERO)[lane_bits(layout, feature_bits)]
    at = order[:, None, None] * (source.channels * stored)
    return np.where(lanes >= 0, at + lanes, lanes).reshape(-1, layout.shape[1] * feature_bits)


def kernels(p: LoweredLayer, layout: Layout, kgp: int, weight_bits: int) -> Array:
    """Make the kernel rows of a layer.

    Parameters
    ----------
    p
        The lowered layer.
    layout
        (words, lanes) layout of a tuple that it reads.
    kgp
        Kernels of a group.
    weight_bits
        Bits of a weight.

    Returns
    -------
    ndarray
        (groups * taps * words, kgp * kfp * weight_bits) of 0 and 1.
    """
    groups = -(-p.out_channels // kgp)
    taps = p.weight.shape[1]
    padded = np.concatenate([p.weight, np.zeros((*p.weight.shape[:2], 1), p.weight.dtype)], axis=2)
    kernel = np.zeros(groups * kgp, np.int64)
    kernel[: p.out_channels] = np.arange(p.out_channels)
    weights = padded[kernel][:, :, layout].reshape(groups, kgp, taps, *layout.shape).transpose(0, 2, 3, 1, 4)
    return two_complement(weights.reshape(groups * taps * len(layout), -1), weight_bits).astype(np.uint8)


def depthwise_kernels(p: Depthwise, words: Layout, weight_bits: int) -> Array:
    """Make the rows of memory ``pool_kernels`` for a depthwise convolution.

    Parameters
    ----------
    p
        The convolution.
    words
        (words, pfp) layout of a tuple that the pool unit takes.
    weight_bits
        Bits of a weight.

    Returns
    -------
    ndarray
        (taps * words, pfp * weight_bits) of 0 and 1.
    """
    padded = np.concatenate([p.weight, np.zeros((len(p.weight), 1), p.weight.dtype)], axis=1)
    return two_complement(padded[:, words].reshape(-1, words.shape[1]), weight_bits).astype(np.uint8)


def scales(scale: Scale | None, steps: Layout) -> dict[str, Ints]:
    """Make the rows of memory ``scales``, or of ``pool_scales``.

    Parameters
    ----------
    scale
        Of a lowered layer, or of a depthwise convolution; None where sums are the result.
    steps
        (steps, ol) layout of its results.

    Returns
    -------
    dict
        Name of a field -> its column, one row a step; no rows where the sums are the result.
    """
    if scale is None:
        return {f"{name}_{lane}": np.zeros(0, np.int64) for lane in range(steps.shape[1]) for name in SCALES}
    parts = (scale.bias, *scale.factors)
    return {
        f"{name}_{lane}": np.append(array, unused)[steps[:, lane]]
        for lane in range(steps.shape[1])
        for (name, unused), array in zip(SCALES.items(), parts)
    }


def scale_fields(columns: Mapping[str, Ints], npu: Npu, fraction: int = 0) -> dict[str, Ints]:
    """Make columns what memory ``scales`` of an NPU holds: shifts within its limit, multipliers if it has any.

    Where the NPU has more bits behind the point than the layer, sum and bias are as many powers of two larger there,
    and so is what is divided by; rounding is the same, for the quotient is.

    Parameters
    ----------
    columns
        Of ``scales``.
    npu
        The NPU.
    fraction
        Bits of the layer's bias behind the point, at most those of the NPU.

    Returns
    -------
    dict
        Name of a field -> its column.
    """
    more = npu.bias_fraction_bits - fraction
    made = dict[str, Ints]()
    for name, column in columns.items():
        if name.startswith("bias_"):
            made[name] = column << more
        elif name.startswith("shift_"):
            made[name] = np.minimum(column + more, npu.most_shift)
        elif npu.multiplier_bits:
            made[name] = column
    return made


def reciprocals(bits: int) -> Ints:
    """Rows of the memory ``reciprocals``, by which averages are divided (hls_gen/rtl/pool/divide.py).

    Parameters
    ----------
    bits
        Width of a reciprocal, ``Folding.reciprocal_bits``.

    Returns
    -------
    ndarray
        (2^COUNT_BITS,): row c is ceil(2^bits / (2 c)), which is 2^(bits - 1) / c rounded up. Row 0 is 0, and is never
        read.
    """
    counts = np.arange(1, 1 << COUNT_BITS)
    return np.append(0, -(-(1 << bits) // (2 * counts)))
