"""Sequencers: the tables of hls_gen.compiler.plan against a plain loop over windows, groups, taps, visits and words."""

import random

import numpy as np
import pytest

from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Network
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.plan import Plan, plan
from bitloom.hls_gen.compiler.schedule import StageTables
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.sequencer.sequencer import SequencerSpec, sequencer
from tests.cases import case_map, cases, random_model
from tests.rows import memory_rows

from .bench import Agent, Bench, Source, load, pack, run, steady

SIZES = {"layers": 8, "tuple_words": 2048, "pool_words": 2048, "taps": 8192, "olds": 8192, "kernel_rows": 4096}
SIZES |= dict.fromkeys(("jumps", "pool_taps", "pool_olds"), 1024)
BIG = Npu.of(kfp=5, kgp=4, pfp=3, ol=2, acc_bits=20, **SIZES)
"""Rings that hold every case: nothing ever waits for free words."""

FRAMES = 3
PULSES = Npu.of(stream_weights=True).pulses

CHAIN = [
    Conv(name="conv_1", out_channels=9, kernel=(3, 2), padding=(2, 0, 1, 1)),
    Threshold(name="threshold_1"),
    MaxPool(name="pool_1", kernel=(2, 3), stride=(1, 2), padding=(1, 0, 0, 0)),
    Conv(name="conv_2", out_channels=3, kernel=(2, 3), stride=(2, 1)),
    Threshold(name="threshold_2", levels=2),
    Dense(name="dense_1", out_channels=13),
    Threshold(name="threshold_3"),
    Dense(name="dense_2", out_channels=2),
]


def network(name: str, source: Map, *layers: Layer) -> Network:
    return Network(name=name, input=source, layers=layers)


NAMES = ["dense_33_31", "conv_strides", "conv_padding", "conv_padding_stride", "one_window_with_padding"]
NAMES += ["max_pool_of_bits", "signed_8_input", "levels", "ternary"]
MODELS = {"chain": random_model(network("chain", case_map(8, 7, 6), *CHAIN), np.random.default_rng(5))}
MODELS |= {name: model for name, model in cases() if name in NAMES}
POOLED = ("chain", "conv_strides", "max_pool_of_bits", "levels", "signed_8_input")


class Stage:
    """One layer of a sequencer: its rows, its part of the schedule, and its words for a frame."""

    def __init__(self, row: dict[str, int], part: StageTables | None, visits: int, inputs: dict[str, int]):
        self.row = row
        self.part = part
        self.visits = visits
        self.inputs = inputs
        self.words = row["words_minus_1"] + 1
        self.groups = row.get("groups_minus_1", 0) + 1

    @property
    def taps(self) -> list[tuple[int, int, bool]]:
        """(place in the kernel, tuple, last of its window) of every valid tap."""
        if self.part is None:
            return [(0, k, True) for k in range(self.row["windows_minus_1"] + 1)]
        return list(zip(self.part.tap.tolist(), self.part.index.tolist(), self.part.last.tolist()))

    @property
    def skips(self) -> int:
        """Tuples of a frame that only come by."""
        return 0 if self.part is None else int((self.part.advance[self.part.new] - 1).sum())

    @property
    def beats(self) -> int:
        return len(self.taps) * self.visits * self.words * self.groups


Rows = dict[str, list[dict[str, int]]]
"""Memory -> its rows by field."""


def stages(network_plan: Plan, pool: bool, rows: Rows | None = None) -> list[Stage]:
    """Layers of a sequencer; ``rows`` in place of those that the plan makes."""
    rows = rows or memory_rows(network_plan)
    tables = iter(network_plan.schedule.tables)
    out = []
    conv_rows = zip(rows["layers"], rows["inputs"])
    pool_rows = zip(rows.get("pool_layers", []), rows.get("pool_inputs", []))
    for p in network_plan.lowered.layers:
        row, inputs = next(conv_rows)
        conv = Stage(row, next(tables), p.visits, inputs)
        if p.raw:
            out += [] if pool else [conv]
            continue
        row, inputs = next(pool_rows)
        out.append(Stage(row, next(tables) if p.pool else None, 1, inputs) if pool else conv)
        if p.pool and not pool:
            next(tables)
    return out


def loop(parts: list[Stage], words: list[list[list[int]]], acc_bits: int) -> list[tuple[int, ...]]:
    """(word, first, last, kernel row, offset) of every beat; ``words``: [frame][layer] of the stream."""
    out = []
    for frame in words:
        for stage, stream in zip(parts, frame):
            window: list[tuple[int, int, bool]] = []
            for tap in stage.taps:
                window.append(tap)
                if not tap[2]:
                    continue
                for group in range(stage.groups):
                    row = stage.row["kernel_base"] + group * stage.row["group_rows"]
                    offset = 0
                    for number, (place, index, _) in enumerate(window):
                        for visit in range(stage.visits):
                            offset += stage.row["tap_offset"]
                            for word in range(stage.words):
                                first = number == visit == word == 0
                                final = (number, visit, word) == (len(window) - 1, stage.visits - 1, stage.words - 1)
                                at = row + (place * stage.visits + visit) * stage.words + word
                                item = stream[index * stage.words + word]
                                out.append((item, int(first), int(final), at, offset % (1 << acc_bits)))
                window = []
    return out


def pool_loop(parts: list[Stage], words: list[list[list[int]]]) -> list[tuple[int, ...]]:
    """(word, first, last, index, tuple_last, map_last or None, target) of every beat."""
    out = []
    for frame in words:
        for stage, stream in zip(parts, frame):
            taps = stage.taps
            first = True
            for number, (_, index, final) in enumerate(taps):
                map_last = int(number == len(taps) - 1)
                for word in range(stage.words):
                    item = stream[index * stage.words + word]
                    tuple_last = int(word == stage.words - 1)
                    out.append((item, int(first), int(final), word, tuple_last, map_last, stage.row["target"]))
                first = final
    return out


class Beats(Agent):
    """Collects beats, each with the word that comes a cycle later; drives ``room`` (1 with chance ``room``)."""

    def __init__(self, bench: Bench, pool: bool, expect: int, room: float = 1, seed: int = 9):
        self.bench = bench
        self.room = room
        self.random = random.Random(seed)
        self.expect = expect
        names = ("index", "tuple_last", "map_last", "target") if pool else ("kernel_row", "offset")
        self.names = ("first", "last", *names)
        self.values: list[tuple[int, ...]] = []
        self.cycles: list[int] = []
        self.states: list[str] = []
        self.pool = pool
        self._open: tuple[int, ...] | None = None

    def drive(self) -> None:
        self.bench["room"] = int(self.random.random() < self.room)

    def look(self) -> None:
        bench = self.bench
        if self._open is not None:
            self.values.append((bench["word"], *self._open))
            self._open = None
        if not self.pool:
            (state,) = (n for n in PULSES if n in bench and bench[n])  # noqa: RUF019 - exactly one; a bench has no get
            self.states.append(state)
        if bench["beat"]:
            self.cycles.append(bench.cycle)
            self._open = tuple(bench[name] for name in self.names)
            assert bench["room"] or not bench["last"], "a window ended without room"

    @property
    def done(self) -> bool:
        return len(self.values) >= self.expect


def load_tables(bench: Bench, npu: Npu, tables: Rows, prefix: str) -> None:
    """All rows of one sequencer, whose tuple memory may be smaller than that of the rows."""
    ring = present(npu.pool_unit).words if prefix else npu.sequencer.tuple_words
    for name in ("inputs", "layers", "flags", "olds", *(() if prefix else ("jumps",))):
        memory = memory_of(npu, prefix + name)
        rows = tables.get(prefix + name, [])
        if name == "olds":
            rows = [{"word": row["word"] % ring} for row in rows]
        fields = set(memory.widths)
        load(bench, memory, 0, [pack(memory, {k: v for k, v in row.items() if k in fields}) for row in rows])


def spec_of(npu: Npu, pool: bool) -> SequencerSpec:
    """The pool unit's sequencer of an NPU, or the array's."""
    return SequencerSpec(present(npu.pool_sequencer) if pool else npu.array_sequencer)


class Rig:
    """A sequencer on a bench."""

    def __init__(self, npu: Npu, pool: bool):
        self.npu = npu
        self.pool = pool
        self.bench = Bench(sequencer(Library(32), spec_of(npu, pool)))

    def start(
        self, network_plan: Plan, frames: int = FRAMES, stall: float = 0, room: float = 1, rows: Rows | None = None
    ) -> tuple[Beats, list[Source], list]:
        """Tables loaded and sources ready: (the collector, sources, what must come); ``rows`` as of `stages`."""
        rows = rows or memory_rows(network_plan)
        parts = stages(network_plan, self.pool, rows)
        draw = random.Random(frames)
        bits = self.npu.pool_word_bits if self.pool else self.npu.array.word_bits
        words = [[[draw.getrandbits(bits) for _ in range(s.inputs["words"])] for s in parts] for _ in range(frames)]
        bench = self.bench
        prefix = "pool_" if self.pool else ""
        bench.set(rst=1, last_layer=len(parts) - 1)
        for name in ("in",) if self.pool else ("host", "loop"):
            bench[f"{name}_valid"] = 0
        load_tables(bench, self.npu, rows, prefix)
        bench["rst"] = 0
        if self.pool:
            streams = {"in_": [w for frame in words for layer in frame for w in layer]}
            expected = pool_loop(parts, words)
        else:
            maps = [w for frame in words for layer in frame[1:] for w in layer]
            streams = {"host_": [w for frame in words for w in frame[0]], "loop_": maps}
            expected = loop(parts, words, self.npu.array.acc_bits)
        sources = []
        for k, (name, data) in enumerate(streams.items()):
            sources.append(Source(bench, name, [{"data": w} for w in data], stall, seed=k))
        return Beats(bench, self.pool, len(expected), room), sources, expected


def check(beats: list[tuple[int, ...]], expected: list[tuple[int, ...]], pool: bool) -> None:
    """``map_last`` and the offset count with a window's last beat."""
    assert len(beats) == len(expected)
    always, at_end = (5, 7) if pool else (4, 5)
    for number, (got, want) in enumerate(zip(beats, expected)):
        count = at_end if want[2] else always
        assert got[:count] == want[:count], f"beat {number}"


@pytest.fixture(scope="module")
def conv():
    rig = Rig(BIG, pool=False)
    yield rig
    rig.bench.close()


@pytest.fixture(scope="module")
def pool():
    rig = Rig(BIG, pool=True)
    yield rig
    rig.bench.close()


ORDERS = [(name, order) for name in MODELS for order in ("pull", "raster")]


def plan_of(name: str, order: str, npu: Npu = BIG) -> Plan:
    return plan(MODELS[name], [npu], CompileChoices(map_order=order))


@pytest.mark.sample(8)
@pytest.mark.parametrize(("stall", "room"), [(0, 1), (0.3, 0.6), (0.8, 1)])
@pytest.mark.parametrize(("name", "order"), ORDERS)
def test_conv_equals_loop(conv, name, order, stall, room):
    beats, sources, expected = conv.start(plan_of(name, order), stall=stall, room=room)
    run(conv.bench, beats, *sources)
    check(beats.values, expected, pool=False)


@pytest.mark.sample(8)
@pytest.mark.parametrize(("stall", "room"), [(0, 1), (0.3, 0.6), (0.8, 1)])
@pytest.mark.parametrize(("name", "order"), [case for case in ORDERS if case[0] in POOLED])
def test_pool_equals_loop(pool, name, order, stall, room):
    network_plan = plan_of(name, order)
    beats, sources, expected = pool.start(network_plan, stall=stall, room=room)
    run(pool.bench, beats, *sources)
    check(beats.values, expected, pool=True)


def full_rate(rig: Rig, network_plan: Plan) -> None:
    """A beat in every cycle once words are there; only a skipped tuple costs a cycle, in each pass of its window."""
    beats, sources, expected = rig.start(network_plan)
    beats.room = 0  # the ring fills while the first window can't end
    run(rig.bench, beats, *sources, cycles=3000)
    before = len(beats.cycles)
    beats.room = 1
    run(rig.bench, beats, *sources, extra=5)
    check(beats.values, expected, rig.pool)
    after = beats.cycles[before:]
    skips = FRAMES * sum(s.skips * s.groups for s in stages(network_plan, rig.pool))
    assert after[-1] - after[0] + 1 <= len(after) + skips
    if not skips:
        assert steady(after)


@pytest.mark.sample(3)
@pytest.mark.parametrize(("name", "order"), ORDERS)
def test_conv_one_beat_a_cycle(conv, name, order):
    """Over windows, layers and frames."""
    full_rate(conv, plan_of(name, order))


@pytest.mark.sample(5)
@pytest.mark.parametrize(("name", "order"), [case for case in ORDERS if case[0] in POOLED])
def test_pool_one_beat_a_cycle(pool, name, order):
    full_rate(pool, plan_of(name, order))


def test_conv_rate_of_a_stream(conv):
    """Dense layers in one group want a new word every cycle, and the writer gives it: no idle cycle after the
    first word."""
    layers = (
        Dense(name="dense_1", out_channels=4),
        Threshold(name="threshold_1"),
        Dense(name="dense_2", out_channels=2),
    )
    model = random_model(network("dense", case_map(2, 3, 9), *layers), np.random.default_rng(1))
    network_plan = plan(model, [BIG])
    beats, sources, expected = conv.start(network_plan, frames=5)
    run(conv.bench, beats, *sources)
    check(beats.values, expected, pool=False)
    assert steady(beats.cycles)


def test_conv_latency(conv):
    """A word taken in cycle t has its beat in t + 1 at the earliest, and is at ``word`` in t + 2; layer and tap
    are at hand."""
    beats, sources, _ = conv.start(plan_of("conv_padding", "pull"))
    run(conv.bench, beats, *sources)
    assert beats.cycles[0] - sources[0].taken[0] == 1
    ready = beats.states[: beats.states.index("beat")]
    assert ready == sorted(ready, reverse=True)  # wait_table, then wait_input: no tap is missing once there is one


def test_conv_counters(conv):
    """Every cycle is a beat or one wait; room is waited for only with the word there."""
    beats, sources, expected = conv.start(plan_of("conv_strides", "pull"), stall=0.5, room=0.5)
    run(conv.bench, beats, *sources, extra=0)
    assert beats.states.count("beat") == len(expected)
    assert {"wait_input", "wait_room"} <= set(beats.states)
    beats.states.clear()
    run(conv.bench, beats, *sources, cycles=50)
    assert set(beats.states) == {"wait_input"}


def test_restart(conv):
    """rst in the middle of a layer: tables, ring and counts begin anew."""
    beats, sources, _ = conv.start(plan_of("chain", "pull"))
    run(conv.bench, beats, *sources, cycles=150)
    beats, sources, expected = conv.start(plan_of("ternary", "raster"))
    run(conv.bench, beats, *sources)
    check(beats.values, expected, pool=False)


# The smallest ring

TIGHT = {("chain", "pull"): 32, ("chain", "raster"): 32, ("conv_padding_stride", "pull"): 8}
"""(case, order): words of the ring, exactly what ``hold`` tuples take."""


@pytest.fixture(scope="module", params=TIGHT)
def tight(request):
    name, order = request.param
    network_plan = plan_of(name, order)
    words = max(row["hold_words"] for row in memory_rows(network_plan)["layers"])
    assert words == TIGHT[request.param]
    rig = Rig(BIG.changed(tuple_words=words), pool=False)
    yield rig, network_plan
    rig.bench.close()


@pytest.mark.sample(2)
@pytest.mark.parametrize(("stall", "room"), [(0, 1), (0.4, 0.6)])
def test_conv_ring_of_hold_tuples(tight, stall, room):
    rig, network_plan = tight
    beats, sources, expected = rig.start(network_plan, stall=stall, room=room)
    run(rig.bench, beats, *sources)
    check(beats.values, expected, pool=False)


@pytest.mark.parametrize(("stall", "room"), [(0, 1), (0.4, 0.6)])
def test_pool_ring_of_hold_tuples(stall, room):
    """A 2 x 2 pool of a map 7 wide in raster order: a row and one more, 8 tuples of one word."""
    layers = (Conv(name="conv_1", out_channels=2, kernel=(1, 1)), Threshold(name="threshold_1"))
    layers += (MaxPool(name="pool_1", kernel=(2, 2), stride=(1, 1)), Dense(name="dense_1", out_channels=2))
    model = random_model(network("pool", case_map(5, 7, 2), *layers), np.random.default_rng(1))
    network_plan = plan(model, [BIG], CompileChoices(map_order="raster"))
    assert memory_rows(network_plan)["pool_layers"][0]["hold_words"] == 8
    rig = Rig(BIG.changed(pool_words=8), pool=True)
    beats, sources, expected = rig.start(network_plan, stall=stall, room=room)
    run(rig.bench, beats, *sources)
    check(beats.values, expected, pool=True)
    rig.bench.close()


# Inlets


@pytest.mark.sample(3)
@pytest.mark.parametrize("inlets", [("ring",), ("host",), ("ring", "loop"), ("host", "ring"), ("host", "ring", "loop")])
def test_each_layer_takes_its_own_inlet(inlets):
    """Words of a layer come from the inlet that its row names and from no other, whatever waits there; ``inlet`` says
    which one is being read."""
    network_plan = plan_of("chain", "pull")
    tables = memory_rows(network_plan)
    outlets = ("loop", "host") if "loop" in inlets else ("host",)
    npu = BIG.changed(inlets=inlets, outlets=outlets, buffer_words=16)
    draw = random.Random(len(inlets))
    count = len(tables["layers"])
    chosen = [draw.randrange(len(inlets)) for _ in range(count)]
    chosen[: len(inlets)] = reversed(range(len(inlets)))
    inputs = [{"words": row["words"], "source": number} for row, number in zip(tables["inputs"], chosen)]
    inputs = [{k: v for k, v in row.items() if k in memory_of(npu, "inputs").widths} for row in inputs]
    parts = stages(network_plan, pool=False)
    words = [
        [[draw.getrandbits(npu.array.kfp) for _ in range(s.inputs["words"])] for s in parts] for _ in range(FRAMES)
    ]
    with Bench(sequencer(Library(32), spec_of(npu, False))) as bench:
        assert {name.removesuffix("_valid") for name in bench.widths if name.endswith("_valid")} == {*inlets}
        bench.set(rst=1, last_layer=count - 1)
        load_tables(bench, npu, {**tables, "inputs": inputs}, "")
        bench["rst"] = 0
        sources = []
        for number, name in enumerate(inlets):
            parts_of_inlet = [part for frame in words for s, part in zip(chosen, frame) if s == number]
            data = [{"data": w} for part in parts_of_inlet for w in part]
            sources.append(Source(bench, f"{name}_", data, 0.3, seed=number))
        shown = []

        class Inlet(Agent):
            def look(self) -> None:
                taken = [name for name in inlets if bench[f"{name}_valid"] and bench[f"{name}_ready"]]
                assert len(taken) <= 1
                if taken:
                    shown.append(taken[0])
                    assert bench["inlet"] == ("host", "ring", "loop").index(taken[0])

        expected = loop(parts, words, npu.array.acc_bits)
        beats = Beats(bench, False, len(expected), 0.8)
        run(bench, beats, Inlet(), *sources)
        check(beats.values, expected, pool=False)
        assert shown == [inlets[s] for frame in words for s, part in zip(chosen, frame) for _ in part]
