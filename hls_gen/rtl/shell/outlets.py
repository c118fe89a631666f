"""Outlets of an NPU: where the words of its maps go (part of hls_gen/rtl/shell/npu.py).

    words[PFP] --> gearbox --+--> ring: the NPU after
                             +--> loop: map store, and from there back to the NPU's own inlet "loop"
                             +--> host
                             `--> skip store, as well or alone

The map's outlet is a side bit or two of each word. Outlets whose words have the same width share a gearbox; a word for
an outlet with another width goes past it into a gearbox of its own. Behind that of outlet "loop" maps are forked.
"""

from dataclasses import replace

from bitloom.hls_gen.design.outlets import OutletGroup, outlet_groups
from bitloom.hls_gen.design.ports import OUTLETS
from bitloom.hls_gen.rtl.primitives.block import Signal, any_of, bits, const, side_by_side, width
from bitloom.hls_gen.rtl.primitives.fifo import fifo
from bitloom.hls_gen.rtl.primitives.gearbox import gearbox
from bitloom.hls_gen.rtl.primitives.stream import Stream, connect
from bitloom.hls_gen.rtl.stores.map_fork import Marks, goes_to, map_fork

from .context import NpuContext


def outlets(c: NpuContext, maps: Stream, loop: Stream | None, skip: Stream | None) -> dict[str, Signal]:
    """Words of maps to their outlets, in the widths of who takes them.

    Parameters
    ----------
    c : NpuContext
        The NPU; it gets the ports of outlets "ring" and "host".
    maps : Stream
        The words, ``last`` at the end of each tuple; side: last of its map, and where the map goes.
    loop : Stream or None
        Words that come out of the map store, in an NPU with outlet "loop".
    skip : Stream or None
        Words that go into the skip store, in an NPU that has one.

    Returns
    -------
    dict of str to Signal
        By outlet, 1 bit each: a word waits there that is not taken. 0 for outlets that the NPU doesn't have.
    """
    c.b.comment("Outlets: where the words of maps go.")
    signs = _signs(c, maps.data) if c.ring.to_bits else None
    assert maps.side is not None  # made by the pool unit, or by the results unit where there is none
    marks = Marks.split(maps.side, c.npu.map_marks)
    groups = outlet_groups(c.npu, c.ring.out_bits, to_bits=c.ring.to_bits)
    ready: list[Signal] = []
    waits = {name: const(0, 1) for name in (*OUTLETS, *(["skip"] if skip is not None else []))}
    for group in groups:
        given = maps.replace(data=signs) if group.of_signs else maps
        if len(groups) > 1:
            given, takes = _for_group(c, group, given, marks)
            ready.append(takes)
        words = _regrouped(c, group, given, marks)
        names = list(group.names)
        if "skip" in names:
            assert skip is not None  # the caller makes one for every NPU with this target
            names = [name for name in names if name != "skip"]
            waits["skip"] = skip.valid & ~skip.ready
            if not names:  # the other outlets' words are of other width
                connect(words.replace(last=None), skip)
                continue
            words = _forked(c, group, names, words, skip)
        waits.update(_taken_by(c, names, words, loop))
    if len(groups) > 1:
        maps.ready.assign(any_of(*ready))
    return {name: c.b.wire(f"waits_{name}", 1, signal) for name, signal in waits.items()}


def _for_group(c: NpuContext, group: OutletGroup, maps: Stream, marks: Marks) -> tuple[Stream, Signal]:
    """(words of ``maps`` for one group of several, whether such a word is there and can be taken)."""
    label = group.label
    for_group = c.b.wire(f"for_{label}", 1, any_of(*[goes_to(c.b, c.npu, marks.target, name) for name in group.names]))
    takes = c.b.wire(f"takes_{label}")
    given = maps.replace(valid=c.b.wire(f"given_{label}", 1, maps.valid & for_group), ready=takes)
    return given, for_group & takes


def _regrouped(c: NpuContext, group: OutletGroup, given: Stream, marks: Marks) -> Stream:
    """Words of ``given`` in the group's width; side: what is left to be said of a word."""
    return gearbox(
        c.b,
        c.library,
        f"words_to_{group.label}",
        given.replace(side=marks.together(group.marks)),
        group.word_bits,
        unused=() if group.marks_maps else ("last",),
    )


def _forked(c: NpuContext, group: OutletGroup, names: list[str], words: Stream, skip: Stream) -> Stream:
    """The words for the outlets ``names``, which are those of ``group`` but the skip store. Words for the skip store,
    alone or as well, are given to ``skip``."""
    on = replace(group, names=tuple(names))
    words = words if group.marks_maps else words.replace(last=None)
    ports = c.place(
        c.library.get(map_fork, c.library, c.npu, tuple(group.marks), tuple(on.marks)), "map_fork", **words.ports("in")
    )
    connect(Stream.of(ports, "skip"), skip)
    return Stream.of(ports, "out")


def _taken_by(c: NpuContext, names: list[str], words: Stream, loop: Stream | None) -> dict[str, Signal]:
    """Hands ``words`` to the outlets ``names``; returns for each whether a word waits for it."""
    waits = {}
    accepted = []
    for name in names:
        valid = words.valid
        last = None
        chosen = None
        if len(names) > 1:
            chosen = c.b.wire(f"chooses_{name}", 1, goes_to(c.b, c.npu, bits(words.side, 1, c.npu.target_bits), name))
            valid = c.b.wire(f"gives_{name}", 1, valid & chosen)
        if names != ["loop"]:
            last = words.last & bits(words.side, 0, 1)  # the last word of the last tuple
        ready = _taker(c, name, words.replace(valid=valid, last=last), loop)
        waits[name] = valid & ~ready
        accepted.append(ready if chosen is None else chosen & ready)
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
        fifo(c.library, c.npu.array.map_bits, c.npu.stores.map_words),
        "map_store",
        **given.ports("in"),
        room=c.b.wire("store_room_unused"),
        **loop.ports("out"),
    )
    return given.ready


def _signs(c: NpuContext, word: Signal) -> Signal:
    """A bit for each feature of a word of a map: 1 where it is negative."""
    w = c.npu.array.feature_bits
    lanes = [bits(word, low, w) for low in range(0, width(word), w)]
    if c.npu.targets == ("ring",):  # nobody takes whole features: say so to lint
        c.b.wire("magnitudes_unused", len(lanes) * (w - 1), side_by_side([bits(lane, 0, w - 1) for lane in lanes]))
    return c.b.wire("signs", len(lanes), side_by_side([bits(lane, w - 1, 1) for lane in lanes]))
