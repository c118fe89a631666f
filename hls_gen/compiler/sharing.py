"""Lanes that share a weight: where maps have values of several thermometer bits, a weight is stored once
(docs/decisions/0015).

The bits of a value meet the same weight, in lanes OL apart, since results leave OL channels at a time, level after
level (layout.result_layout). So the kernel memory needs one of them, and wires lead it to all lanes
(hls_gen/rtl/array/convolver.py).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bitloom.golden.graph import INPUT
from bitloom.hls_gen.design.npu import Npu

from .layout import Layout
from .lowered_layers import BinaryLayer, IntegerLayer
from .plan import Plan


def sharing(n: int, npu: Npu, plans: Sequence[Plan]) -> Npu:
    """Let lanes of an NPU share weights, where every map that it reads allows it.

    These maps have the same number of bits a value, more than 1, and the bits of a value lie equally far apart. An
    input of integers, whose bit planes follow one another, may be among them.

    Parameters
    ----------
    n
        Number of the NPU.
    npu
        The NPU, whose lanes have weights of their own.
    plans
        All networks for its design.

    Returns
    -------
    Npu
        With ``lanes_per_weight`` and ``lane_step``, or as it was.
    """
    if npu.engine != "binary" or npu.planes or npu.binariser_bits or npu.former_column:
        return npu
    levels, steps = set[int](), set[int]()
    for made in plans:
        by_name = {p.name: (p, made.npus[m].folding.ol) for p, m in zip(made.lowered.layers, made.mapping)}
        for p in made.npus[n].layers:
            if p.reads == INPUT:
                levels |= set() if made.lowered.input_bits else {made.lowered.source.encoding.bits}
            else:
                producer, step = by_name[p.reads]
                levels.add(_bits(producer))
                steps.add(step)
    if len(levels) != 1 or len(steps) > 1:
        return npu
    several, apart = levels.pop(), max(steps, default=1)
    if several == 1 or several * apart > npu.kfp:
        return npu
    found = replace(npu, lanes_per_weight=several, lane_step=apart)
    maps = [
        words // several  # channels: UNUSED is -1, and stays so
        for made in plans
        for p, words in zip(made.npus[n].layers, made.npus[n].words)
        if p.reads != INPUT
    ]
    return found if all(_fits(found, m) for m in maps) else npu


def _bits(p: BinaryLayer | IntegerLayer) -> int:
    """Bits of a value of the map that a lowered layer makes for one of the binary engine."""
    return p.levels if isinstance(p, BinaryLayer) else 1


def _fits(npu: Npu, channels: Layout) -> bool:
    """Whether lanes that share a weight have one channel in each word, or all are UNUSED."""
    of_lanes = np.array(npu.weight_of_lanes)
    first = np.unique(of_lanes, return_index=True)[1]
    return bool((channels[:, first[of_lanes]] == channels).all())
