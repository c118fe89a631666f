"""Kernel row of the tap at hand (spec B10): which row of weights its first word meets.

    first tap of a window: the kernel group's first row + the window's start
    next tap:              the row after the last one of this tap, or where a jump or a new line of the kernel leads
    next kernel group:     group_rows further, from the same start

Rows count up while taps follow one another in the kernel. Where places of the kernel lie beside the map they have no
taps, and the row must jump: tables say at which taps and to which rows, counters add up rows of places and lines.
"""

from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, any_of, choose, const, width

from .layers import Layers
from .raster import CounterTaps
from .tables import TableTaps
from .tap_events import TapEvents


class KernelRows:
    """The kernel row in a tap source. A tap source in front of a pool unit with weights has no kernel groups.

    Attributes
    ----------
    row : Signal
        Kernel row of the first word of the tap at hand; row bits.
    """

    def __init__(self, b: Block, layers: Layers):
        self._b = b
        self._layers = layers
        w = width(layers.now.kernel.kernel_base)
        self.row = b.reg("row", w)
        self._group_row = b.reg("group_row", w)  # first row of the kernel group

    def advance(self, events: TapEvents, skip: Signal, tables: TableTaps, counters: CounterTaps | None) -> None:
        """Let the row follow the taps.

        Parameters
        ----------
        events : TapEvents
            Events of the tap at hand.
        skip : Signal
            The tap at hand is no tap of a window, and has no place in the kernel.
        tables, counters : TableTaps and CounterTaps
            The sources that know where rows jump. In direct layers they never do.
        """
        b = self._b
        row = self.row
        group_row = self._group_row
        now = self._layers.now
        w = width(row)
        jump = tables.jump
        target = tables.jump_row
        words_minus_1 = now.words_minus_1 if now.kernel.part is None else now.kernel.part.words_minus_1
        tap_rows = words_minus_1 if now.kernel.tap_rows_minus_1 is None else now.kernel.tap_rows_minus_1
        next_row = choose(jump, group_row + target, add(row, tap_rows, w) + const(1, w), w)
        base = now.kernel.kernel_base
        landing = base + choose(jump, target, 0, w)
        if counters is not None:
            line = b.reg("line_row", w)  # row of the first tap of this line of the kernel
            line_next = b.wire("line_row_next", w, line + now.raster.kernel.line_rows)
            next_row = choose(counters.serves & counters.line_end, line_next, next_row, w)
            by_counters = counters.landing(events, base, self._layers.upcoming.kernel.kernel_base)
            landing = choose(counters.serves, by_counters, landing, w)
        first = self._first_row(events, b.wire("landing", w, landing))
        begins = any_of(events.change, events.last)  # another pass, which begins at row ``first``
        moves = events.move & any_of(events.change, ~skip)
        b.on(moves, (row, choose(begins, first, b.wire("next_row", w, next_row), w)))
        if counters is not None:
            line_ends = events.move & any_of(events.change, counters.line_end)
            b.on(line_ends, (line, choose(begins, first, line_next, w)))

    def _first_row(self, events: TapEvents, landing: Signal) -> Signal:
        """Row of the first tap of the pass that follows."""
        b = self._b
        group_row = self._group_row
        now = self._layers.now.kernel
        upcoming = self._layers.upcoming.kernel.kernel_base
        w = width(group_row)
        change = events.change
        rewind = events.rewind
        first = landing
        group = now.kernel_base
        if rewind is not None:
            pass_row = b.reg("pass_row", w)  # row of the first tap of the pass at hand
            first = choose(rewind, pass_row + now.group_rows, first, w)
            group = choose(rewind, group_row + now.group_rows, group, w)
        first = b.wire("first_row", w, choose(change, upcoming + self._layers.start.start_row, first, w))
        b.on(events.passes, (group_row, choose(change, upcoming, group, w)))
        if rewind is not None:
            b.on(events.passes, (pass_row, first))
        return first
