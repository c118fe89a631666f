"""Cycles that a layer keeps an NPU busy if it waits for no other one: what a chain is cut by
(hls_gen/compiler/mapping.py).

Array, results unit and pool unit work on a layer at the same time, and the next layer reads what they make: the slowest
of them counts (sequencer_work.py).
"""

from collections.abc import Sequence
from math import inf

import numpy as np

from bitloom.hls_gen.design.npu import Npu

from .layout import chunks, result_steps
from .parts import Part
from .sequencer_work import SequencerWork
from .tuple_parts import tuple_part


def layer_cycles(parts: Sequence[Part], npu: Npu) -> list[float]:
    """Cycles of each part on an NPU, of the first one with a window former if the NPU has one; infinite on another
    engine."""
    cycles = [cycles_on(part, npu) for part in parts]
    first = parts[0]
    formed = first.behind_former(npu) if isinstance(npu, Npu) and "host" in npu.ports.inlets else None
    if formed is not None:  # the former takes a position a cycle
        cycles[0] = min(cycles[0], max(cycles_on(formed, npu), first.height * first.width))
    return cycles


def cycles_on(part: Part, npu: Npu) -> float:
    """Cycles of a part whose taps are not joined on an NPU; infinite on another engine."""
    height, width = part.window.output_size(part.height, part.width)
    steps = result_steps(part.out_channels, part.levels, npu.array.kgp, npu.results.ol)
    pooled = 0
    if npu.pool_unit and not part.raw:  # maps without a pool pass the unit, too
        work = SequencerWork.of_map(part.pool, height, width) if part.pool else SequencerWork.straight(height * width)
        pooled = work.cycles(npu.pool_words(steps))
    return max(_beats(part, npu), height * width * steps, pooled)


def _beats(part: Part, npu: Npu) -> float:
    """Beats of a part on an NPU, of an integer input about; infinite on another engine."""
    if npu.engine != part.engine.name:
        return inf
    words = tuple_part(part.weighted, chunks(np.arange(part.lanes), npu.array.kfp), npu.array.kgp)[0].words
    work = SequencerWork.of_map(part.window, part.height, part.width)
    return work.cycles(part.visits * words) * -(-part.out_channels // npu.array.kgp)
