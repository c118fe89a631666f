"""The common parts of the kinds of pool units: their ports, and the base class by which a kind says what it
computes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from veriloggen import Cat

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.widths import COUNT_BITS, bits_for
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    any_of,
    bits,
    choose,
    const,
    side_by_side,
    sign_extend,
    signed_at_least,
    width,
)
from bitloom.hls_gen.rtl.primitives.delay import delayed
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus
from bitloom.hls_gen.rtl.primitives.stream import Stream
from bitloom.hls_gen.rtl.sequencer.beat import Beat
from bitloom.hls_gen.rtl.sequencer.spec import SequencerSpec


@dataclass(frozen=True)
class PoolPorts:
    """Ports of a pool unit, and registers of what comes with a beat."""

    bus: LoadBus | None
    """Load bus that fills the unit's memory; None where the unit has none."""
    beat: Beat
    """Signals of the sequencer that come with a beat."""
    word: Signal
    """The beat's word, with the words of its taps side by side; comes a cycle after the beat."""
    room: Signal
    """Another beat may be issued."""
    out: Stream
    """Results: values, above them ``Npu.pool_side_bits`` side bits, and above these what the kind adds."""
    valid: Signal
    first: Signal
    last: Signal
    index: Signal
    side: Signal
    """valid, first, last, index, side: registers, in time with ``word``: there is a beat; the first, the last tap of
    its window; which word of the tuple; side bits."""

    @classmethod
    def of(cls, b: Block, library: Library, npu: Npu, memory: str | None) -> "PoolPorts":
        """The ports and registers of the pool unit ``b`` with the ``memory`` of this name."""
        bus = LoadBus.ports(b, library.stream_bits, [memory_of(npu, memory)]) if memory else None
        spec = SequencerSpec(present(npu.pool_sequencer))
        beat = Beat.input(b, spec)
        flags = [beat.tuple_last, beat.map_last, *(getattr(beat.marks, name) for name, _ in npu.way_fields)]
        word = b.input("word", spec.sequencer.word_bits, means="word of the beat of the cycle before, lane 0 low")
        room = b.output("room", means="another beat may be issued")
        out = Stream.output(b, "out", npu.pool_out_bits)
        valid = b.reg("valid")
        b.on(None, (valid, beat.beat))
        at_first = b.reg("at_first", init=None)
        at_last = b.reg("at_last", init=None)
        side = b.reg("side", npu.pool_side_bits, init=None)
        place = b.reg("place", width(beat.index), init=None)
        b.on(None, (at_first, beat.first), (at_last, beat.last), (side, Cat(*reversed(flags))), (place, beat.index))
        return cls(bus, beat, word, room, out, valid, at_first, at_last, place, side)

    def late(self, b: Block, cycles: int, prefix: str = "") -> "PoolPorts":
        """The registers, ``cycles`` later; their names begin with ``prefix``.

        Those that address the queue and choose what goes into it are reset: else synthesis makes a shift register of
        them, whose output comes late.
        """
        inits = {"valid": 0, "first": 0, "index": 0, "last": None, "side": None}
        signals = {name: getattr(self, name) for name in inits}
        return replace(
            self,
            **{
                name: delayed(b, signal, prefix + name, cycles, width(signal), init=inits[name])[-1]
                for name, signal in signals.items()
            },
        )


class Arithmetic(ABC):
    """The arithmetic of a kind of pool unit, inside the module of such a unit. Instances declare registers of what
    comes with a beat, and read the unit's memory.

    Attributes
    ----------
    merged_cycles : int
        Cycles from the beat's word to what its taps give together in each lane.
    delay : int
        Cycles from the beat's word to the values that go into the queue.
    at : PoolPorts
        The registers of what comes with a beat, in time with the values that go into the queue.
    above : list of Signal
        Bits that leave above the side bits.
    """

    module: ClassVar[str]
    """Name of the unit's module."""
    contract: ClassVar[str]
    """Text of the module's header."""
    sizes: ClassVar[tuple[str, ...]]
    """Values of the NPU, by flat name, that the header names."""
    memory: ClassVar[str | None] = None
    """Name of the memory that the unit reads."""
    cycles: ClassVar[int] = 0
    """Cycles from a row of the queue to what leaves."""
    value_cycles: ClassVar[int] = 0
    """Cycles from the beat's word to the values of its taps."""

    def __init__(self, b: Block, library: Library, npu: Npu, ports: PoolPorts):
        self.b = b
        self.library = library
        self.npu = npu
        self.merged_cycles = self.value_cycles + timing.tap_stages(npu)
        self.delay = self.merged_cycles + timing.lane_stages(npu)
        self.at = ports
        self.above: list[Signal] = []

    @property
    def lanes(self) -> int:
        """Lanes of a word, each of which is merged by itself: by default one for each channel."""
        return present(self.npu.pool_unit).pfp

    @property
    def lane_lines(self) -> int:
        """Lines that may share lanes; 1: none do."""
        return present(self.npu.pool_unit).lane_lines

    @property
    def taps(self) -> int:
        """Taps of a beat."""
        return present(self.npu.pool_unit).beat.taps

    def value(self, k: int, tap: int) -> Signal:
        """The value of lane ``k`` of a tap of the beat: by default that of the beat's word."""
        w = width(self.at.word) // self.taps // self.lanes
        place = (tap * self.lanes + k) * w
        return self.b.wire(self.name("feature", k, tap), w, bits(self.at.word, place, w))

    def name(self, what: str, k: int, tap: int) -> str:
        """Name of a signal of lane ``k`` of a tap of the beat."""
        return f"{what}_{k}_{tap}" if self.taps > 1 else f"{what}_{k}"

    @abstractmethod
    def merged(self, left: Signal, right: Signal, cycles: int) -> Signal:
        """The value that two values give together, so many cycles after the beat's word: those of two taps, those of
        two lines that share lanes, or the value of a beat and what the beats before it gave."""

    def lane_value(self, k: int) -> Signal:
        """The value of lane ``k`` of all taps of the beat together."""
        values = [self.value(k, tap) for tap in range(self.taps)]
        b = self.b
        w = width(values[0])
        if timing.tap_stages(self.npu) and self.taps * self.lane_lines > 1:
            w += bits_for(self.taps * self.lane_lines - 1)  # as values may be added
        level = values
        if len(values) > 1 or w > width(values[0]):
            level = [b.wire(self.name("wide", k, tap), w, sign_extend(value, w)) for tap, value in enumerate(values)]
        stages = timing.tap_stages(self.npu)
        for n in range(max(stages, (self.taps - 1).bit_length())):  # a tree, of integers with registers on each level
            pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
            level = []
            for i, pair in enumerate(pairs):
                value = pair[0]
                if len(pair) > 1:
                    value = b.wire(f"merged_{k}_{n}_{i}", w, self.merged(*pair, self.value_cycles + n))
                if n < stages:
                    register = b.reg(f"beat_{k}" if n == stages - 1 else f"beat_{k}_{n}_{i}", w, init=None)
                    b.on(None, (register, value))
                    value = register
                level.append(value)
        return level[0]

    def leaving(self, _k: int, merged: Signal) -> Signal:
        """The value of lane ``k`` that leaves, `cycles` later: by default the queue's."""
        return merged

    def beat_values(self) -> Iterable[Signal]:
        """The value of each lane, in time with ``at``: of all taps of the beat together."""
        values = (self.lane_value(k) for k in range(self.lanes))
        return values if self.lane_lines == 1 else self._shared(list(values))

    def _shared(self, values: list[Signal]) -> list[Signal]:
        """The value of each lane where lines may share lanes: then the lowest lanes have what all lines give together,
        and the others 0."""
        b = self.b
        b.comment("Whether lines share lanes; what they give together then.")
        held = b.reg("at_shares_lanes", init=None)
        b.on(None, (held, self.at.beat.marks.shares_lanes))
        shares = delayed(b, held, "shares_lanes", self.merged_cycles)[-1]
        w = width(values[0])
        part = self.lanes // self.lane_lines
        together = [const(0, w)] * self.lanes
        for k in range(part):
            together[k], *lines = values[k::part]
            for n, line in enumerate(lines):
                together[k] = b.wire(f"lines_{k}_{n}", w, self.merged(together[k], line, self.merged_cycles))
        chosen = [choose(shares, merged, alone, w) for merged, alone in zip(together, values)]
        if not timing.lane_stages(self.npu):
            return chosen
        registers = [b.reg(f"lane_{k}", w, init=None) for k in range(self.lanes)]
        b.on(None, *zip(registers, chosen))
        b.comment("The queue's row with this beat, lane by lane.")
        return registers

    def row(self, so_far: Signal) -> tuple[Signal, Signal]:
        """The queue's row with the values of the beat at hand: these alone at a window's first tap, else merged with
        ``so_far``. And what leaves with the last tap, `cycles` later."""
        b = self.b
        w = width(so_far) // self.lanes
        merged = []
        leaving = []
        for k, value in enumerate(self.beat_values()):
            # sums of a beat may be wider: they are right modulo 2^w, and the queue has room for those of each window
            given = sign_extend(value, w) if width(value) <= w else bits(value, 0, w)
            new = b.wire(f"new_{k}", w, given)
            old = b.wire(f"old_{k}", w, bits(so_far, k * w, w))
            merged.append(b.wire(f"merged_{k}", w, choose(self.at.first, new, self.merged(new, old, self.delay), w)))
            leaving.append(self.leaving(k, merged[-1]))
        return b.wire("merged", width(so_far), side_by_side(merged)), side_by_side(leaving)


MERGES: Mapping[str, Callable[[Signal, Signal], Signal]] = {"adds": lambda left, right: right + left}
"""Function of two taps of integers, by the ``merge`` of a `Reduction`; where no reduction is chosen, the larger tap is
the result."""


class IntegerArithmetic(Arithmetic):
    """Arithmetic of integers: the larger one, or what a merge says.

    Attributes
    ----------
    count : Signal
        Divisor of a result, in time with ``at``.
    """

    def hold(self, count: Signal, *more: tuple[Signal, Signal]) -> None:
        """Registers of what comes with a beat: which merge its marks choose, the ``count``, and ``more`` registers
        with their values."""
        b = self.b
        marks = dict[str, list[str]]()
        for reduction in self.npu.reductions:
            if reduction.mark:
                marks.setdefault(reduction.merge, []).append(reduction.mark)
        chosen = [any_of(*(getattr(self.at.beat.marks, mark) for mark in each)) for each in marks.values()]
        names = [each[0] if len(each) == 1 else merge for merge, each in marks.items()]
        self._held = {merge: (name, b.reg(f"at_{name}", init=None)) for merge, name in zip(marks, names)}
        self.count = b.reg("count", COUNT_BITS, init=None)
        b.on(None, *more, *zip([register for _, register in self._held.values()], chosen), (self.count, count))

    def follow(self) -> None:
        """Delay what `hold` keeps, so that it is in time with ``at``."""
        self._merges = {merge: delayed(self.b, held, name, self.delay) for merge, (name, held) in self._held.items()}
        self.count = delayed(self.b, self.count, "count", self.delay, COUNT_BITS)[-1]

    def chosen(self, merge: str, cycles: int) -> Signal:
        """Whether a merge is chosen, so many cycles after the beat's word."""
        return self._merges[merge][cycles]

    def merged(self, left: Signal, right: Signal, cycles: int) -> Signal:
        w = width(left)
        value = choose(signed_at_least(left, right), left, right, w)
        for merge in self._merges:
            value = choose(self.chosen(merge, cycles), MERGES[merge](left, right), value, w)
        return value
