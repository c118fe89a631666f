"""Lanes that share a weight, as sizing will find them for a chain of the search (hls_gen/compiler/sharing.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bitloom.golden.graph import INPUT
from bitloom.hls_gen.compiler.lowered_layers import Xnor
from bitloom.hls_gen.compiler.lowering import Lowered
from bitloom.hls_gen.design.npu import Npu

if TYPE_CHECKING:
    from .layer_demand import LayerDemand


def value_bits(lowered: Lowered) -> dict[str, int]:
    """Thermometer bits of a value of each map, by the layer that makes it; 1 where values are integers."""
    bits = {p.name: p.levels if isinstance(p.arithmetic, Xnor) else 1 for p in lowered.layers}
    return {**bits, INPUT: lowered.source.encoding.bits if lowered.source.encoding.kind == "bipolar" else 1}


def shared_lanes(own: Sequence[LayerDemand], npu: Npu, *, first: bool) -> dict[str, int]:
    """Which lanes of an NPU share a weight, by its parameters; nothing where each has its own.

    Where the NPU before it decides how far apart they lie, that makes no difference to the area.

    Parameters
    ----------
    own
        Its layers.
    npu
        Its folding.
    first
        Whether it is NPU 0.
    """
    bits = {layer.bits for layer in own if not layer.planes}
    if npu.engine != "binary" or npu.planes or len(bits) != 1 or (len(own) > 1 and not first):
        return {}
    found = {"lanes_per_weight": bits.pop(), "lane_step": npu.ol if len(own) > 1 else 1}
    if found["lanes_per_weight"] == 1 or found["lanes_per_weight"] * found["lane_step"] > npu.kfp:
        return {}
    made = replace(npu, **found)
    return {} if any(layer.words(made) > layer.words(npu) for layer in own) else found
