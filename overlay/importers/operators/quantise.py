"""Quantisers of maps."""

from fractions import Fraction

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.overlay.importers.errors import Unsupported
from bitloom.overlay.importers.node_view import NodeView
from bitloom.overlay.importers.operations import Levels
from bitloom.overlay.importers.quantisers import (
    HALF,
    ROUNDINGS,
    along,
    ends_of_bits,
    known,
    linear_rule,
    quant_rule,
    zero_point,
)
from bitloom.overlay.importers.rationals import first_integer, fractions, same
from bitloom.overlay.importers.rows import Boundaries

from .registry import MICROSOFT, ONNX, QONNX, operator


@operator("Quant", "IntQuant", domains=QONNX, everywhere=True)
def quant(node: NodeView) -> None:
    """QONNX's quantiser of a map."""
    node.only_map(0)
    inputs = [None, *(node.optional(place) for place in (1, 2, 3))]
    bits = inputs[3]
    if bits is not None and bits.size == 1 and float(bits.ravel()[0]) == 1 and node.attribute("signed", 1):
        bipolar(node)  # as QONNX computes a signed bit
        return
    node.quantise(quant_rule(node.node, inputs))


@operator("BipolarQuant", domains=QONNX, everywhere=True)
def bipolar(node: NodeView) -> None:
    """scale where x >= 0, else -scale."""
    node.only_map(0)
    scale = same(fractions(node.constant(1, "scale")))
    if scale is None or scale <= 0:
        raise Unsupported("a map's scale must be one number > 0")
    node.append(Levels, base=-scale, step=2 * scale, boundaries=Boundaries.of([Fraction(0)]))


@operator("Sign", everywhere=True)
def sign(node: NodeView) -> None:
    """-1, 0 or 1."""
    boundaries = Boundaries.of([Fraction(0)] * 2, [True, False])
    node.append(Levels, base=Fraction(-1), step=Fraction(1), boundaries=boundaries)


@operator("QuantizeLinear", domains=ONNX + MICROSOFT, everywhere=True)
def quantize_linear(node: NodeView) -> None:
    """ONNX's quantiser: what it makes are the integers."""
    node.only_map(0)
    zero = zero_point(node.optional(2), int(node.attribute("output_dtype", 0)))
    scale = along(node.constant(1, "the scale"), node.shape, node.axis("axis", 1))
    rule = linear_rule(scale, zero)
    node.quantise_linear(rule)


@operator("DequantizeLinear", domains=ONNX + MICROSOFT, everywhere=True)
def dequantize_linear(node: NodeView) -> None:
    """(x - zero point) * scale."""
    node.only_map(0)
    scale = along(node.constant(1, "the scale"), node.shape, node.axis("axis", 1))
    append_dequantised(node, fractions(scale), node.optional(2))


def append_dequantised(node: NodeView, scale: Array, zero: Array | None) -> None:
    """Append (x - zero point) * scale, of fractions that spread over the map."""
    offset = Fraction(0) if zero is None else same(fractions(zero))
    if offset is None:
        raise Unsupported("a map's zero point must be one number, got one a channel")
    node.affine(multiply=scale, add=-scale * offset)


@operator("Trunc", domains=QONNX, everywhere=True)
def trunc(node: NodeView) -> None:
    """QONNX's truncation: x / scale is rounded, divided by a power of two, clipped, and rounded again."""
    node.only_map(0)
    scale, zero, bits = (_number(node, place) for place in (1, 2, 3))
    if len(node.node.inputs) < 6:
        out_bits = _number(node, 4)
        out_scale = scale
        shift = int(bits - out_bits)
        # The first version doesn't clip, because no value is beyond what its bits hold, signed or not.
        low = -(1 << int(out_bits))
        high = (1 << int(out_bits)) - 1
    else:
        out_scale = _number(node, 4)
        out_bits = _number(node, 5)
        shift = round(np.log2(float(out_scale / scale)))
        is_signed, narrow = bool(node.attribute("signed", 1)), bool(node.attribute("narrow", 0))
        low, high = ends_of_bits(int(out_bits), is_signed=is_signed, narrow=narrow)
    if zero != 0 or not 0 <= shift <= 32 or not 1 <= out_bits <= 16:
        raise Unsupported(
            f"the zero point must be 0 and 0..32 bits go to leave 1..16, got {zero}, {shift} and {out_bits}"
        )
    place = ROUNDINGS[known(str(node.attribute("rounding_mode", "FLOOR")).upper())].place
    # The first integer that the second rounding takes to a level, and what the first one, halves to even, takes to it.
    places = (place(level) for level in range(low + 1, high + 1))
    firsts = [first_integer(twice << shift, 2, reaches) for twice, reaches in places]
    limits = [(first - HALF) * scale for first in firsts]
    boundaries = Boundaries.of(limits, [first % 2 == 0 for first in firsts])
    node.append(Levels, base=Fraction(low) * out_scale, step=out_scale, boundaries=boundaries)


@operator("MultiThreshold", domains=QONNX)
def multi_threshold(node: NodeView) -> None:
    """out_bias + out_scale * (how many of the channel's thresholds x has reached)."""
    node.only_map(0)
    thresholds = np.sort(np.asarray(node.constant(1, "thresholds"), np.float64), axis=-1)
    scale = Fraction(float(node.attribute("out_scale", 1.0)))
    bias = Fraction(float(node.attribute("out_bias", 0.0)))
    if thresholds.ndim != 2 or scale <= 0:
        raise Unsupported("thresholds must have the shape (channels, levels), and out_scale must be > 0")
    layout = str(node.attribute("data_layout", "")) or {3: "NWC"}.get(len(node.shape), "NC")
    axis = layout.find("C")
    if not 1 <= axis < len(node.shape):
        raise Unsupported(f"data_layout must have a C among {len(node.shape)} axes, got {layout[:40]}")
    boundaries = Boundaries(limits=fractions(thresholds), reached=np.ones(thresholds.shape[1], bool))
    node.append(Levels, base=bias, step=scale, boundaries=boundaries, axis=axis)


def _number(node: NodeView, place: int) -> Fraction:
    value = same(fractions(node.constant(place, f"input {place}")))
    if value is None:
        raise Unsupported(f"input {place} must be one number")
    return value
