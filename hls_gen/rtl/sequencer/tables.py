"""Taps from tables: any order of windows, and any order of the map's tuples (spec B3, B4, B10).

    flags row --> last, new, skip, jump      one row a tap; ``ahead`` in place of ``skip`` with a table ``aheads``
    olds row  --> address of an old tuple    one row a tap that is not new
    jumps row --> kernel row after a jump    one row a jump; where taps have kernel rows
    aheads row --> words claimed ahead       one row a tap with flag ``ahead``; in NPUs alone that have this table

Each table holds the rows of all layers, one layer after another. It is read with the next value of its pointer, so that
its row is at hand together with the tap. At the end of a pass over a window pointers go back to the window's first row,
if another kernel group follows.
"""

from bitloom.hls_gen.rtl.primitives.block import Signal, add, all_of, choose, width

from .context import Context
from .layer_row import LayerRow
from .layers import Layers
from .progress import Pointer, Progress
from .source import NEVER


class TableTaps:
    """The tap source of layers with tables (interface: source.TapSource).

    Attributes
    ----------
    jump : Signal or None
        In a layer with tables: the kernel row of the tap after this one is ``jump_row``, not the next one. None
        without kernel rows.
    jump_row : Signal or None
        That kernel row, counted from the kernel group's first one; row bits.
    ahead_words : Signal or None
        Words that the tap claims beside its own, since it doesn't read them; 0 for most. None without a table of them:
        a tap of its own, ``skip``, claims each such tuple.
    claims_ahead, ahead_row : Signal or None
        The tap claims such words; and how many, which means nothing for taps that claim none.
    """

    def __init__(self, context: Context, layers: Layers):
        b = context.b
        self._start = layers.start
        now = layers.now
        jumps = "" if now.kernel is None else ", of jumps for each jump of the kernel row"
        b.comment(f"Taps from tables: a row of flags for each tap, of olds for each old tuple{jumps}.")
        self._flag = Pointer(b, "flag_pointer", width(self._start.flags_base))
        self._old = Pointer(b, "old_pointer", width(self._start.old_base))
        flags = context.memory("flags", self._flag.upcoming, read=layers.move)
        olds = context.memory("olds", self._old.upcoming, read=layers.move)
        self.serves = _by_tables(now)
        self.last = flags["last"]
        self.new = flags["new"]
        self.word = olds["word"]
        self.skip: Signal = flags.get("skip", NEVER)
        self.ahead_words: Signal | None = None
        self.claims_ahead: Signal | None = None
        self.ahead_row: Signal | None = None
        if self._start.ahead_base is not None:
            self.serves = b.reg("by_tables", init=None)  # what taps claim ahead is on a long path
            b.on(layers.begin, (self.serves, _by_tables(layers.upcoming)))
            self._ahead = Pointer(b, "ahead_pointer", width(self._start.ahead_base))
            self.claims_ahead = b.wire("claims_ahead", 1, all_of(self.serves, flags["ahead"]))
            self.ahead_row = context.memory("aheads", self._ahead.upcoming, read=layers.move)["words"]
            self.ahead_words = choose(self.claims_ahead, self.ahead_row, 0, width(self.ahead_row))
        self.placed = b.wire("reads_old", 1, ~self.new)
        self.jump: Signal | None = None
        if now.kernel is not None:
            self._jump = Pointer(b, "jump_pointer", width(self._start.jump_base))
            self.jump = b.wire("tap_jump", 1, all_of(self.serves, flags["jump"]))
            self.jump_row = context.memory("jumps", self._jump.upcoming, read=layers.move)["row"]

    def advance(self, progress: Progress) -> None:
        """Go on by a row of flags with every tap; by a row of each other table with every tap that has one."""
        runs: list[tuple[Pointer, Signal | int, Signal]] = [
            (self._flag, 1, self._start.flags_base),
            (self._old, self.placed, self._start.old_base),
        ]
        if self.jump is not None:
            runs.append((self._jump, self.jump, self._start.jump_base))
        if self.claims_ahead is not None:
            runs.append((self._ahead, self.claims_ahead, self._start.ahead_base))
        for pointer, used, start in runs:
            pointer.advance(progress, add(pointer.value, used, width(pointer.value)), start)


def _by_tables(row: LayerRow) -> Signal:
    """Whether a layer's taps are from tables."""
    return ~row.direct if row.raster is None else ~row.direct & ~row.raster.by_counters
