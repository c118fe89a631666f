"""What the tests of both pool units share: the sequencer that feeds them, and the rules that both keep."""

import random
from collections.abc import Mapping
from dataclasses import dataclass

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.timing import pool_fifo_words

from .bench import Agent, Bench, Sink, run, steady


@dataclass(frozen=True)
class Beat:
    """One cycle's input; ``word`` comes a cycle later.

    flags : tuple_last, map_last and target.
    more : what only one of the units looks at.
    """

    word: int
    index: int
    first: bool
    last: bool
    flags: tuple[int, int, int]
    more: tuple[int, ...] = ()


class PoolSequencer(Agent):
    """Gives beats as the pool sequencer does: one of a last tap only if there is room.

    ``more`` : name and width of each port that only this unit has. A port without a beat has noise.
    """

    def __init__(
        self, bench: Bench, npu: Npu, beats: list[Beat], more: Mapping[str, int] | None = None, stall: float = 0
    ):
        self.bench, self.npu, self.beats, self.stall, self.random = bench, npu, beats, stall, random.Random(2)
        self.more = more or {}
        self.given: list[int] = []
        self._word: int | None = None

    def drive(self) -> None:
        bench, noise = self.bench, self.random.getrandbits
        beat = self.beats[len(self.given)] if not self.done and self.random.random() >= self.stall else None
        if beat and beat.last and not bench["room"]:
            beat = None
        bench["word"] = noise(self.npu.pool_word_bits) if self._word is None else self._word
        self._word = beat.word if beat else None
        widths = {"index": 4, "first": 1, "last": 1, "tuple_last": 1, "map_last": 1, "target": 1, **self.more}
        given = (beat.index, int(beat.first), int(beat.last), *beat.flags, *beat.more) if beat else None
        values = given or [noise(w) for w in widths.values()]
        bench.set(beat=int(beat is not None), **dict(zip(widths, values, strict=True)))
        if beat:
            self.given.append(bench.cycle)

    @property
    def done(self) -> bool:
        return len(self.given) == len(self.beats)


def check_rate_and_latency(bench: Bench, give: PoolSequencer, expected: list[int], latency: int) -> None:
    """A word a cycle, also from window to window; a result leaves ``latency`` cycles after its window's last beat."""
    sink = Sink(bench, "out_", expect=len(expected))
    run(bench, give, sink)
    assert sink.values == expected
    assert steady(give.given)
    assert sink.taken == [cycle + latency for cycle, beat in zip(give.given, give.beats) if beat.last]


def check_a_closed_output(bench: Bench, give: PoolSequencer, expected: list[int], inside: int) -> None:
    """``room`` falls before the FIFO is full, all that was sent comes out, and room rises again.

    The windows have one tap. ``inside`` : words that the FIFO may still have room for when ``room`` falls.
    """
    depth = pool_fifo_words(give.npu)
    sink = Sink(bench, "out_", expect=len(expected))
    sink.closed = True
    run(bench, give, sink, cycles=100)
    assert depth - inside <= len(give.given) <= depth
    assert bench["room"] == 0
    sink.closed = False
    run(bench, give, sink)
    assert sink.values == expected
    assert bench["room"] == 1
