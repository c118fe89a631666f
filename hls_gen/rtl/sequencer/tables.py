"""Taps from tables: any order of windows, and any order of the map's tuples (spec B3, B4, B10).

    flags row --> last, new, skip, jump      one row a tap
    olds row  --> address of an old tuple    one row a tap that is not new
    jumps row --> kernel row after a jump    one row a jump

Each table holds the rows of all layers, one layer after another. It is read with the next value of its pointer, so that
its row is at hand together with the tap. At the end of a pass over a window pointers go back to the window's first row,
if another kernel group follows.
"""

from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, choose, width
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus

from .layers import Layers
from .progress import Pointer, Progress
from .spec import SequencerSpec


class TableTaps:
    """The tap source of layers with tables (interface: source.TapSource).

    Attributes
    ----------
    skip : Signal
        The tuple arrives now and is read later: no beat.
    jump : Signal or None
        The next tap's kernel row comes from the memory ``jumps``. None in the pool's sequencer.
    old_word : Signal
        Address of an old tuple, counted from the layer's first word.
    """

    def __init__(self, b: Block, library: Library, spec: SequencerSpec, bus: LoadBus, layers: Layers):
        start = self._start = layers.start
        self._flag_next = b.wire("flag_pointer_next", width(start.flags_base))
        self._old_next = b.wire("old_pointer_next", width(start.old_base))
        flags = library.loadable(b, spec.memory("flags"), bus, self._flag_next, read=layers.move)
        self.last, self.new, self.skip, self.jump = flags["last"], flags["new"], flags["skip"], flags.get("jump")
        self.old_word = library.loadable(b, spec.memory("olds"), bus, self._old_next, read=layers.move)["word"]
        raster = layers.now.raster
        self.serves = ~layers.now.direct if raster is None else ~layers.now.direct & ~raster.by_counters

    def advance(self, b: Block, progress: Progress) -> None:
        """Run through the flags with every tap, and through the olds with every old one."""
        flag, old = self._start.flags_base, self._start.old_base
        pointer = Pointer.made(b, "flag_pointer", width(flag))
        pointer.advance(b, progress, lambda v: add(v, 1, width(v)), flag, self._flag_next)
        use_old = b.wire("use_old", 1, ~progress.new)
        pointer = Pointer.made(b, "old_pointer", width(old))
        pointer.advance(b, progress, lambda v: add(v, use_old, width(v)), old, self._old_next)


class Jumps:
    """Kernel rows after jumps, from the memory ``jumps``: the array's sequencer alone has them.

    Attributes
    ----------
    taken : Signal
        The tap after the one at hand does not have the next kernel row.
    target : Signal
        That tap's kernel row, counted from the first one of the kernel group; row bits.
    """

    def __init__(self, b: Block, spec: SequencerSpec, jump: Signal):
        self._memory = spec.memory("jumps")
        self.taken = b.wire("tap_jump", 1, jump)
        self.target: Signal = None

    def read(self, b: Block, library: Library, bus: LoadBus, start: Signal, progress: Progress) -> None:
        """Read the row at hand, and go on to the next one with every jump."""
        w = width(start)
        pointer = Pointer.made(b, "jump_pointer", w)
        stepped = add(pointer.value, self.taken, w)
        after = b.wire("jump_pointer_after", w, choose(progress.rewind, pointer.saved, stepped, w))
        pointer_next = b.wire("jump_pointer_next", w, choose(progress.begin, start, after, w))
        b.on(progress.step, (pointer.value, after))
        b.on(progress.step & progress.window_end, (pointer.saved, after))
        b.on(progress.begin, (pointer.value, start), (pointer.saved, start))
        self.target = library.loadable(b, self._memory, bus, pointer_next, read=progress.move)["row"]
