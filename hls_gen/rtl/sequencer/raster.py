"""Taps by counters: those of a layer in raster order from a few numbers of its row (spec B7).  Golden twin:
hls_gen/compiler/schedule/raster.py.

    layer row --> place in the kernel, room to the map's edge, lead before it: for x and y
              --> last, new, gap, relative word, kernel row of the tap at hand

One tap a cycle, and nothing is read from a memory. Addresses and kernel rows are added up, never multiplied: each step
is a field of the layer's row. Some tuples are claimed by a row of windows before its own first tap, because only later
windows read them. Tables spend a cycle on each such tuple (a skip); counters claim them all at once with the next tap
(``gap``), so that no cycle is lost. The issuer's count of words that have arrived then goes below 0 until they are
there.
"""

from dataclasses import dataclass

from bitloom.hls_gen.design.widths import PLACE_BITS, SIDE_BITS
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, all_of, any_of, choose, eq, nonzero, sub, width

from .layer_row import AxisRow
from .layers import Layers
from .progress import Progress
from .source import ALWAYS, NEVER


@dataclass(frozen=True)
class Axis:
    """One direction of the map: where the window at hand lies, and where the next one will.

    Attributes
    ----------
    place : Signal
        Place of the tap at hand in the kernel, 0 at the left or the top; PLACE_BITS.
    lead : Signal
        Places of the kernel before the map: the first place with a tap; PLACE_BITS.
    room : Signal
        Place of the kernel that lies on the map's last column or row; SIDE_BITS.
    at : Signal
        Words from the map's beginning to the window's first position on the map; address bits.
    final : Signal
        ``place`` is the last one with a tap: at the kernel's or at the map's end.
    beyond : Signal
        The next window begins before the map too.
    next_lead, next_room, next_at : Signal
        lead, room and at of the next window in this direction.
    """

    place: Signal
    lead: Signal
    room: Signal
    at: Signal
    final: Signal
    beyond: Signal
    next_lead: Signal
    next_room: Signal
    next_at: Signal


def _axis(b: Block, name: str, row: AxisRow, address_bits: int) -> Axis:
    """Registers and next values of direction ``name`` ("x" or "y"), of a layer with the fields ``row``."""
    place, lead = b.reg(f"{name}_place", PLACE_BITS), b.reg(f"{name}_first", PLACE_BITS)
    room, at = b.reg(f"{name}_room_now", SIDE_BITS), b.reg(f"{name}_at", address_bits)
    final = b.wire(f"{name}_final", 1, any_of(eq(place, row.kernel_minus_1), eq(place, room)))
    beyond = b.wire(f"{name}_beyond", 1, lead > row.stride)
    # the window after one with a lead moves by less than a stride on the map: its first position was cut off
    moved = b.wire(f"{name}_moved", address_bits, choose(nonzero(lead), row.cross, row.step, address_bits))
    next_lead = b.wire(
        f"{name}_first_next", PLACE_BITS, choose(beyond, sub(lead, row.stride, PLACE_BITS), 0, PLACE_BITS)
    )
    next_room = b.wire(f"{name}_room_next", SIDE_BITS, sub(room, row.stride, SIDE_BITS))
    next_at = b.wire(f"{name}_at_next", address_bits, choose(beyond, 0, at + moved, address_bits))
    return Axis(place, lead, room, at, final, beyond, next_lead, next_room, next_at)


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
        self._b, self._start, self._upcoming = b, layers.start, layers.upcoming.raster
        self._tuple_words, self._bits = tuple_words, width(tuple_words)
        self.serves, self.skip, self.placed = row.by_counters, NEVER, ALWAYS
        self.x, self.y = _axis(b, "x", row.x, self._bits), _axis(b, "y", row.y, self._bits)
        self.word = b.reg("counted_word", self._bits)
        self._top, self._left = b.reg("top_windows"), b.reg("left_window")  # first row of windows, first of its row
        self._line_start = b.reg("line_start")  # first tap of its line of the kernel
        self._line_before = b.reg("line_before")  # the line before in this window had new tuples too
        self._second = b.reg("second_visit") if row.twice is not None else None
        # a line of the map is new in the first window that reaches it, and a tuple if the window to the left ended
        # before it
        line_new = any_of(self._top, self.y.place >= row.y.fresh)
        self._line_new = b.wire("line_new", 1, line_new)
        fresh = all_of(self.y.final, self.x.place >= row.x.fresh)
        new = all_of(self._line_new, any_of(self._left, fresh))
        gap = all_of(self._line_new, self._left, self._line_start, self._line_before)
        visited = None if self._second is None else b.wire("visited", 1, any_of(self._second, ~row.twice))
        if self._second is not None:
            new, gap = all_of(new, ~self._second), all_of(gap, ~self._second)
        self.new, self.gap = b.wire("counted_new", 1, new), b.wire("counted_gap", 1, gap)
        line_end = self.x.final if visited is None else all_of(self.x.final, visited)
        self._visited, self.line_end = visited, b.wire("line_end", 1, line_end)
        self.last = b.wire("counted_last", 1, self.line_end & self.y.final)
        self.row_end = b.wire("row_end", 1, eq(self.x.room, row.x_room_end))

    def advance(self, progress: Progress) -> None:
        """Go on to the next tap, to the next line, back to the window's first tap, or to the next window."""
        b, taken, row, ring, x, y = self._b, progress.taken, self._row, self._bits, self.x, self.y
        starts = [self.word, b.reg("line_word", ring)]  # of the tap, of its line: both begin at the window's first tap
        line = starts[1]
        line_next = b.wire("line_word_next", ring, line + row.line_words)
        place_next = add(x.place, 1, PLACE_BITS)
        tap_done = taken if self._visited is None else b.wire("visits_done", 1, taken & self._visited)
        if self._second is not None:
            b.on(taken, (self._second, ~self._visited))
        b.on(
            tap_done,
            (x.place, choose(x.final, x.lead, place_next, PLACE_BITS)),
            (self.word, choose(x.final, line_next, self.word + self._tuple_words, ring)),
            (self._line_start, x.final),
        )
        b.on(
            taken & self.line_end,
            (y.place, add(y.place, 1, PLACE_BITS)),
            (line, line_next),
            (self._line_before, self._line_new),
        )
        if progress.rewind is not None:
            first = b.reg("first_word", ring)
            b.on(taken & progress.rewind, (y.place, y.lead), *[(start, first) for start in starts])
            starts.append(first)
        self._next_window(progress, starts)
        self._begin(progress, starts)

    def _next_window(self, progress: Progress, starts: list[Signal]) -> None:
        """What registers become at the end of a window: to the right, or at the left of the next row of windows.

        ``starts`` are registers with words that begin at the window's first one.
        """
        b, taken, ring, x, y = self._b, progress.taken, self._bits, self.x, self.y
        row, end = self._row, self.row_end
        x_first = b.wire("x_first_after", PLACE_BITS, choose(end, row.x_lead, x.next_lead, PLACE_BITS))
        x_room = b.wire("x_room_after", SIDE_BITS, choose(end, row.x_room, x.next_room, SIDE_BITS))
        x_at = b.wire("x_at_after", ring, choose(end, 0, x.next_at, ring))
        y_first = b.wire("y_first_after", PLACE_BITS, choose(end, y.next_lead, y.lead, PLACE_BITS))
        y_at = b.wire("y_at_after", ring, choose(end, y.next_at, y.at, ring))
        word = b.wire("window_word", ring, y_at + x_at)
        b.on(
            taken & progress.window_end,
            (x.place, x_first), (x.lead, x_first), (x.room, x_room), (x.at, x_at),
            (y.place, y_first), (y.lead, y_first), (y.at, y_at),
            *[(start, word) for start in starts],
            (self._left, end), (self._line_before, 0),
        )  # fmt: skip
        b.on(all_of(taken, progress.window_end, end), (y.room, y.next_room), (self._top, 0))

    def _begin(self, progress: Progress, starts: list[Signal]) -> None:
        """What registers become when a layer begins."""
        row, start, x, y = self._upcoming, self._start, self.x, self.y
        self._b.on(
            progress.begin,
            (x.place, row.x_lead), (x.lead, row.x_lead), (x.room, row.x_room), (x.at, 0),
            (y.place, start.y_lead), (y.lead, start.y_lead), (y.room, start.y_room), (y.at, 0),
            *[(start, 0) for start in starts],
            (self._left, 1), (self._top, 1), (self._line_start, 1), (self._line_before, 0),
            *([(self._second, 0)] if self._second is not None else []),
        )  # fmt: skip

    def landing(self, progress: Progress) -> Signal:
        """Kernel row of the next window's first tap, counted from the kernel group's first one; row bits."""
        b, row, upcoming = self._b, self._row.kernel, self._upcoming.kernel
        w = width(row.line_rows)
        x_rows, y_rows = b.reg("x_first_rows", w), b.reg("y_first_rows", w)
        x_less = b.wire("x_rows_less", w, choose(self.x.beyond, x_rows - row.x_stride_rows, 0, w))
        y_less = b.wire("y_rows_less", w, choose(self.y.beyond, y_rows - row.y_stride_rows, 0, w))
        x_after = b.wire("x_rows_after", w, choose(self.row_end, row.x_lead_rows, x_less, w))
        y_after = b.wire("y_rows_after", w, choose(self.row_end, y_less, y_rows, w))
        b.on(progress.taken & progress.window_end, (x_rows, x_after), (y_rows, y_after))
        b.on(progress.begin, (x_rows, upcoming.x_lead_rows), (y_rows, self._start.y_lead_rows))
        return b.wire("counted_landing", w, x_after + y_after)
