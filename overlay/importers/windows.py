"""Windows of convolutions and pools on tensors: what their taps see, and what is too much."""

from collections.abc import Iterator

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.limits import TAPS
from bitloom.golden.window import Window

from .errors import Unsupported
from .source import MOST_WEIGHTS, Shape


def output_size(window: Window, shape: Shape) -> tuple[int, int]:
    """Rows and columns of what a window makes of (N, C, rows, columns); Unsupported if it doesn't fit."""
    rows, columns = window.output_size(shape[2], shape[3])
    if rows < 1 or columns < 1:
        raise Unsupported(f"the window must fit the padded map, got {window.kernel} on {shape[2]} x {shape[3]}")
    if (taps := rows * columns * window.kernel[0] * window.kernel[1]) > TAPS.value:
        raise Unsupported(f"all windows together must have at most {TAPS.value:,} taps, got {taps:,}")
    return rows, columns


def taps_of(x: Array, window: Window, filler: float) -> Iterator[tuple[int, int, Array]]:
    """Of (N, C, rows, columns) what each tap of a kernel sees, (N, C, outputs' rows, columns), with its place."""
    rows, columns = output_size(window, x.shape)
    top, left, bottom, right = window.padding
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=filler)
    (down, aside), (height, width), (lower, further) = window.stride, window.kernel, window.dilation
    for row in range(height):
        for column in range(width):
            begin, first = row * lower, column * further
            taken = padded[:, :, begin : begin + (rows - 1) * down + 1 : down]
            yield row, column, taken[..., first : first + (columns - 1) * aside + 1 : aside]


def check_weights(count: int) -> None:
    """Refuse more weights than MOST_WEIGHTS, before they are made."""
    if count > MOST_WEIGHTS:
        raise Unsupported(f"a layer must have at most {MOST_WEIGHTS:,} weights, zeros counted, got {count:,}")
