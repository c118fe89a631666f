"""Raster order by counters: the taps of a layer from a few numbers (part of hls_gen/rtl/sequencer/sequencer.py; spec
B7).  Golden twin: hls_gen/compiler/schedule/raster.py.

    layer row --> place in the kernel, room to the map's edge, lead before it: for x and y
              --> last, new, gap, relative word, kernel row of the tap at hand

One tap a cycle, nothing is read from a memory. Words and kernel rows are added up: each step is a field of the layer
row. A tap that comes after tuples that are only read later claims them all at once (``gap``), so that no cycle is lost;
``arrived`` then goes below 0 until they are there.
"""

from dataclasses import dataclass

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import PLACE_BITS, SIDE_BITS
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    add,
    all_of,
    any_of,
    bits,
    choose,
    eq,
    nonzero,
    resize,
    sub,
    width,
)

from .kind import Kind

BEGIN_ONLY = ("y_lead", "y_room", "y_lead_rows")
"""Fields that only the first window looks at."""


@dataclass(frozen=True)
class Axis:
    """One direction: registers of the window at hand, and what they are for the next window."""

    place: Signal
    """Of the tap, in the kernel."""
    lead: Signal
    """First valid place."""
    room: Signal
    """Place of the map's last position."""
    at: Signal
    """Words from the map's beginning to the window's first valid position."""
    final: Signal
    """``place`` is the last valid one."""
    beyond: Signal
    """The next window begins before the map too."""
    next: tuple[Signal, Signal, Signal]
    """lead, room, at."""


def _axis(b: Block, name: str, now: dict[str, Signal], ring: int) -> Axis:
    field = lambda what: now[f"{name}_{what}"]  # noqa: E731
    place, lead = b.reg(f"{name}_place", PLACE_BITS), b.reg(f"{name}_first", PLACE_BITS)
    room, at = b.reg(f"{name}_room_now", SIDE_BITS), b.reg(f"{name}_at", ring)
    step = field("stride")
    final = b.wire(f"{name}_final", 1, any_of(eq(place, field("kernel_minus_1")), eq(place, room)))
    beyond = b.wire(f"{name}_beyond", 1, lead > step)
    moved = b.wire(f"{name}_moved", ring, choose(nonzero(lead), field("cross"), field("step"), ring))
    after = (
        b.wire(f"{name}_first_next", PLACE_BITS, choose(beyond, sub(lead, step, PLACE_BITS), 0, PLACE_BITS)),
        b.wire(f"{name}_room_next", SIDE_BITS, sub(room, step, SIDE_BITS)),
        b.wire(f"{name}_at_next", ring, choose(beyond, 0, at + moved, ring)),
    )
    return Axis(place, lead, room, at, final, beyond, after)


class Counters:
    """Registers that run through the taps of a layer; ``now`` and ``nxt`` are its row and the next layer's."""

    def __init__(self, b: Block, npu: Npu, kind: Kind, now: dict[str, Signal], nxt: dict[str, Signal], ring: int):
        self._b, self._now, self._nxt, self._ring = b, now, nxt, ring
        self.x, self.y = _axis(b, "x", now, ring), _axis(b, "y", now, ring)
        self.word = b.reg("counted_word", ring)
        self._top, self._left = b.reg("top_windows"), b.reg("left_window")  # first row of windows, first of its row
        self._line_start, self._line_before = b.reg("line_start"), b.reg("line_before")
        self._second = b.reg("second_visit") if "twice" in now else None
        line_new = any_of(self._top, self.y.place >= now["y_fresh"])
        self._line_new = b.wire("line_new", 1, line_new)
        fresh = all_of(self.y.final, self.x.place >= now["x_fresh"])
        new = all_of(self._line_new, any_of(self._left, fresh))
        gap = all_of(self._line_new, self._left, self._line_start, self._line_before)
        visited = None if self._second is None else b.wire("visited", 1, any_of(self._second, ~now["twice"]))
        if self._second is not None:
            new, gap = all_of(new, ~self._second), all_of(gap, ~self._second)
        self.new, self.gap = b.wire("counted_new", 1, new), b.wire("counted_gap", 1, gap)
        line_end = self.x.final if visited is None else all_of(self.x.final, visited)
        self.visited, self.line_end = visited, b.wire("line_end", 1, line_end)
        self.last = b.wire("counted_last", 1, self.line_end & self.y.final)
        self.row_end = b.wire("row_end", 1, eq(self.x.room, now["x_room_end"]))  # last window of its row

    def advance(self, step: Signal, begin: Signal, rewind: Signal, window_end: Signal, tuple_words: Signal) -> None:
        """What the registers do when the issuer takes the tap, and when a layer begins."""
        b, now, nxt, ring, x, y = self._b, self._now, self._nxt, self._ring, self.x, self.y
        line, first = b.reg("line_word", ring), b.reg("first_word", ring)  # of this kernel row, of the window
        line_next = b.wire("line_word_next", ring, line + now["line_words"])
        place_next = add(x.place, 1, PLACE_BITS)
        tap_done = step if self.visited is None else b.wire("visits_done", 1, step & self.visited)
        if self._second is not None:
            b.on(step, (self._second, ~self.visited))
        b.on(
            tap_done,
            (x.place, choose(x.final, x.lead, place_next, PLACE_BITS)),
            (self.word, choose(x.final, line_next, self.word + tuple_words, ring)),
            (self._line_start, x.final),
        )
        b.on(
            step & self.line_end,
            (y.place, add(y.place, 1, PLACE_BITS)),
            (line, line_next),
            (self._line_before, self._line_new),
        )
        b.on(step & rewind, (y.place, y.lead), (self.word, first), (line, first))
        starts = (now["x_lead"], now["x_room"], 0)
        x_next = [b.wire(f"x_{what}_after", w, choose(self.row_end, start, after, w))
                  for what, w, start, after in zip(("first", "room", "at"), (PLACE_BITS, SIDE_BITS, ring),
                                                   starts, x.next)]  # fmt: skip
        y_first = b.wire("y_first_after", PLACE_BITS, choose(self.row_end, y.next[0], y.lead, PLACE_BITS))
        y_at = b.wire("y_at_after", ring, choose(self.row_end, y.next[2], y.at, ring))
        window_word = b.wire("window_word", ring, y_at + x_next[2])
        b.on(
            step & window_end,
            (x.place, x_next[0]), (x.lead, x_next[0]), (x.room, x_next[1]), (x.at, x_next[2]),
            (y.place, y_first), (y.lead, y_first), (y.at, y_at),
            (self.word, window_word), (line, window_word), (first, window_word),
            (self._left, self.row_end), (self._line_before, 0),
        )  # fmt: skip
        b.on(all_of(step, window_end, self.row_end), (y.room, y.next[1]), (self._top, 0))
        b.on(
            begin,
            (x.place, nxt["x_lead"]), (x.lead, nxt["x_lead"]), (x.room, nxt["x_room"]), (x.at, 0),
            (y.place, nxt["y_lead"]), (y.lead, nxt["y_lead"]), (y.room, nxt["y_room"]), (y.at, 0),
            (self.word, 0), (line, 0), (first, 0),
            (self._left, 1), (self._top, 1), (self._line_start, 1), (self._line_before, 0),
            *([(self._second, 0)] if self._second is not None else []),
        )  # fmt: skip

    def landing(self, step: Signal, begin: Signal, window_end: Signal, w: int) -> Signal:
        """Kernel row of the next window's first tap, counted from the first one of the kernel group."""
        b, now, nxt = self._b, self._now, self._nxt
        x_rows, y_rows = b.reg("x_first_rows", w), b.reg("y_first_rows", w)
        x_less = b.wire("x_rows_less", w, choose(self.x.beyond, x_rows - now["x_stride_rows"], 0, w))
        y_less = b.wire("y_rows_less", w, choose(self.y.beyond, y_rows - now["y_stride_rows"], 0, w))
        x_after = b.wire("x_rows_after", w, choose(self.row_end, now["x_lead_rows"], x_less, w))
        y_after = b.wire("y_rows_after", w, choose(self.row_end, y_less, y_rows, w))
        b.on(step & window_end, (x_rows, x_after), (y_rows, y_after))
        b.on(begin, (x_rows, nxt["x_lead_rows"]), (y_rows, nxt["y_lead_rows"]))
        return b.wire("counted_landing", w, x_after + y_after)


def claims(b: Block, tap: dict[str, Signal], ring: int) -> tuple[Signal, Signal]:
    """(words given back, words claimed ahead of the tap's own) as the issuer takes a tap.

    ``hold`` words are claimed before the first is given back; each claim after that gives back as many.
    """
    count, step = ring + 2, tap["step"]
    hold = b.reg("hold", ring + 1)
    ahead = b.wire("claimed_ahead", count, choose(step, tap["gap_words"], 0, count))
    claimed = b.wire(
        "claimed_words",
        count,
        choose(step & tap["claim"], add(tap["words_minus_1"], 1, count) + resize(tap["gap_words"], count), 0, count),
    )
    left = b.wire("hold_left", count, sub(hold, claimed, count))
    negative = bits(left, count - 1, 1)
    b.on(step, (hold, choose(negative, 0, bits(left, 0, ring + 1), width(hold))))
    b.on(tap["begin"], (hold, tap["next_hold"]))
    return b.wire("given", count, choose(negative, sub(claimed, hold, count), 0, count)), ahead
