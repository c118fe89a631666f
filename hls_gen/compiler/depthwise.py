"""Depthwise convolutions, in which kernel k reads channel k alone: computed by a pool unit with weights, right behind
the layer before (hls_gen/rtl/pool_unit/pool_depthwise.py).

    conv_1  requantise_1 | conv_2 (depthwise)  requantise_2 | conv_3   -->   conv_1 ... requantise_2 | conv_3

A plain convolution whose weights are 0 for other channels than a kernel's own is a depthwise one, too. The array
computes a depthwise convolution where the pool unit can't, as a plain convolution (`plain_of`). No layer changes: only
the unit that computes it is chosen here, so that no rule of rewriting (golden/rewrite.py) is needed.
"""

from collections.abc import Sequence
from dataclasses import replace

from bitloom.golden.encoding import Array
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.grouped import DepthwiseConv, is_depthwise, ungrouped_weights
from bitloom.golden.layers.pool import Pool
from bitloom.golden.network import Model
from bitloom.golden.window import Window

from .pools import canonical
from .segments import Segment
from .trips import BEFORE_DEPTHWISE, DEPTHWISE


def plain_of(model: Model, segment: Segment) -> Array:
    """Weights (O, rows, columns, C) of a segment's layer, with zeros for channels that a kernel doesn't read."""
    weight = model.weights(segment.name)
    return ungrouped_weights(weight, segment.source.channels) if weight.shape[3] < segment.source.channels else weight


def fused(cut: Sequence[Segment], model: Model) -> list[Segment]:
    """Parts, each with the depthwise convolution that a pool unit with weights can compute behind it.

    Parameters
    ----------
    cut : sequence of Segment
        All parts of the network.
    model : Model
        Gives the weights.

    Returns
    -------
    list of Segment
        The parts that are left. What they read and add are names of parts that are left, too.
    """
    by_name = {segment.name: segment for segment in cut}
    taken: dict[str, str] = {}  # depthwise convolution -> the segment that it is fused with
    for segment in map(canonical, cut):
        before = by_name.get(segment.reads)
        if before is not None and before.name not in taken and _follows(canonical(before), segment, model):
            taken[segment.name] = before.name
    maker = {segment.name: taken.get(segment.name, segment.name) for segment in cut}
    follower = {before: name for name, before in taken.items()}
    segments = []
    for segment in cut:
        if segment.name in taken:
            continue
        behind = by_name[follower[segment.name]] if segment.name in follower else None
        segments.append(
            replace(
                segment,
                reads=maker.get(segment.reads, segment.reads),
                joins=None if segment.joins is None else maker[segment.joins],
                readers=tuple(maker[name] for name in (behind or segment).readers),
                adds=None if segment.adds is None else maker[segment.adds],
                output=(behind or segment).output,
                depthwise=behind,
            )
        )
    return segments


def _follows(before: Segment, segment: Segment, model: Model) -> bool:
    """Whether a pool unit can compute ``segment`` as it takes the results of ``before``."""
    plain = before.tail_kinds in BEFORE_DEPTHWISE and segment.tail_kinds in DEPTHWISE and segment.adds is None
    alone = segment.joins is None and before.readers == (segment.name,)
    if not plain or segment.sums or not alone or not isinstance(segment.layer, Conv):
        return False
    return isinstance(segment.layer, DepthwiseConv) or is_depthwise(plain_of(model, segment))


def window_of(segment: Segment) -> Window | None:
    """The window that the pool unit reads for a segment: of its pool, or of the depthwise convolution fused with it."""
    if segment.depthwise is not None:
        return segment.depthwise.layer.window(segment.depthwise.source)
    pool = segment.behind_sums(Pool)
    return pool.window if pool else None
