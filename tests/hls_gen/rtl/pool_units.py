"""Code that the tests of all pool units share: foldings, the sequencer that feeds a unit, windows with golden's results
and the rules that all units keep."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from bitloom.golden.layers.pool import Pool
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.pool_unit import Reduction
from bitloom.hls_gen.design.timing import latencies, pool_fifo
from bitloom.hls_gen.rtl.sequencer.beat import Beat
from bitloom.hls_gen.rtl.sequencer.spec import SequencerSpec

from .bench import Agent, Bench, Sink, run, steady

PFP = 6
FOLDINGS = {
    f"{lines}x{taps}_taps_{shared}_on_a_lane": {
        "pfp": PFP,
        "pool_lines": lines,
        "pool_line_taps": taps,
        "pool_lane_lines": shared,
    }
    for (lines, taps), shared in product([(1, 1), (1, 2), (1, 3), (2, 2), (3, 3)], [1, 2, 3])
}
"""Values of a pool unit, by lines and columns of the taps of a beat, and by lines that may share lanes."""
FIFO_LATENCY = 2
"""Cycles from a word at the output FIFO to the same word at the output."""
STALLS = [(0, 0), (0.4, 0.4), (0, 0.8), (0.8, 0)]
"""Chances of a stall, in front of the unit and behind it."""


@dataclass(frozen=True)
class PoolBeat:
    """One cycle's input: ``ports`` has the value of each port of the bundle Beat but ``beat``; ``word`` comes a cycle
    later."""

    word: int
    ports: dict[str, int]

    @property
    def last(self) -> int:
        """Whether the beat is one of its window's last tap."""
        return self.ports["last"]


class PoolSequencer(Agent):
    """Gives beats as the pool sequencer does: one of a last tap only if there is room. Without a beat ports have
    noise."""

    def __init__(self, bench: Bench, npu: Npu, beats: list[PoolBeat], stall: float = 0):
        self.bench = bench
        self.npu = npu
        self.beats = beats
        self.stall = stall
        self.random = random.Random(2)
        ports = Beat.port_list(SequencerSpec(present(npu.pool_sequencer)))
        self.widths = {port.name: port.width for port in ports if port.name != "beat"}
        assert all(beat.ports.keys() == self.widths.keys() for beat in beats)
        self.given: list[int] = []
        self._word: int | None = None

    def drive(self) -> None:
        bench = self.bench
        noise = self.random.getrandbits
        beat = self.beats[len(self.given)] if not self.done and self.random.random() >= self.stall else None
        if beat and beat.last and not bench["room"]:
            beat = None
        bench["word"] = noise(bench.widths["word"]) if self._word is None else self._word
        self._word = beat.word if beat else None
        values = beat.ports if beat else {name: noise(w) for name, w in self.widths.items()}
        bench.set(beat=int(beat is not None), **values)
        if beat:
            self.given.append(bench.cycle)

    @property
    def done(self) -> bool:
        return len(self.given) == len(self.beats)


def packed(values: np.ndarray, bits: int) -> int:
    """Values of so many bits, side by side in a word."""
    return sum((int(v) & ((1 << bits) - 1)) << k * bits for k, v in enumerate(values))


def marks_of(words: int, window: int) -> list[tuple[int, int, int]]:
    """tuple_last, map_last and target with each word of a window's tuples."""
    return [(int(k == words - 1), window % 3 // 2, window % 4 // 2) for k in range(words)]


def side_of(marks: tuple[int, int, int]) -> int:
    """The marks as they leave beside a word."""
    return marks[0] | marks[1] << 1 | marks[2] << 2


def beats_of(
    words: list[list[int]],
    flags: list[tuple[int, int, int]],
    more: Callable[[int, int], dict[str, int]] = lambda tap, word: {},
) -> list[PoolBeat]:
    """Beats of a window, tap after tap.

    words : of each tap's tuple.
    flags : tuple_last, map_last and target with each word of a tuple.
    more : values of the ports that only this unit has, by number of the tap and of its word.
    """
    beats = []
    for tap, of_tap in enumerate(words):
        for k, word in enumerate(of_tap):
            place = {"index": k, "first": int(tap == 0), "last": int(tap == len(words) - 1)}
            marks = dict(zip(("tuple_last", "map_last", "target"), flags[k], strict=True))
            beats.append(PoolBeat(word, {**place, **marks, **more(tap, k)}))
    return beats


class Taps:
    """The taps of a window, drawn by ``rng`` from ``low`` to ``high``.

    A beat has the tap at hand, in the first line of the last place, and perhaps taps in other places. An average has
    the tap at hand alone, as it is divided by the number of beats; lines share no lanes then.

    Attributes
    ----------
    values : (beats, words, places, lines, channels)
        What each beat's words have in their lanes, line 0 low; ``beside`` where a tap is not valid.
    valid : (beats, places, lines) bool
        Which taps are valid.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        npu: Npu,
        size: tuple[int, int],
        reduction: Reduction,
        *,
        low: int,
        high: int,
        beside: int = 0,
    ):
        """``size``: beats of each word, words."""
        unit = present(npu.pool_unit)
        self.lines = 1 if reduction.divides or rng.random() < 0.3 else unit.lane_lines
        shape = (*size, unit.beat.taps, self.lines, unit.pfp // self.lines)
        drawn = rng.choice([low, high], shape) if rng.random() < 0.3 else rng.integers(low, high + 1, shape)
        self.valid = rng.random((size[0], *shape[2:4])) < (0 if reduction.divides else 0.8)
        self.valid[:, -1, 0] = True
        self.values = np.where(self.valid[:, None, :, :, None], drawn, beside)

    def ports(self, npu: Npu) -> dict[str, int]:
        """Values of the ports that only some units have."""
        return {"shares_lanes": int(self.lines > 1)} if present(npu.pool_unit).lane_lines > 1 else {}

    def words(self, bits: int) -> list[list[int]]:
        """The words of each beat's tuple."""
        return [[packed(word.ravel(), bits) for word in beat] for beat in self.values]

    def reduced(self, layer: type[Pool], weights: np.ndarray | None = None) -> np.ndarray:
        """(words, channels): what golden's layer makes of the values, or of their products with weights, which lie in
        lanes as the values do."""
        values = self.values if weights is None else self.values * weights.reshape(self.values.shape)
        words, channels = values.shape[1], values.shape[-1]
        return layer.reduced(values.swapaxes(0, 1).reshape(words, 1, -1, channels), self.valid.reshape(1, -1))[:, 0]


@dataclass(frozen=True, kw_only=True)
class PoolWindow:
    """A window at a pool unit."""

    words: list[list[int]]
    """Words of each beat's tuple."""
    ports: Callable[[int, int], dict[str, int]]
    """Values of the ports that only some units have, by number of the beat and of its word."""
    out: list[int]
    """Values of the words that leave, without side bits."""
    above: int = 0
    """Words that leave, without the side bits."""


Draw = Callable[[np.random.Generator, Npu, int | None, int], PoolWindow]
"""Draws a window of a unit: of so many beats of each word (None: any number), and of so many words."""


def windows(
    npu: Npu, draw: Draw, count: int, seed: int, words: int | None = None, beats: int | None = None
) -> tuple[list[PoolBeat], list[int]]:
    """Beats, and words that must come out, of ``count`` windows; perhaps all of so many ``words`` and ``beats``."""
    rng = np.random.default_rng(seed)
    given, out = list[PoolBeat](), list[int]()
    for number in range(count):
        n_words = words or int(rng.choice([1, 2, 5, 16]))
        marks = marks_of(n_words, number)
        window = draw(rng, npu, beats, n_words)
        given += beats_of(window.words, marks, window.ports)
        sides = [side_of(mark) | window.above << npu.pool_side_bits for mark in marks]
        out += [word | side << npu.pool_values_bits for word, side in zip(window.out, sides, strict=True)]
    return given, out


def check_pool_unit(bench: Bench, npu: Npu, draw: Draw, count: int) -> None:
    """The checks of every pool unit; ``count`` windows are compared with each pair of stalls."""
    given, expected = windows(npu, draw, count, 1)
    for stall_in, stall_out in STALLS:
        bench.reset()
        sink = Sink(bench, "out_", expect=len(expected), stall=stall_out)
        run(bench, PoolSequencer(bench, npu, given, stall_in), sink)
        assert sink.values == expected, (stall_in, stall_out)
    for words in (1, 3):
        _check_rate_and_latency(bench, npu, draw, words)
    _check_full_fifo(bench, npu, draw)


def _check_rate_and_latency(bench: Bench, npu: Npu, draw: Draw, words: int) -> None:
    """A word a cycle, also from window to window, and of tuples of one word, whose row of the queue must be there in
    the next cycle; a result leaves as many cycles after its window's last beat as the header says."""
    bench.reset()
    given, expected = windows(npu, draw, 30, 3, words=words)
    give = PoolSequencer(bench, npu, given)
    sink = Sink(bench, "out_", expect=len(expected))
    run(bench, give, sink)
    assert sink.values == expected
    assert steady(give.given)
    latency = latencies(npu).pool + FIFO_LATENCY
    assert sink.taken == [cycle + latency for cycle, beat in zip(give.given, given) if beat.last]


def _check_full_fifo(bench: Bench, npu: Npu, draw: Draw) -> None:
    """Nothing is lost when the output stalls: ``room`` falls before the FIFO is full, all that was sent comes out, and
    room rises again."""
    bench.reset()
    given, expected = windows(npu, draw, 60, 4, words=2, beats=1)
    give = PoolSequencer(bench, npu, given)
    sink = Sink(bench, "out_", expect=len(expected))
    size = pool_fifo(npu)
    sink.closed = True
    run(bench, give, sink, cycles=100)
    assert size.words - size.margin < len(give.given) <= size.words
    assert bench["room"] == 0
    sink.closed = False
    run(bench, give, sink)
    assert sink.values == expected
    assert bench["room"] == 1
