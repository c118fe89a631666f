"""Taps by counters: those of a layer in raster order from a few numbers of its row (spec B7), which
hls_gen/compiler/schedule/raster.py finds.  Golden twin: `counted_taps` in
tests/hls_gen/compiler/test_schedule_raster.py.

    layer row --> place in the kernel, room to the map's edge, lead before it: for x and y
              --> last, new, gap, relative word, kernel row of the tap at hand

One tap a cycle, and nothing is read from a memory. What is asked of the place at hand (is it the last one of its line,
is the window the last one of its row) is found a step ahead and stands in registers, since the longest paths of the tap
source begin with the answer. Addresses and kernel rows are added up, never multiplied: each step is a field of the
layer's row. Some tuples are claimed by a row of windows before its own first tap, because only later windows read them.
Tables spend a cycle on each such tuple (a skip); counters claim them all at once with the next tap (``gap``), so that
no cycle is lost. The issuer's count of words that have arrived then goes below 0 until they are there.
"""

from bitloom.hls_gen.design.widths import PLACE_BITS, SIDE_BITS
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, all_of, any_of, choose, const, eq, nonzero, width

from .axis import axis_of, ends
from .layers import Layers
from .source import ALWAYS, NEVER
from .tap_events import TapEvents


class CounterTaps:
    """The tap source of layers in raster order (interface: source.TapSource).

    Attributes
    ----------
    gap : Signal
        Before this tap's tuple others arrive that only later windows read: ``gap_words`` words are claimed with it.
    word : Signal
        Address of the tap's tuple, new or old, counted from the layer's first word.
    row_end : Signal
        The window at hand is the last one of its row of windows.
    line_end : Signal
        The tap at hand is the last one of its line of the kernel.
    x, y : Axis
        Where the window lies.
    """

    def __init__(self, b: Block, layers: Layers, tuple_words: Signal):
        row = self._row = layers.now.raster
        b.comment("Taps by counters: where the window lies in x and y, and which of its tuples are new.")
        self._b = b
        self._start = layers.start
        self._upcoming = layers.upcoming.raster
        self._tuple_words = tuple_words
        self._bits = width(tuple_words)
        self.serves = row.by_counters
        self.skip = NEVER
        self.placed = ALWAYS
        self.y = axis_of(b, "y", row.y, const(0, self._bits))
        self.x = axis_of(b, "x", row.x, self.y.at)
        self.word = b.reg("counted_word", self._bits)
        self._top, self._left = b.reg("top_windows"), b.reg("left_window")  # first row of windows, first of its row
        self._line_start = b.reg("line_start")  # first tap of its line of the kernel
        self._line_before = b.reg("line_before")  # the line before in this window had new tuples too
        self._second = b.reg("second_visit") if row.twice is not None else None
        # a line of the map is new in the first window that reaches it, and a tuple if the window to the left ended
        # before it
        self._reaches = b.reg("line_reaches")  # the window is the first one below the one before to reach this line
        self._line_new = b.wire("line_new", 1, any_of(self._top, self._reaches))
        fresh = all_of(self.y.final, self.x.place >= row.x.fresh)
        new = all_of(self._line_new, any_of(self._left, fresh))
        gap = all_of(self._line_new, self._left, self._line_start, self._line_before)
        visited = None if self._second is None else b.wire("visited", 1, any_of(self._second, ~row.twice))
        if self._second is not None:
            new = all_of(new, ~self._second)
            gap = all_of(gap, ~self._second)
        self.new, self.gap = b.wire("counted_new", 1, new), b.wire("counted_gap", 1, gap)
        line_end = self.x.final if visited is None else all_of(self.x.final, visited)
        self._visited = visited
        self.line_end = b.wire("line_end", 1, line_end)
        self.will_serve: Signal = NEVER  # it is looked at where no other source will serve
        self.row_end = b.reg("row_end")
        # a row of windows, or a layer, begins with the next move: a register, since whether there is one comes late
        self._row_change = b.reg("row_change", init=1)
        # row_end, x_final and x_beyond of a row's first window
        self._left_flags = tuple(b.reg(f"left_{name}") for name in ("row_end", "final", "beyond"))
        self._after = self._after_window()

    def advance(self, events: TapEvents) -> Signal:
        """Go on to the next tap, to the next line, back to the window's first tap, or to the next window."""
        b = self._b
        row = self._row
        ring = self._bits
        x = self.x
        line = b.reg("line_word", ring)  # of the tap's line: it begins at the window's first tap
        line_next = b.wire("line_word_next", ring, line + row.line_words)
        tap_done = events.move
        if self._visited is not None:
            tap_done = b.wire("visits_done", 1, events.move & any_of(events.change, self._visited))
        if self._second is not None:
            b.on(events.move, (self._second, choose(events.change, 0, ~self._visited, 1)))
        change = events.change
        end = self.row_end
        word = b.wire("window_word", ring, choose(end, self.y.next_at, x.next_at, ring))
        if events.rewind is not None:
            word = choose(events.rewind, x.at, word, ring)
        first = b.wire("first_word", ring, choose(change, 0, word, ring))  # of the next pass
        begins = any_of(change, events.last)
        onward = choose(x.final, line_next, self.word + self._tuple_words, ring)
        b.on(tap_done, (self.word, choose(begins, first, onward, ring)), (self._line_start, any_of(change, x.final)))
        again = any_of(change, events.window_end)
        line_done = events.move & any_of(events.change, self.line_end)
        b.on(
            line_done,
            (line, choose(begins, first, line_next, ring)),
            (self._line_before, choose(again, 0, self._line_new, 1)),
        )
        self._begins = self._begin_flags()
        last = self._next_place(events, (tap_done, line_done), self._begins)
        self._next_window(events)
        return last

    def follow(self, window_ends: Signal, layer_ends: Signal) -> None:
        """Find whether the tap at hand after the next move is the last one of a row of windows, or of its layer.

        To be called after `advance`.

        Parameters
        ----------
        window_ends, layer_ends : Signal
            That tap is the last one of its window, of its layer.
        """
        self._b.on(self._events.move, (self._row_change, any_of(layer_ends, window_ends & self._row_end_after)))

    def _after_window(self) -> tuple[tuple[Signal, Signal], ...]:
        """For x and y: lead and first_final of the next window."""
        b = self._b
        x = self.x
        y = self.y
        end = self.row_end
        left_final = self._left_flags[1]
        return (
            (
                b.wire("x_first_after", PLACE_BITS, choose(end, self._row.x_lead, x.next_lead, PLACE_BITS)),
                b.wire("x_final_after", 1, choose(end, left_final, x.lead_final, 1)),
            ),
            (
                b.wire("y_first_after", PLACE_BITS, choose(end, y.next_lead, y.lead, PLACE_BITS)),
                b.wire("y_final_after", 1, choose(end, y.lead_final, y.first_final, 1)),
            ),
        )

    def _begin_flags(self) -> tuple[tuple[Signal, Signal], ...]:
        """For x and y: final and beyond in the first window of the layer that begins next."""
        b = self._b
        row = self._upcoming
        start = self._start
        return tuple(
            (
                b.wire(f"{name}_final_begin", 1, ends(lead, axis, room)),
                b.wire(f"{name}_beyond_begin", 1, lead > axis.stride),
            )
            for name, axis, lead, room in (
                ("x", row.x, row.x_lead, row.x_room),
                ("y", row.y, start.y_lead, start.y_room),
            )
        )

    def _next_place(
        self, events: TapEvents, moves: tuple[Signal, Signal], begins: tuple[tuple[Signal, Signal], ...]
    ) -> Signal:
        """The place of the next tap and whether it is the last one of its line, of its column.

        Which value is the next doesn't depend on whether the tap is taken, which is known last: that only moves the
        registers, where x and y go on by ``moves``, or a layer begins. ``begins`` is that of `_begin_flags`.
        The result: the next tap is the last one of its window.
        """
        b = self._b
        change = events.change
        start = self._start
        finals = []
        for axis, moved, lead, (final_begin, _), (first, final) in (
            (self.x, moves[0], self._upcoming.x_lead, begins[0], self._after[0]),
            (self.y, moves[1], start.y_lead, begins[1], self._after[1]),
        ):
            onward = choose(axis.final, axis.lead, axis.next_place, PLACE_BITS)
            last = choose(axis.final, axis.first_final, axis.place_final, 1)
            place = choose(change, lead, choose(events.window_end, first, onward, PLACE_BITS), PLACE_BITS)
            last = choose(change, final_begin, choose(events.window_end, final, last, 1), 1)
            b.on(moved, (axis.place, place), (axis.final, last))
            finals.append(last)
            if axis is self.y:
                fresh = self._row.y.fresh  # not looked at in a layer's first row of windows
                b.on(moved, (self._reaches, choose(events.window_end, first >= fresh, onward >= fresh, 1)))
        x_final, y_final = finals
        y_final = choose(any_of(change, self.line_end), y_final, self.y.final, 1)
        if self._visited is not None:
            x_final = choose(any_of(change, self._visited), x_final, self.x.final, 1)
            twice = choose(change, self._upcoming.twice, self._row.twice, 1)
            x_final = all_of(x_final, any_of(~twice, ~change & ~self._visited))
        return b.wire("counted_last_next", 1, all_of(x_final, y_final))

    def _next_window(self, events: TapEvents) -> None:
        """Next values of the registers: at the end of a window, for the window to the right, or the first one of the
        next row of windows; and when a layer begins."""
        b = self._b
        x = self.x
        y = self.y
        row = self._row
        upcoming = self._upcoming
        start = self._start
        end = self.row_end
        left_end, left_final, left_beyond = self._left_flags
        (x_first, x_first_final), (y_first, _) = self._after
        (x_final, x_beyond), (y_final, y_beyond) = self._begins
        self._events = events
        self._rows = b.wire("next_window_row", 1, events.move & self._row_change)
        x_room = b.wire("x_room_after", SIDE_BITS, choose(end, row.x_room, x.next_room, SIDE_BITS))
        word = b.wire("x_at_after", self._bits, choose(end, y.next_at, x.next_at, self._bits))
        first_end = b.wire("row_end_begin", 1, eq(upcoming.x_room, upcoming.x_room_end))
        onward_end = choose(end, left_end, eq(x.next_room, row.x_room_end), 1)
        window_done = any_of(events.change, events.window_end)
        self._row_end_after = choose(window_done, choose(events.change, first_end, onward_end, 1), end, 1)
        self._become(
            events,
            events.windows,
            (x.lead, x_first, upcoming.x_lead),
            (x.led, choose(end, nonzero(row.x_lead), x.beyond, 1), nonzero(upcoming.x_lead)),
            (x.room, x_room, upcoming.x_room),
            (x.at, word, 0),
            (y.lead, y_first, start.y_lead),
            (self._left, end, 1),
            (end, onward_end, first_end),
            (x.first_final, x_first_final, x_final),
            (x.beyond, choose(end, left_beyond, x.next_beyond, 1), x_beyond),
        )
        self._become(
            events,
            self._rows,
            (y.led, y.beyond, nonzero(start.y_lead)),
            (y.room, y.next_room, start.y_room),
            (y.at, y.next_at, 0),
            (self._top, 0, 1),
            (y.first_final, y.lead_final, y_final),
            (y.beyond, y.next_beyond, y_beyond),
        )
        b.on(events.begin, (left_end, first_end), (left_final, x_final), (left_beyond, x_beyond))

    def _become(self, events: TapEvents, moves: Signal, *values: tuple[Signal, Signal | int, Signal | int]) -> None:
        """Registers that ``moves`` enables: each becomes its second value when a layer begins, else its first one."""
        for register, onward, first in values:
            w = width(register)
            self._b.on(moves, (register, choose(events.change, first, onward, w)))

    def landing(self, events: TapEvents, base: Signal, upcoming_base: Signal) -> Signal:
        """Kernel row of the next window's first tap in the first kernel group; row bits.

        To be called after `advance`. Registers have the rows of the next window's lead, and of the next row of
        windows, these from the layer's first kernel row on, so that one sum alone stands behind them.

        Parameters
        ----------
        events : TapEvents
            Events of the tap at hand.
        base, upcoming_base : Signal
            First kernel row of the layer at hand, and of the one that begins next.
        """
        b = self._b
        row = self._row.kernel
        upcoming = self._upcoming.kernel
        start = self._start
        end = self.row_end
        w = width(row.line_rows)
        x_next, y_row, y_next = (b.reg(name, w) for name in ("x_first_next_rows", "y_first_row", "y_first_next_row"))
        x_less = b.wire("x_rows_less", w, choose(self.x.next_beyond, x_next - row.x_stride_rows, 0, w))
        y_less = b.wire("y_row_less", w, choose(self.y.next_beyond, y_next - row.y_stride_rows, base, w))
        y_first, y_second = (upcoming_base + rows for rows in (start.y_lead_rows, start.y_second_rows))
        x_onward = choose(end, row.x_second_rows, x_less, w)
        self._become(events, events.windows, (x_next, x_onward, upcoming.x_second_rows))
        self._become(events, self._rows, (y_row, y_next, y_first), (y_next, y_less, y_second))
        x_after = b.wire("x_rows_after", w, choose(end, row.x_lead_rows, x_next, w))
        y_after = b.wire("y_row_after", w, choose(end, y_next, y_row, w))
        return b.wire("counted_landing", w, x_after + y_after)
