"""Rules for pools: engines have one behind the activation. What a network writes otherwise is rewritten, exactly.

    sum_pool               -->  part of the sums            hls_gen/compiler/taps.py
    avg_pool, threshold    -->  part of the sums, and other thresholds

    max_pool, requantise   -->  requantise, max_pool      a requantisation never falls, so it keeps the largest
    max_pool, max_pool     -->  one max_pool              where both together read what one larger window reads

Golden's layers stay as they are: only what a segment's tail is lowered from changes. The rules below rewrite a
segment (golden/rewrite.py).
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layer import Layer
from bitloom.golden.layers.pool import AvgPool, MaxPool, MinPool, Pool, SumPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model
from bitloom.golden.rewrite import Inexact, rewrite
from bitloom.golden.window import Pair, Window
from bitloom.hls_gen.design.pool_unit import POOLS, PoolReduction

from .segments import Segment
from .taps import limits_of_sums


def reduction_of(pool: Pool) -> PoolReduction:
    """How a pool unit computes a pool."""
    return next(reduction for reduction in POOLS if type(pool) in reduction.layers)


def canonical(segment: Segment) -> Segment:
    """The segment as engines have it, wherever that is exact: pools that add up sums are part of the sums, other pools
    stand behind the requantisation, and pools of one kind are one pool."""
    return rewrite(segment, RULES, check_same_positions)


def a_pool_adds_up_sums(segment: Segment) -> Segment | None:
    """A sum pool directly behind the sums, or an average that thresholds follow: the sums take it up."""
    if not segment.tail or not _adds_up(segment.sums, segment.tail):
        return None
    pool, *tail = segment.tail
    assert isinstance(pool, Pool)
    return replace(segment, sums=(*segment.sums, pool), tail=tuple(tail))


def a_requantisation_comes_before_pools(segment: Segment) -> Segment | None:
    """A requantisation behind a max or min pool, which keeps one of the values that it reads."""
    tail = list(segment.tail)
    for place, (pool, layer) in enumerate(pairwise(tail)):
        if isinstance(pool, MaxPool | MinPool) and isinstance(layer, Requantise):
            tail[place : place + 2] = [layer, pool]
            return replace(segment, tail=tuple(tail))
    return None


def two_pools_become_one(segment: Segment) -> Segment | None:
    """Two pools of one kind, one behind the other, become one pool, where a single larger window reads the same."""
    tail = list(segment.tail)
    size = segment.window.output_size(segment.source.height, segment.source.width)
    for place, (first, second) in enumerate(pairwise(tail)):
        if isinstance(first, MaxPool | MinPool) and isinstance(second, Pool) and type(first) is type(second):
            window = together(first.window, second.window, size)
            if window:
                tail[place : place + 2] = [_with_window(first, window)]
                return replace(segment, tail=tuple(tail))
        size = first.window.output_size(*size) if isinstance(first, Pool) else size
    return None


def _with_window(pool: Pool, window: Window) -> Pool:
    """The pool with another window."""
    shape = {"kernel": window.kernel, "stride": window.stride, "padding": window.padding}
    return replace(pool, **shape)  # type: ignore[arg-type]


RULES = (a_pool_adds_up_sums, a_requantisation_comes_before_pools, two_pools_become_one)


def check_same_positions(before: Segment, after: Segment) -> None:
    """Raise Inexact unless each value of a segment's map is made of the same positions of the weighted layer's sums,
    and the same layers but pools make it."""
    if _positions(before) != _positions(after):
        raise Inexact(f"{before.name}: the map must be made of the same sums")
    others = [[layer for layer in segment.tail if not isinstance(layer, Pool)] for segment in (before, after)]
    if others[0] != others[1]:
        raise Inexact(f"{before.name}: layers but pools must stay the same")


def _positions(segment: Segment) -> list[list[set[int]]]:
    """By axis: the rows, or columns, of the weighted layer's sums that each row, or column, of the map is made of."""
    size = segment.layer.window(segment.source).output_size(segment.source.height, segment.source.width)
    lines = [[{line} for line in range(length)] for length in size]
    for pool in (*segment.sums, *(layer for layer in segment.tail if isinstance(layer, Pool))):
        for axis in (0, 1):
            read = _covered(pool.window.reads(*size)[axis], size[axis])
            lines[axis] = [set().union(*(lines[axis][line] for line in window)) for window in read]
        size = pool.window.output_size(*size)
    return lines


def _adds_up(sums: Sequence[Pool], tail: Sequence[Layer]) -> bool:
    """Whether the first layer of a tail adds up sums, behind the pools ``sums``, which do so already: a sum pool, or an
    average that thresholds follow. Behind an average no further pool does."""
    if any(isinstance(pool, AvgPool) for pool in sums):
        return False
    if isinstance(tail[0], SumPool):
        return True
    behind = next((layer for layer in tail[1:] if not isinstance(layer, MaxPool | MinPool)), None)
    return isinstance(tail[0], AvgPool) and isinstance(behind, Threshold)


def thresholds_of(model: Model, segment: Segment, act: Threshold) -> Array:
    """(channels, levels) thresholds ``act`` of a segment, as those of its sums."""
    arrays = model.arrays[act.name]
    if not segment.sums or not isinstance(segment.sums[-1], AvgPool):
        return arrays["threshold"].astype(np.int64)
    return limits_of_sums(arrays["threshold"], arrays["direction"], segment.window.pools[-1].repeated)


def together(first: Window, second: Window, size: Pair) -> Window | None:
    """The window that reads what ``second`` reads of the results of ``first``, on a map of this size; None if none
    does."""
    results = first.output_size(*size)
    rows, columns = second.output_size(*results)
    kernel = tuple((b - 1) * s + a for a, b, s in zip(first.kernel, second.kernel, first.stride))
    stride = tuple(a * b for a, b in zip(first.stride, second.stride))
    near = [first.padding[k] + second.padding[k] * first.stride[k] for k in (0, 1)]
    ends = [(count - 1) * stride[k] + kernel[k] - near[k] for k, count in enumerate((rows, columns))]
    far = [max(0, end - length) for end, length in zip(ends, size)]
    window = Window(kernel=(kernel[0], kernel[1]), stride=(stride[0], stride[1]), padding=(*near, *far))  # type: ignore[arg-type]
    for axis in (0, 1):
        if _covered(window.reads(*size)[axis], size[axis]) != _both(first, second, size, axis):
            return None
    return window


def _covered(lines: Array, length: int) -> list[set[int]]:
    """The rows, or columns, of a map of that length that each window reads."""
    return [{int(line) for line in window if 0 <= line < length} for window in lines]


def _both(first: Window, second: Window, size: Pair, axis: int) -> list[set[int]]:
    """The rows, or columns, that each window of ``second`` reads by way of the windows of ``first``."""
    results = first.output_size(*size)
    inner = _covered(first.reads(*size)[axis], size[axis])
    outer = _covered(second.reads(*results)[axis], results[axis])
    return [set().union(*(inner[k] for k in window)) for window in outer]
