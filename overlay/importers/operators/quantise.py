"""Quantisers of maps."""

from fractions import Fraction

import numpy as np

from bitloom.overlay.importers.errors import Unsupported
from bitloom.overlay.importers.node_view import NodeView
from bitloom.overlay.importers.operations import Levels
from bitloom.overlay.importers.quantisers import Rule, linear_rule, quant_rule
from bitloom.overlay.importers.rationals import fractions, same

from .registry import operator


@operator("Quant", "IntQuant")
def quant(node: NodeView) -> None:
    """QONNX's quantiser of a map."""
    node.only_map(0)
    inputs = [None, *(node.optional(place) for place in (1, 2, 3))]
    bits = inputs[3]
    if bits is not None and bits.size == 1 and float(bits.ravel()[0]) == 1 and node.attribute("signed", 1):
        bipolar(node)  # as QONNX computes a signed bit
        return
    node.quantise(quant_rule(node.node, inputs))


@operator("BipolarQuant")
def bipolar(node: NodeView) -> None:
    """scale where x >= 0, else -scale."""
    node.only_map(0)
    scale = same(fractions(node.constant(1, "scale")))
    if scale is None or scale <= 0:
        raise Unsupported("a map's scale must be one number > 0")
    node.append(Levels, base=-scale, step=2 * scale, boundaries=_row([Fraction(0)]), reached=np.array([True]))


@operator("Sign")
def sign(node: NodeView) -> None:
    """-1, 0 or 1."""
    zero = Fraction(0)
    node.append(
        Levels, base=Fraction(-1), step=Fraction(1), boundaries=_row([zero, zero]), reached=np.array([True, False])
    )


@operator("QuantizeLinear")
def quantize_linear(node: NodeView) -> None:
    """ONNX's quantiser: what it makes are the integers."""
    node.only_map(0)
    node.quantise(linear_rule(node.constant(1, "the scale"), node.optional(2)), integers=True)


@operator("DequantizeLinear")
def dequantize_linear(node: NodeView) -> None:
    """(x - zero point) * scale."""
    node.only_map(0)
    scale, zero = fractions(node.constant(1, "the scale")), node.optional(2)
    one, offset = same(scale), Fraction(0) if zero is None else same(fractions(zero))
    if one is None or offset is None:
        raise Unsupported("a map's scale and zero point must be one number each, got one a channel")
    node.affine(multiply=one, add=-one * offset)


@operator("Trunc")
def trunc(node: NodeView) -> None:
    """QONNX's truncation: x / scale is rounded, divided by a power of two, clipped, and rounded downwards."""
    node.only_map(0)
    scale, zero, bits = (_number(node, place) for place in (1, 2, 3))
    if len(node.node.inputs) < 6:
        out_bits, out_scale = _number(node, 4), scale
        shift, is_signed, narrow = int(bits - out_bits), True, False
        # The first version doesn't clip, because no value is beyond what its bits hold, signed or not.
        low, high = -(1 << int(out_bits)), (1 << int(out_bits)) - 1
    else:
        out_scale, out_bits = _number(node, 4), _number(node, 5)
        shift = round(np.log2(float(out_scale / scale)))
        is_signed, narrow = bool(node.attribute("signed", 1)), bool(node.attribute("narrow", 0))
        low = -(1 << int(out_bits) - 1) + narrow if is_signed else 0
        high = (1 << int(out_bits) - 1) - 1 if is_signed else (1 << int(out_bits)) - 1 - narrow
    if zero != 0 or not 0 <= shift <= 32 or not 1 <= out_bits <= 16:
        raise Unsupported(
            f"the zero point must be 0 and 0..32 bits go to leave 1..16, got {zero}, {shift} and {out_bits}"
        )
    mode = str(node.attribute("rounding_mode", "FLOOR")).upper()
    outer = Rule(
        scale=np.array(scale * (1 << shift), object), zero=Fraction(0), low=low, high=high, rounding=mode
    )
    boundaries, reached = outer.boundaries()
    if mode == "FLOOR" and shift:
        # The first rounding, halves to even, lets a half below an (even) multiple of 2^shift reach it.
        boundaries = boundaries - scale / 2
    elif shift:
        raise Unsupported(f"the rounding mode must be FLOOR, got {mode[:40]}")
    node.append(
        Levels, base=Fraction(low) * out_scale, step=out_scale, boundaries=boundaries, reached=reached
    )


@operator("MultiThreshold")
def multi_threshold(node: NodeView) -> None:
    """out_bias + out_scale * (how many of the channel's thresholds x has reached)."""
    node.only_map(0)
    thresholds = np.sort(np.asarray(node.constant(1, "thresholds"), np.float64), axis=-1)
    scale, bias = Fraction(float(node.attribute("out_scale", 1.0))), Fraction(float(node.attribute("out_bias", 0.0)))
    if thresholds.ndim != 2 or scale <= 0:
        raise Unsupported("thresholds must have the shape (channels, levels), and out_scale must be > 0")
    last = str(node.attribute("data_layout", "")) in ("NHWC", "NWC")
    node.append(
        Levels,
        base=bias,
        step=scale,
        boundaries=fractions(thresholds),
        reached=np.ones(thresholds.shape[1], bool),
        axis=len(node.shape) - 1 if last else 1,
    )


def _number(node: NodeView, place: int) -> Fraction:
    value = same(fractions(node.constant(place, f"input {place}")))
    if value is None:
        raise Unsupported(f"input {place} must be one number")
    return value


def _row(limits: list[Fraction]):  # type: ignore[no-untyped-def]
    out = np.empty((1, len(limits)), object)
    out[0, :] = limits
    return out
