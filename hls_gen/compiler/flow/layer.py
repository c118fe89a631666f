"""A layer as an NPU sees it: the order in which maps are read, in tuples and taps; arithmetic does not matter here.

A tap *claims* tuples: those that arrive with it for the first time, the last of them its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from bitloom.golden.encoding import Ints
from bitloom.hls_gen.design.formed_lines import FormedLines
from bitloom.hls_gen.design.formed_windows import FormedWindows


@dataclass(frozen=True, kw_only=True, eq=False)
class Reading:
    """How a sequencer reads a map (hls_gen/compiler/schedule/tables.py, hls_gen/rtl/sequencer/tap_source.py)."""

    words: int
    """Words of a tuple, >= 1."""
    taps: Ints
    """(windows,) valid taps of each window, >= 1. A tap that is visited twice counts as two."""
    claiming: Ints
    """(claims,) numbers of the taps that claim tuples, counted through all windows, ascending."""
    claims: Ints
    """(claims,) tuples that each of these taps claims, >= 1."""
    hold_tuples: int
    """Tuples that are claimed before the first one is given back, 1..tuples."""
    has_skips: bool = False
    """Whether each tuple that a tap claims beyond its own costs a cycle, in every pass over the window."""
    ends_old: bool = False
    """Whether the last tap that claims tuples reads an older one: those that it claims are for another reader of the
    map alone, but the tap waits until they have arrived."""
    part_words: int = 0
    """Words of a tuple that a pass reads, where it leaves some out; 0: it reads them all."""
    lines: FormedLines | None = None
    """Lines that a line former makes of the map in front of the sequencer; None where there is none."""

    @classmethod
    def straight(cls, windows: int, words: int) -> "Reading":
        """Each tuple is a window of its own."""
        ones = np.ones(windows, np.int64)
        return cls(words=words, taps=ones, claiming=np.arange(windows), claims=ones, hold_tuples=1)

    @property
    def key(self) -> tuple[object, ...]:
        """All fields, which are equal where two readings are."""
        values = (getattr(self, item.name) for item in fields(self))
        return tuple(value.tobytes() if isinstance(value, np.ndarray) else value for value in values)

    @property
    def read_words(self) -> int:
        """Words of a tuple that a pass reads."""
        return self.part_words or self.words

    @property
    def tuples(self) -> int:
        """Tuples of the map."""
        return int(self.claims.sum())

    @property
    def coming_words(self) -> int:
        """Words of the map that come, in front of a line former where there is one."""
        return self.lines.coming_words if self.lines else self.tuples * self.words

    @property
    def windows(self) -> int:
        """Windows of the map."""
        return len(self.taps)


@dataclass(frozen=True, kw_only=True, eq=False)
class FlowLayer:
    """A weighted layer with its activation and its pool."""

    name: str
    """The layer's name."""
    reading: Reading
    """How the array's sequencer reads the layer's map."""
    groups: int = 1
    """Kernel groups for each of which a window is passed anew."""
    inner: int = 1
    """Kernel groups that use a word in turn, in one pass (dataflow input_stationary)."""
    steps: int = 1
    last_steps: int = 1
    """steps, last_steps: cycles in which the results of a kernel group leave, and those of a window's last group; one
    for each level."""
    pool: Reading | None = None
    """How the pool unit reads the results; None where nothing is pooled."""
    raw: bool = False
    """Whether its results are raw: sums that leave as they are."""
    inlet: str
    """The inlet by which the map comes that it reads: "host", "ring" or "loop", or "skip" for the skip store."""
    chunk_words: int = 0
    """Words of a chunk of that map, where it comes from the NPU before through two buffers."""
    joined_words: tuple[int, int] | None = None
    """Of two maps that it reads side by side: words of a tuple from the inlet, and then from the skip store; None for
    one map."""
    adds: bool = False
    """Whether it adds a map from the skip store to its results."""
    outlet: str
    """The outlet by which the map leaves that it makes: "host", "ring" or "loop", or "skip" where the skip store alone
    takes it."""
    skips: bool = False
    """Whether that map goes to the skip store."""
    is_added: bool = False
    """Whether an addition takes it from there."""
    map_words: int
    """Words of that map, as they leave the NPU."""
    map_lanes: int
    """Lanes of such a word."""
    streamed: bool = False
    """Whether its weights come down the stream in every frame."""
    formed: FormedWindows | None = None
    """Windows that a window former makes of the map that the layer reads; None where words pass the former by, or there
    is none."""

    @property
    def results(self) -> int:
        """Kernel groups of a window."""
        return self.groups * self.inner

    @property
    def tuple_steps(self) -> int:
        """Steps in which the results of a window leave."""
        return (self.results - 1) * self.steps + self.last_steps

    @property
    def input_words(self) -> int:
        """Words of the map that it reads, behind a window former where there is one."""
        return self.reading.coming_words

    @property
    def coming_words(self) -> int:
        """Words of the map as they come to its NPU."""
        return self.formed.frame_words if self.formed else self.input_words

    @property
    def output_windows(self) -> int:
        """Tuples of the map that it makes."""
        return self.reading.windows if self.pool is None else self.pool.windows

    @property
    def beats(self) -> int:
        """Cycles in which the array is fed, a frame."""
        return int(self.reading.taps.sum()) * self.reading.read_words * self.results


Claim = tuple[int, int, int, int]
"""Tuples that a tap, or a skip, claims: the cycle of the pass in which its first beat is due; words given back as it is
taken; words claimed that it does not read; words claimed that it reads, for which it waits. -1 and 1: a tap that claims
none, but waits until all that was claimed before has arrived."""
Pass = tuple[int, int, list[Claim], list[Claim]]
"""A pass over a window: its cycles; how many of these come before the first beat; claims of the first beat's tap and
of the skips before it; claims of later taps."""


def passes(reading: Reading, inner: int = 1, fetch: int = 0) -> list[Pass]:
    """The passes over the windows: what a sequencer does in each of them if nothing makes it wait.

    ``inner`` beats use a word, and ``fetch`` cycles come before them in which it is read.
    """
    out: list[Pass] = []
    tap_cycles = reading.read_words * (inner + fetch)
    claims = _claims(reading)
    claim = next(claims, None)
    begin = 0
    for taps in reading.taps.tolist():
        skipped = 0
        lead = fetch
        head: list[Claim] = []
        rest: list[Claim] = []
        while claim is not None and claim[0] < begin + taps:
            tap, given, ahead, fresh = claim
            at = (tap - begin) * tap_cycles + skipped
            (head if tap == begin else rest).append((at, given, ahead, fresh))
            skipped += fresh == 0
            lead += fresh == 0 and tap == begin
            claim = next(claims, None)
        out.append((taps * tap_cycles + skipped, lead, head, rest))
        begin += taps
    return out


def _claims(reading: Reading) -> Iterator[tuple[int, int, int, int]]:
    """(tap, words given back, words claimed that the tap does not read, words that it reads); a skip is a claim that
    reads none."""
    words = reading.words
    spare = -reading.hold_tuples * reading.words
    read_words = reading.read_words
    for number, (tap, count) in enumerate(zip(reading.claiming.tolist(), reading.claims.tolist()), 1):
        parts = [(count * words - read_words, read_words)]
        if reading.has_skips:
            parts = [(words, 0)] * (count - 1) + [(0, words)]
        if reading.ends_old and number == len(reading.claiming):
            parts = [(words, 0)] * count + [(-1, 1)] if reading.has_skips else [(count * words - 1, 1)]
        for ahead, fresh in parts:
            before = max(spare, 0)
            spare += ahead + fresh
            yield tap, max(spare, 0) - before, ahead, fresh
