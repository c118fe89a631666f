"""Cycles that a layer keeps an NPU busy if it waits for no other one: what a chain is cut by
(hls_gen/compiler/mapping.py).

Array, results unit and pool unit work on a layer at the same time, and the next layer reads what they make: the slowest
of them counts.
"""

from math import inf

import numpy as np

from bitloom.golden.window import Window
from bitloom.hls_gen.design.folding import Folding
from bitloom.hls_gen.design.npu import Npu

from .joined_taps import joined_taps
from .layout import chunks
from .lowered_layers import BinaryLayer, IntegerLayer
from .lowering import Lowered
from .summed_window import SummedWindow
from .tuple_parts import tuple_part

Layer = BinaryLayer | IntegerLayer


def layer_cycles(lowered: Lowered, npu: Folding) -> list[float]:
    """Cycles of each layer on an NPU, of the first one with a window former if the NPU has one; infinite on another
    engine."""
    found = [cycles_on(p, npu) for p in lowered.layers]
    formed = joined_taps(lowered, npu) if isinstance(npu, Npu) and "host" in npu.inlets else None
    if formed is not None:  # the former takes a position a cycle
        found[0] = min(found[0], max(cycles_on(formed.layers[0], npu), lowered.source.positions))
    return found


def cycles_on(p: Layer, npu: Folding) -> float:
    """Cycles of a layer whose taps are not joined on an NPU; infinite on another engine."""
    height, width = p.window.output_size(p.height, p.width)
    groups, rest = divmod(p.out_channels, npu.kgp)
    steps = height * width * p.levels * (groups * -(-npu.kgp // npu.ol) + -(-rest // npu.ol))
    taps = _taps(p.pool, height, width) if p.pool else height * width  # the pool unit takes what has no pool, too
    pooled = taps * -(-p.out_channels * p.levels // npu.pfp) if npu.pool and not p.raw else 0
    return max(_beats(p, npu), steps, pooled)


def _beats(p: Layer, npu: Folding) -> float:
    """Beats of a layer on an NPU, of an integer input about; infinite on another engine."""
    if npu.engine != ("binary" if isinstance(p, BinaryLayer) else "integer"):
        return inf
    words = tuple_part(p, chunks(np.arange(np.prod(p.weight.shape[2:])), npu.kfp), npu.kgp)[0].words
    return _taps(p.window, p.height, p.width) * p.visits * words * -(-p.out_channels // npu.kgp)


def _taps(window: Window | SummedWindow, height: int, width: int) -> int:
    """Valid taps of all windows of a map."""
    return int((window.positions(height, width) >= 0).sum())
