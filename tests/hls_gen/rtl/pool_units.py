"""What the tests of all pool units share: the sequencer that feeds them, and the rules that all keep."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.timing import pool_fifo
from bitloom.hls_gen.rtl.sequencer.beat import Beat
from bitloom.hls_gen.rtl.sequencer.spec import SequencerSpec

from .bench import Agent, Bench, Sink, run, steady


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
        bench["word"] = noise(self.npu.pool_word_bits) if self._word is None else self._word
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


class PoolUnitTests:
    """What every pool unit does. The fixture ``bench`` has the unit, after a reset."""

    npu: ClassVar[Npu]
    windows: ClassVar[Callable[..., tuple[list[PoolBeat], list[int]]]]
    """Beats, and words that must come out, of ``count`` windows, drawn by ``seed``; perhaps all of so many ``words``
    and ``taps``."""
    count: ClassVar[int]
    """Windows that are compared."""
    latency: ClassVar[int]
    """Cycles from the beat to the word at the output."""
    inside: ClassVar[int]
    """Words that the FIFO may still have room for when ``room`` falls."""

    @pytest.mark.parametrize(("stall_in", "stall_out"), [(0, 0), (0.4, 0.4), (0, 0.8), (0.8, 0)])
    def test_equals_the_definition(self, bench: Bench, stall_in: float, stall_out: float) -> None:
        beats, expected = self.windows(self.count, 1)
        sink = Sink(bench, "out_", expect=len(expected), stall=stall_out)
        run(bench, PoolSequencer(bench, self.npu, beats, stall_in), sink)
        assert sink.values == expected

    @pytest.mark.parametrize("words", [1, 3])
    def test_rate_and_latency(self, bench: Bench, words: int) -> None:
        """A word a cycle, also from window to window, and of tuples of one word, whose row of the queue must be there
        in the next cycle; a result leaves ``latency`` cycles after its window's last beat."""
        beats, expected = self.windows(30, 3, words=words)
        give = PoolSequencer(bench, self.npu, beats)
        sink = Sink(bench, "out_", expect=len(expected))
        run(bench, give, sink)
        assert sink.values == expected
        assert steady(give.given)
        assert sink.taken == [cycle + self.latency for cycle, beat in zip(give.given, give.beats) if beat.last]

    def test_nothing_is_lost_when_the_output_stalls(self, bench: Bench) -> None:
        """``room`` falls before the FIFO is full, all that was sent comes out, and room rises again."""
        beats, expected = self.windows(60, 4, words=2, taps=1)
        give = PoolSequencer(bench, self.npu, beats)
        sink = Sink(bench, "out_", expect=len(expected))
        depth = pool_fifo(self.npu).words
        sink.closed = True
        run(bench, give, sink, cycles=100)
        assert depth - self.inside <= len(give.given) <= depth
        assert bench["room"] == 0
        sink.closed = False
        run(bench, give, sink)
        assert sink.values == expected
        assert bench["room"] == 1
