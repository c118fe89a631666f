"""Kernel row of the tap at hand (spec B10): which row of weights its first word meets.

    first tap of a window: the kernel group's first row + the window's start
    next tap:              the row after the last one of this tap, or where a jump or a new line of the kernel leads
    next kernel group:     group_rows further, from the same start

Rows count up while taps follow one another in the kernel. Where places of the kernel lie beside the map they have no
taps, and the row must jump: tables say where and whither, counters add up rows of places and lines.
"""

from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, choose, const, width

from .layers import Layers
from .progress import Progress
from .raster import CounterTaps
from .tables import Jumps


class KernelRows:
    """Registers of the kernel row.

    Attributes
    ----------
    row : Signal
        Kernel row of the first word of the tap at hand; row bits.
    """

    def __init__(self, b: Block, layers: Layers):
        w = width(layers.now.kernel.kernel_base)
        self._layers = layers
        self.row, self._group_row, self._start = b.reg("row", w), b.reg("group_row", w), b.reg("start_row", w)

    def advance(
        self, b: Block, progress: Progress, skip: Signal, jumps: Jumps, counters: CounterTaps | None
    ) -> None:  # fmt: skip
        """Let the row follow the taps."""
        row, group_row, start, now = self.row, self._group_row, self._start, self._layers.now
        step, w = progress.step, width(row)
        landed = choose(jumps.taken, jumps.target, 0, w)
        if counters is not None:
            landed = choose(counters.serves, counters.landing(b, progress, w), landed, w)
        landing = b.wire("landing", w, landed)
        next_group_row = b.wire("next_group_row", w, group_row + now.kernel.group_rows)
        tap_rows = now.words_minus_1 if now.kernel.tap_rows_minus_1 is None else now.kernel.tap_rows_minus_1
        next_row = choose(jumps.taken, group_row + jumps.target, add(row, tap_rows, w) + const(1, w), w)
        firsts = [row]  # both begin at the first tap of a pass
        if counters is not None:
            line = b.reg("line_row", w)  # kernel row of the first tap of this line of the kernel
            line_next = b.wire("line_row_next", w, line + now.raster.kernel.line_rows)
            next_row = choose(counters.serves & counters.line_end, line_next, next_row, w)
            b.on(step & counters.line_end, (line, line_next))
            firsts.append(line)
        onward = b.wire("onward", w, next_row)
        base, first = now.kernel.kernel_base, self._first
        b.on(step & ~skip, (row, onward))  # a skip has no place in the kernel
        b.on(step & progress.rewind, *[(r, next_group_row + start) for r in firsts], (group_row, next_group_row))
        b.on(
            step & progress.window_end, *[(r, base + landing) for r in firsts], (group_row, base), (start, landing)
        )  # fmt: skip
        b.on(
            progress.begin,
            *[(r, first) for r in firsts],
            (group_row, self._layers.upcoming.kernel.kernel_base),
            (start, self._layers.start.start_row),
        )

    @property
    def _first(self) -> Signal:
        """Kernel row of the first tap of the layer that begins."""
        return self._layers.upcoming.kernel.kernel_base + self._layers.start.start_row
