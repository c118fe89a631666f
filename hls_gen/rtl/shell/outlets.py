"""Outlets of an NPU: where the words of its maps go (part of hls_gen/rtl/shell/npu.py).

    words[PFP] --> gearbox --+--> ring: the NPU after
                             +--> loop: map store, and from there back to the NPU's own inlet "loop"
                             `--> host

The map's outlet is a side bit or two of each word. Outlets whose words have the same width share a gearbox; a word for
an outlet with another width goes past it into a gearbox of its own.
"""

from dataclasses import dataclass

from bitloom.hls_gen.design.folding import OUTLETS
from bitloom.hls_gen.rtl.primitives.block import Signal, any_of, bits, const, eq, width
from bitloom.hls_gen.rtl.primitives.chain import chain
from bitloom.hls_gen.rtl.primitives.fifo import fifo
from bitloom.hls_gen.rtl.primitives.gearbox import gearbox
from bitloom.hls_gen.rtl.primitives.stream import Stream
from bitloom.hls_gen.rtl.results.step import join

from .context import NpuContext


@dataclass(frozen=True)
class Group:
    """Outlets that share a gearbox.

    Attributes
    ----------
    names : list of str
        The outlets.
    word_bits : int
        Width of their words.
    of_signs : bool
        They get a bit for each feature, its sign.
    """

    names: list[str]
    word_bits: int
    of_signs: bool

    @property
    def marks_maps(self) -> bool:
        """Whether a taker looks at the last word of a map; the map store alone doesn't."""
        return self.names != ["loop"]

    @property
    def label(self) -> str:
        """What its signals are called after."""
        return "_".join(self.names)


@dataclass(frozen=True)
class Marks:
    """What the side bits of a word of a map say.

    Attributes
    ----------
    map_last : Signal
        The word is in the last tuple of its map, 1 bit.
    target : Signal or None
        Number of the map's outlet, where the NPU has several.
    """

    map_last: Signal
    target: Signal | None


def outlets(c: NpuContext, maps: Stream, loop: Stream | None) -> dict[str, Signal]:
    """Words of maps to their outlets, in the widths of who takes them.

    Parameters
    ----------
    c : NpuContext
        The NPU; it gets the ports of outlets "ring" and "host".
    maps : Stream
        The words, ``last`` at the end of each tuple; side: last of its map, and the map's outlet.
    loop : Stream or None
        What comes out of the map store, in an NPU with outlet "loop".

    Returns
    -------
    dict of str to Signal
        By outlet, 1 bit each: a word waits there that is not taken. 0 for outlets that the NPU doesn't have.
    """
    c.b.comment("Outlets: where the words of maps go.")
    signs = _signs(c, maps.data) if c.ring.to_bits else None
    assert maps.side is not None  # made by the pool unit, or by the results unit where there is none
    target_bits = c.npu.target_bits
    marks = Marks(bits(maps.side, 0, 1), bits(maps.side, 1, target_bits) if target_bits else None)
    groups = _groups(c)
    ready: list[Signal] = []
    waits = {name: const(0, 1) for name in OUTLETS}
    for group in groups:
        given = maps.replace(data=signs) if group.of_signs else maps
        if len(groups) > 1:
            given, takes = _for_group(c, group, given, marks)
            ready.append(takes)
        waits.update(_taken_by(c, group, _regrouped(c, group, given, marks), loop))
    if len(groups) > 1:
        maps.ready.assign(any_of(*ready))
    return {name: c.b.wire(f"waits_{name}", 1, signal) for name, signal in waits.items()}


def _groups(c: NpuContext) -> list[Group]:
    """The NPU's outlets by the width and kind of their words."""
    found: dict[tuple[int, bool], list[str]] = {}
    for name in c.npu.outlets:
        ring = name == "ring"
        found.setdefault((c.ring.out_bits if ring else c.npu.word_bits, ring and c.ring.to_bits), []).append(name)
    return [Group(names, w, of_signs) for (w, of_signs), names in found.items()]


def _goes(c: NpuContext, target: Signal, name: str) -> Signal:
    """Whether a word whose map's outlet is ``target`` goes to outlet ``name``."""
    number = c.b.localparam(f"OUTLET_{name.upper()}", c.npu.outlets.index(name), c.npu.target_bits)
    return eq(target, number)


def _for_group(c: NpuContext, group: Group, maps: Stream, marks: Marks) -> tuple[Stream, Signal]:
    """(words of ``maps`` for one group of several, whether such a word is there and can be taken)."""
    label = group.label
    mine = c.b.wire(f"for_{label}", 1, any_of(*[_goes(c, marks.target, name) for name in group.names]))
    takes = c.b.wire(f"takes_{label}")
    given = maps.replace(valid=c.b.wire(f"given_{label}", 1, maps.valid & mine), ready=takes)
    return given, mine & takes


def _regrouped(c: NpuContext, group: Group, given: Stream, marks: Marks) -> Stream:
    """Words of ``given`` in the group's width; side: what is left to be said of a word."""
    side = [*([marks.map_last] if group.marks_maps else []), *([marks.target] if len(group.names) > 1 else [])]
    block = c.library.get(gearbox, given.data_bits, group.word_bits, sum(width(s) for s in side))
    return chain(
        c.b,
        block,
        f"words_to_{group.label}",
        given.replace(side=join(side) if side else None),
        unused=() if group.marks_maps else ("last",),
        rst=c.restart,
    )


def _taken_by(c: NpuContext, group: Group, words: Stream, loop: Stream | None) -> dict[str, Signal]:
    """Hands ``words`` to the outlets of ``group``; returns for each whether a word waits for it."""
    waits, accepted = {}, []
    for name in group.names:
        valid, last, mine = words.valid, None, None
        if len(group.names) > 1:
            mine = c.b.wire(f"chooses_{name}", 1, _goes(c, bits(words.side, 1, c.npu.target_bits), name))
            valid = c.b.wire(f"gives_{name}", 1, valid & mine)
        if group.marks_maps:
            last = words.last & bits(words.side, 0, 1)  # the last word of the last tuple
        ready = _taker(c, name, words.replace(valid=valid, last=last), loop)
        waits[name] = valid & ~ready
        accepted.append(ready if mine is None else mine & ready)
    words.ready.assign(any_of(*accepted))
    return waits


def _taker(c: NpuContext, name: str, words: Stream, loop: Stream | None) -> Signal:
    """Gives ``words`` to the NPU's ports of outlet ``name``, or to the map store; returns the taker's ready."""
    if name != "loop":
        c.b.output(f"to_{name}_valid", 1, words.valid)
        c.b.output(f"to_{name}_data", words.data_bits, words.data)
        c.b.output(f"to_{name}_last", 1, words.last)
        return c.b.input(f"to_{name}_ready")
    assert loop is not None  # the caller makes one for every NPU with this outlet
    given = words.replace(ready=c.b.wire("store_ready"), last=None, side=None)
    c.b.instance(
        c.library.get(fifo, c.library, c.npu.word_bits, c.npu.map_words),
        "map_store",
        rst=c.restart,
        **given.ports("in"),
        room=c.b.wire("store_room_unused"),
        **loop.ports("out"),
    )
    return given.ready


def _signs(c: NpuContext, word: Signal) -> Signal:
    """A bit for each feature of a word of a map: 1 where it is negative."""
    w = c.npu.feature_bits
    lanes = [bits(word, low, w) for low in range(0, width(word), w)]
    if c.npu.outlets == ("ring",):  # nobody takes whole features: say so to lint
        c.b.wire("magnitudes_unused", len(lanes) * (w - 1), join([bits(lane, 0, w - 1) for lane in lanes]))
    return c.b.wire("signs", len(lanes), join([bits(lane, w - 1, 1) for lane in lanes]))
