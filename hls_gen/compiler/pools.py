"""Pools as the engines have them: one behind the activation. What a network writes otherwise is rewritten, exactly.

    sum_pool               -->  part of the sums            hls_gen/compiler/summed_window.py
    avg_pool, threshold    -->  part of the sums, and other thresholds

    max_pool, requantise   -->  requantise, max_pool      a requantisation never falls, so it keeps the largest
    max_pool, max_pool     -->  one max_pool              where both together read what one larger window reads

Golden's layers stay as they are: only what a segment's tail is lowered from changes.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layer import Layer
from bitloom.golden.layers.pool import AvgPool, MaxPool, MinPool, Pool, SumPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model
from bitloom.golden.window import Pair, Window

from .segments import Segment
from .summed_window import SummedWindow, limits_of_sums


def canonical(segment: Segment) -> Segment:
    """The segment with pools that add up sums as part of these, its other pools behind a requantisation, and pools of
    one kind as one, wherever that is exact."""
    sums = list(segment.sums)
    tail = list(segment.tail)
    while tail and _adds_up(sums, tail):
        sums.append(tail.pop(0))  # type: ignore[arg-type]
    segment = replace(segment, sums=tuple(sums))
    for i in range(len(tail) - 1, 0, -1):
        if isinstance(tail[i], Requantise):
            first = next((k for k in range(i) if all(isinstance(t, MaxPool | MinPool) for t in tail[k:i])), i)
            tail.insert(first, tail.pop(i))
    size = segment.window.output_size(segment.source.height, segment.source.width)
    merged = list[Layer]()
    before = size  # of the map that the last one of ``merged`` reads
    for layer in tail:
        last = merged[-1] if merged else None
        if isinstance(layer, MaxPool | MinPool) and isinstance(last, Pool) and type(last) is type(layer):
            window = together(last.window, layer.window, before)
            if window:
                shape = {"kernel": window.kernel, "stride": window.stride, "padding": window.padding}
                merged[-1] = replace(last, **shape)  # type: ignore[arg-type]
                size = window.output_size(*before)
                continue
        before = size
        size = layer.window.output_size(*size) if isinstance(layer, Pool) else size
        merged.append(layer)
    return replace(segment, tail=tuple(merged))


def _adds_up(sums: Sequence[Pool], tail: Sequence[Layer]) -> bool:
    """Whether the first layer of a tail adds up the sums before it, behind the pools ``sums`` that do: the one average
    among them is the last one, and thresholds of it follow."""
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
    window = segment.window
    assert isinstance(window, SummedWindow)
    return limits_of_sums(arrays["threshold"], arrays["direction"], window.repeated)


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
    if any(pad >= length for pad, length in zip([*near, *far], kernel * 2)):
        return None
    made = Window(kernel=(kernel[0], kernel[1]), stride=(stride[0], stride[1]), padding=(*near, *far))  # type: ignore[arg-type]
    for axis in (0, 1):
        if _covered(made.reads(*size)[axis], size[axis]) != _both(first, second, size, axis):
            return None
    return made


def _covered(lines: Array, length: int) -> list[set[int]]:
    """The rows, or columns, of a map of that length that each window reads."""
    return [{int(line) for line in window if 0 <= line < length} for window in lines]


def _both(first: Window, second: Window, size: Pair, axis: int) -> list[set[int]]:
    """The rows, or columns, that each window of ``second`` reads by way of the windows of ``first``."""
    results = first.output_size(*size)
    inner = _covered(first.reads(*size)[axis], size[axis])
    outer = _covered(second.reads(*results)[axis], results[axis])
    return [set().union(*(inner[k] for k in window)) for window in outer]
