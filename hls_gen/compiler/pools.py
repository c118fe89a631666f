"""Pools as the engines have them: one behind the activation. What a network writes otherwise is rewritten, exactly.

    max_pool, requantise   -->  requantise, max_pool      a requantisation never falls, so it keeps the largest
    max_pool, max_pool     -->  one max_pool              where both together read what one larger window reads

Golden's layers stay as they are: only what a part's tail is lowered from changes.
"""

from dataclasses import replace

from bitloom.golden.encoding import Array
from bitloom.golden.layer import Layer
from bitloom.golden.layers.pool import MaxPool, MinPool, Pool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.window import Pair, Window

from .parts import Part


def canonical(part: Part) -> Part:
    """The part with its pools behind a requantisation, and pools of one kind as one, wherever that is exact."""
    tail = list(part.tail)
    for i in range(len(tail) - 1, 0, -1):
        if isinstance(tail[i], Requantise):
            first = next((k for k in range(i) if all(isinstance(t, MaxPool | MinPool) for t in tail[k:i])), i)
            tail.insert(first, tail.pop(i))
    sums = part.layer.output(part.source)
    size, merged = (sums.height, sums.width), list[Layer]()
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
    return replace(part, tail=tuple(merged))


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
