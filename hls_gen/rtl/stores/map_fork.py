"""Fork of an NPU's maps: words go to the map's outlet, to the skip store, or to both (part of
hls_gen/rtl/shell/outlets.py).

    in --+--> out: the map's outlet
         `--> skip: the skip store, with the mark who takes the word there

Each side gets its word when it is ready, whatever the other one does, and has a register for a word that it has already
(hls_gen/rtl/primitives/stream.py, fork). A word that goes to one side alone passes the other one by.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, any_of, bits, eq, side_by_side
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.stream import Stream, fork
from bitloom.hls_gen.rtl.primitives.text import Header


@dataclass(frozen=True)
class Marks:
    """Fields of the side bits of a map's word; None where the word has no such field."""

    map_last: Signal | None = None
    """The word is in the last tuple of its map, 1 bit."""
    target: Signal | None = None
    """Number of the map's outlet in ``Npu.targets``."""
    forks: Signal | None = None
    for_addition: Signal | None = None
    """forks, for_addition: the map goes to the skip store as well; there it waits for the addition."""

    @classmethod
    def split(cls, side: Signal, parts: Sequence[tuple[str, int]]) -> "Marks":
        """The marks in side bits: name and width of each, low bits first."""
        marks = {}
        low = 0
        for name, w in parts:
            marks[name] = bits(side, low, w)
            low += w
        return cls(**marks)

    def together(self, parts: Sequence[tuple[str, int]]) -> Signal | None:
        """Some of the marks as side bits; None for none."""
        return side_by_side([getattr(self, name) for name, _ in parts]) if parts else None


def goes_to(b: Block, npu: Npu, target: Signal, name: str) -> Signal:
    """Whether a word whose map's outlet is ``target`` goes to outlet ``name``."""
    return eq(target, b.localparam(f"OUTLET_{name.upper()}", npu.targets.index(name), npu.target_bits))


def map_fork(library: Library, npu: Npu, parts: tuple[tuple[str, int], ...], on: tuple[tuple[str, int], ...]) -> Block:
    """The fork.

    Parameters
    ----------
    npu : Npu
        The NPU, which has a skip store.
    parts : tuple of (str, int)
        Marks that come with a word; ``target``, ``forks`` and ``for_addition`` at least.
    on : tuple of (str, int)
        Those of them that go on with it to the map's outlet. With ``map_last`` goes ``last``, the tuple's end.

    Returns
    -------
    Block
        Module ``map_fork``.
    """
    sizes = {"lanes": npu.array.map_lanes, "feature_bits": npu.array.feature_bits}
    latency = "0 cycles from in to out and skip"
    header = Header(__doc__, rate="one word a cycle", latency=latency, parameters=sizes)
    b = Block(library.name("map_fork", npu), header)
    ends = "map_last" in dict(on)
    source = Stream.input(b, "in", npu.array.map_bits, last=ends, side_bits=sum(w for _, w in parts))
    out = Stream.output(b, "out", npu.array.map_bits, last=ends, side_bits=sum(w for _, w in on))
    skip = Stream.output(b, "skip", npu.array.map_bits, side_bits=1)

    # # #

    marks = Marks.split(source.side, parts)
    goes_on = b.wire("goes_on", 1, ~goes_to(b, npu, marks.target, "skip"))
    goes_to_skip = b.wire("goes_to_skip", 1, any_of(marks.forks, ~goes_on))
    sides = []
    for name, sink, wanted in (("out", out, goes_on), ("skip", skip, goes_to_skip)):
        valid = b.wire(f"for_{name}")
        ready = b.wire(f"served_{name}", 1, any_of(sink.ready, ~wanted))
        sink.valid.assign(valid & wanted)
        sides.append(Stream(valid, ready, sink.data))
    fork(b, "sides", source, sides)
    if out.last is not None:
        out.last.assign(source.last)
    if out.side is not None:
        out.side.assign(marks.together(on))
    skip.side.assign(marks.for_addition)
    return b
