"""Tap source by itself: its stream of taps against the schedule, whatever the issuer does with its ready."""

import random

import pytest

from bitloom.hls_gen.compiler.plan import Plan
from bitloom.hls_gen.design import timing
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.sequencer.tap_source import tap_source
from tests.rows import memory_rows

from .bench import Agent, Bench, run
from .test_sequencer import BIG, FRAMES, load_tables, made_plan, spec_of, stages

PAYLOAD = ("skip", "claim", "last", "layer_end", "address", "words_minus_1", "hold_words")
CASES = [(name, order) for name in ("chain", "conv_strides", "levels") for order in ("pull", "raster")]


class Taps(Agent):
    """Takes taps with chance ``chance`` in each cycle, and sees that a tap that waits stays as it is. It is ready until
    the first tap is there, as the issuer is.

    ``given`` has the words that each gives back, which are told in the cycle after it was taken and in no other.
    """

    def __init__(self, bench: Bench, count: int, chance: float, names: tuple[str, ...]):
        self.bench, self.count, self.chance, self.names = bench, count, chance, names
        self.random, self.found, self.cycles = random.Random(count), [], []
        self.given: list[int] = []
        self.start = bench.cycle
        self._waiting: dict[str, int] | None = None

    def drive(self) -> None:
        first = not self.bench["tap_valid"] and not self.found
        takes = first or self.random.random() < self.chance
        self.bench["tap_ready"] = int(len(self.found) < self.count and takes)

    def look(self) -> None:
        bench, given = self.bench, self.bench["tap_given_words"]
        if self.cycles and self.cycles[-1] == bench.cycle - 1:
            self.given.append(given)
        else:
            assert not given, "words are given back and no tap was taken"
        if not bench["tap_valid"]:
            assert self._waiting is None, "valid fell before the tap was taken"
            return
        tap = {name: bench[f"tap_{name}"] for name in self.names}
        assert self._waiting in (None, tap), "a tap changed while it waited"
        self._waiting = None if bench["tap_ready"] else tap
        if bench["tap_ready"]:
            self.found.append(tap)
            self.cycles.append(bench.cycle)

    @property
    def done(self) -> bool:
        return len(self.given) >= self.count


def expected(made: Plan, pool: bool, ring: int) -> list[tuple[int, ...]]:
    """(address, last, layer_end, kernel row or 0) of every tap that has beats, over all frames."""
    out, base = [], 0
    for _ in range(FRAMES):
        for stage in stages(made, pool):
            window: list[tuple[int, int, bool]] = []
            taps = stage.taps
            for number, tap in enumerate(taps):
                window.append(tap)
                if not tap[2]:
                    continue
                for group in range(stage.groups):
                    passed = [(place, index, visit) for place, index, _ in window for visit in range(stage.visits)]
                    for k, (place, index, visit) in enumerate(passed):
                        last = k == len(passed) - 1
                        end = last and group == stage.groups - 1 and number == len(taps) - 1
                        row = 0 if pool else stage.row["kernel_base"] + group * stage.row["group_rows"] + (
                            place * stage.visits + visit) * stage.words  # fmt: skip
                        out.append(((base + index * stage.words) % ring, int(last), int(end), row))
                window = []
            base += stage.inputs["words"]
    return out


@pytest.fixture(scope="module", params=[(pool, raster) for pool in (False, True) for raster in (False, True)],
                ids=lambda p: f"{'pool' if p[0] else 'array'}{'_raster' * p[1]}")  # fmt: skip
def rig(request):
    pool, raster = request.param
    npu = BIG.changed(raster=raster)
    with Bench(tap_source(Library(32), spec_of(npu, pool))) as bench:
        yield bench, npu, pool


def taken(rig, name: str, order: str, chance: float) -> tuple[Taps, Plan]:
    """Taps of some frames of a network."""
    bench, npu, pool = rig
    made = made_plan(name, order, npu)
    bench.set(rst=1, last_layer=len(stages(made, pool)) - 1, tap_ready=0)
    load_tables(bench, npu, memory_rows(made), "pool_" if pool else "")
    bench["rst"] = 0
    skips = FRAMES * sum(s.skips * s.groups for s in stages(made, pool) if not s.row.get("by_counters", 0))
    count = len(expected(made, pool, npu.value("pool_words") if pool else npu.sequencer.tuple_words)) + skips
    names = (*PAYLOAD, *(("gap", "gap_words") if npu.sequencer.raster else ()), *(() if pool else ("row", "offset")))
    taps = Taps(bench, count, chance, names)
    run(bench, taps, extra=0)
    return taps, made


@pytest.mark.sample(3)
@pytest.mark.parametrize("chance", [1, 0.4])
@pytest.mark.parametrize(("name", "order"), CASES)
def test_taps_are_those_of_the_schedule(rig, name, order, chance):
    _, npu, pool = rig
    taps, made = taken(rig, name, order, chance)
    found = [(t["address"], t["last"], t["layer_end"], t.get("row", 0)) for t in taps.found if not t["skip"]]
    assert found == expected(made, pool, npu.value("pool_words") if pool else npu.sequencer.tuple_words)


def test_first_tap(rig):
    """How soon after reset the first tap is there, as the flow model has it."""
    taps, _ = taken(rig, "chain", "pull", 1)
    assert taps.cycles[0] - taps.start == timing.FIRST_STEP


@pytest.mark.sample(4)
@pytest.mark.parametrize("order", ["pull", "raster"])
def test_a_tap_in_every_cycle(rig, order):
    """Over windows, groups, layers and frames, if the issuer takes them."""
    taps, _ = taken(rig, "chain", order, 1)
    assert taps.cycles[-1] - taps.cycles[0] + 1 == len(taps.cycles)


def test_what_is_claimed_is_given_back(rig):
    """Over whole frames: in the cycle after each claim, or with a layer's last tap."""
    _, _, pool = rig
    taps, made = taken(rig, "chain", "raster", 0.7)
    claimed = sum((t["words_minus_1"] + 1) * t["claim"] + t.get("gap", 0) * t.get("gap_words", 0) for t in taps.found)
    given = sum(own + t["hold_words"] * t["layer_end"] for t, own in zip(taps.found, taps.given))
    assert claimed == given == FRAMES * sum(s.inputs["words"] for s in stages(made, pool))
