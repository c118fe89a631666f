"""Taps from tables: any order of windows, and any order of the map's tuples (spec B3, B4, B10).

    flags row --> last, new, skip, jump      one row a tap; ``ahead`` in place of ``skip`` with a table ``aheads``
    olds row  --> address of an old tuple    one row a tap that is not new
    jumps row --> kernel row after a jump    one row a jump; where taps have kernel rows
    aheads row --> words claimed ahead       one row a tap with flag ``ahead``; in NPUs alone that have this table

Each table holds the rows of all layers, one layer after another. What a table says is at hand, in registers, together
with the tap; the memory is read a row ahead, since the longest paths of the tap source would begin at its output: a row
has what follows, and the row of the layer what comes first. At the end of a pass over a window a table goes back to the
window's first tap, if another kernel group follows.
"""

from bitloom.hls_gen.design.sequencer_kind import AHEADS, FLAGS, JUMPS, OLDS, TapTable
from bitloom.hls_gen.rtl.primitives.block import Signal, add, any_of, choose, width

from .context import Context
from .layer_row import LayerRow
from .layers import Layers
from .source import NEVER
from .tap_events import TapEvents


class _TableRegisters:
    """A table, and what it says at hand.

    Attributes
    ----------
    now : dict of str to Signal
        Registers, by field. ``last`` has none: whether the tap at hand is its window's last one is known for all
        sources together.
    """

    def __init__(self, context: Context, table: TapTable, layers: Layers):
        b = self._b = context.b
        name = self._name = table.name
        start = layers.start
        self._base = getattr(start, table.base)
        self._pointer = b.reg(f"{name}_pointer", width(self._base))
        self._read_row = b.wire(f"{name}_read_row", width(self._base))
        fields = context.memory(name, self._read_row, read=layers.move)
        self._last = (start.firsts[table.first("last")], fields.pop("last")) if "last" in fields else None
        self.now = {field: b.reg(f"{name}_{field}_now", width(row), init=None) for field, row in fields.items()}
        # register, what it becomes as a layer begins, and with the next row
        self._fields = [(self.now[field], start.firsts[table.first(field)], row) for field, row in fields.items()]

    def advance(self, events: TapEvents, used: Signal) -> None:
        """Go on by a row where the tap at hand ``used`` what the table says; back to the window's first tap; or to what
        a layer begins with. In a layer whose taps are not from tables no tap uses a row: what is at hand stays 0, as
        the layer's row has it, also for the next pass. The memory is read with every move, the same row again where the
        table doesn't go on: whether it does would stand between the move, which is known last, and the memory."""
        b = self._b
        rewind = events.rewind
        goes = used
        if rewind is not None:  # in a window of one tap the next pass begins with what is at hand
            goes = choose(rewind, ~events.first, used, 1)
        goes = b.wire(f"{self._name}_goes", 1, any_of(events.change, goes))
        pointer = self._pointer
        w = width(pointer)
        after = self._next_value(events, pointer, self._base, add(pointer, 1, w))
        after = b.wire(f"{self._name}_pointer_next", w, after)
        self._read_row.assign(choose(goes, after, pointer, w))
        moves = b.wire(f"{self._name}_moves", 1, events.move & goes)
        b.on(moves, (pointer, after))
        for register, first, following in self._fields:
            b.on(moves, (register, self._next_value(events, register, first, following)))

    def _next_value(self, events: TapEvents, register: Signal, first: Signal, following: Signal) -> Signal:
        """Next value of a register where the table goes on: ``first`` as a layer begins; for the next pass the
        register's value at the window's first tap; else ``following``."""
        b = self._b
        w = width(register)
        if events.rewind is not None:
            saved = b.reg(f"{register.name}_saved", w, init=None)
            b.on(events.move & events.first, (saved, register))
            following = choose(events.rewind, saved, following, w)
        return choose(events.change, first, following, w)

    def last_after(self, events: TapEvents) -> Signal:
        """Field ``last`` after the next move, of the table that has it."""
        assert self._last is not None, "flags alone say which tap is the last one"
        begins, after = self._last
        if events.rewind is not None:
            b = self._b
            saved = b.reg("flags_last_saved", init=None)  # of the window's first tap
            b.on(events.move & events.first, (saved, events.last))
            # in a window of one tap the flags at hand stay
            after = choose(events.rewind, any_of(events.first, saved), after, 1)
        return choose(events.change, begins, after, 1)


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
        now = layers.now
        jumps = "" if now.kernel is None else ", of jumps for each jump of the kernel row"
        b.comment(f"Taps from tables: a row of flags for each tap, of olds for each old tuple{jumps}.")
        tables = {table: _TableRegisters(context, table, layers) for table in context.spec.kind.tables}
        flags = tables[FLAGS].now
        self.serves = b.reg("by_tables", init=None)
        b.on(layers.begin, (self.serves, _by_tables(layers.upcoming)))
        self.will_serve = choose(layers.change, _by_tables(layers.upcoming), self.serves, 1)
        self._flags = tables[FLAGS]
        self.new = flags["new"]
        self.word = tables[OLDS].now["word"]
        self.skip: Signal = flags.get("skip", NEVER)
        self.placed = b.wire("reads_old", 1, ~self.new)
        self.ahead_words: Signal | None = None
        self.claims_ahead: Signal | None = None
        self.ahead_row: Signal | None = None
        self.jump: Signal | None = None
        if AHEADS in tables:
            self.claims_ahead = flags["ahead"]
            self.ahead_row = tables[AHEADS].now["words"]
            self.ahead_words = choose(self.claims_ahead, self.ahead_row, 0, width(self.ahead_row))
        if JUMPS in tables:
            self.jump = flags["jump"]
            self.jump_row = tables[JUMPS].now["row"]
        # flags that stay 0 say of a tap that it reads an old tuple, and neither jumps nor claims ahead
        used = {FLAGS: self.serves, OLDS: self.serves & self.placed, JUMPS: self.jump, AHEADS: self.claims_ahead}
        self._used = [(table, used[name]) for name, table in tables.items()]

    def advance(self, events: TapEvents) -> Signal:
        """Go on by a row of flags with every tap; by a row of each other table with every tap that has one."""
        for table, used in self._used:
            table.advance(events, used)
        return self._flags.last_after(events)


def _by_tables(row: LayerRow) -> Signal:
    """Whether a layer's taps are from tables."""
    return ~row.direct if row.raster is None else ~row.direct & ~row.raster.by_counters
