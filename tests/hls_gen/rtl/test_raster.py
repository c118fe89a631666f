"""Taps by counters in both sequencers: random geometries against a plain loop, without a row in any table."""

import random
from dataclasses import dataclass

import pytest

from bitloom.golden.window import Window
from bitloom.hls_gen.compiler.rows.layer_rows import LayerRows
from bitloom.hls_gen.compiler.rows.layer_rows import row as one_row
from bitloom.hls_gen.compiler.rows.memories import npu_columns
from bitloom.hls_gen.compiler.rows.sequencer import sequencer_rows
from bitloom.hls_gen.compiler.schedule import Raster, StageTables, schedule
from bitloom.hls_gen.compiler.schedule import Stage as ScheduleStage
from bitloom.hls_gen.compiler.sequencer_taps import OnSequencer, SequencerTaps
from bitloom.hls_gen.compiler.taps import Taps
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.rtl.generate import generate
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.sequencer.sequencer import sequencer
from bitloom.overlay.virtual.sim import lint
from tests.networks import few_and_many
from tests.rows import by_row

from .bench import Bench, Source, run
from .test_sequencer import Beats, Rows, Stage, check, load_tables, loop, pool_loop, spec_of

SIZES = {"layers": 8, "tuple_words": 512, "pool_words": 512, "kernel_rows": 4096}
TABLES = dict.fromkeys(("taps", "olds", "jumps", "pool_taps", "pool_olds"), 2)
NPU = Npu.of(kfp=5, kgp=4, pfp=3, ol=2, acc_bits=20, raster=True, **SIZES, **TABLES)
"""No layer of several taps fits these tables."""
FRAMES, CASES = 2, 12


@dataclass
class Plan:
    """Layers of one sequencer, in place of hls_gen.compiler.plan's."""

    tables: Rows
    stages: list[Stage]


def span(draw: random.Random, size: int) -> tuple[int, int, int, int]:
    kernel = draw.randint(1, 5)
    before, after = draw.randint(0, kernel - 1), draw.randint(0, kernel - 1)
    if kernel > size + before + after:
        return size, draw.randint(1, 3), 0, 0
    return kernel, draw.randint(1, 6), before, after


def geometry(draw: random.Random, weighted: bool, order: str = "raster") -> StageTables:
    """Any window on a map up to 9 x 9; in raster order one that counters serve. Sometimes it only makes what a next
    window reads."""
    while True:
        size = draw.randint(1, 9), draw.randint(1, 9)
        (kh, sy, top, bottom), (kw, sx, left, right) = span(draw, size[0]), span(draw, size[1])
        window = Window(kernel=(kh, kw), stride=(sy, sx), padding=(top, left, bottom, right))
        chain = [ScheduleStage(name="case", weighted=weighted, height=size[0], width=size[1], window=Taps(window))]
        rows, columns = chain[0].output_size
        if draw.random() < 0.3 and min(rows, columns) > 2:
            left_out = Window(kernel=(1, 2), stride=(2, 2))
            chain.append(
                ScheduleStage(
                    name="next", weighted=False, height=rows, width=columns, window=Taps(left_out), reads="case"
                )
            )
        tables = schedule(chain, order).tables[0]
        if order == "pull" or Raster.of(tables) is not None:
            return tables


def raster_plan(seed: int, pool: bool, orders: tuple[str, ...] = ("raster",)) -> Plan:
    """1 to 8 layers in orders by turns; the convolution's with 1 to 3 groups, words and visits."""
    draw = random.Random(seed)
    parts, layers = [], []
    row_base = 0
    for number in range(draw.randint(len(orders), 8)):
        part = geometry(draw, not pool, orders[number % len(orders)])
        words = draw.randint(1, 3)
        groups = 1 if pool else draw.randint(1, 3)
        visits = 1 if pool else draw.randint(1, 2)
        if pool:
            fields = {"target": draw.randint(0, 1)}
        else:
            rows = part.stage.window.taps * words * visits
            fields = {"kernel_base": row_base, "group_rows": rows, "groups_minus_1": groups - 1}
            fields |= {"tap_offset": draw.getrandbits(8), "twice": visits - 1}
            row_base += rows * groups
        layers.append(layer_rows(part, words, visits, pool, fields, reread=groups > 1))
        parts.append((part, visits))
    prefix = "pool_" if pool else ""
    for layer in layers:
        row = layer.row(f"{prefix}layers")
        assert (layer.count(f"{prefix}flags") == 0) == bool(row["by_counters"] or row["direct"])
        assert not (row["by_counters"] and row["direct"])
        assert row["hold_words"] + row["words_minus_1"] + 1 <= 512
    assert row_base < NPU.array.kernel_rows
    return plan_of(layers, parts, prefix)


def layer_rows(part, words, visits, pool, fields, *, reread=False, npu=NPU) -> LayerRows:
    """Rows of a sequencer for a layer, with more ``fields`` in the row of memory ``layers``."""
    reader = spec_of(npu, pool).sequencer
    taps = SequencerTaps(part, reader.kind, visits, reread)
    rows = sequencer_rows(OnSequencer(sequencer=reader, taps=taps, words=words, tap_rows=words * visits))
    layers = "pool_layers" if pool else "layers"
    return LayerRows("case", {**rows, layers: {**rows[layers], **one_row(fields)}})


def plan_of(layers, parts, prefix) -> Plan:
    """Layers one behind the other."""
    tables = by_row(npu_columns(layers, NPU, [{}] * len(layers)))
    rows = zip(tables[f"{prefix}layers"], tables[f"{prefix}inputs"], parts)
    return Plan(tables, [Stage(row, part, visits, inputs) for row, inputs, (part, visits) in rows])


def start(bench: Bench, npu: Npu, plan: Plan, pool: bool, stall: float = 0, room: float = 1):
    """Tables loaded and the source ready: (the collector, the source, what must come)."""
    draw = random.Random(1)
    bits = present(npu.pool_unit).pfp if pool else npu.array.kfp
    words = [[[draw.getrandbits(bits) for _ in range(s.inputs["words"])] for s in plan.stages] for _ in range(FRAMES)]
    bench.set(rst=1, last_layer=len(plan.stages) - 1)
    for name in ("in",) if pool else ("host", "loop"):
        bench[f"{name}_valid"] = 0
    load_tables(bench, npu, plan.tables, "pool_" if pool else "")
    bench["rst"] = 0
    expected = pool_loop(plan.stages, words) if pool else loop(plan.stages, words, npu.array.acc_bits)
    stream = [{"data": w} for frame in words for layer in frame for w in layer]
    source = Source(bench, "in_" if pool else "host_", stream, stall)
    return Beats(bench, pool, len(expected), room), source, expected


@pytest.fixture(scope="module", params=[False, True], ids=["conv", "pool"])
def rig(request):
    bench = Bench(sequencer(Library(32), spec_of(NPU, request.param)))
    yield bench, request.param
    bench.close()


@pytest.mark.sample(12)
@pytest.mark.parametrize(("stall", "room"), [(0, 1), (0.3, 0.6), (0.8, 1)])
@pytest.mark.parametrize("seed", range(CASES))
def test_equals_loop(rig, seed, stall, room):
    bench, pool = rig
    beats, source, expected = start(bench, NPU, raster_plan(seed, pool), pool, stall, room)
    run(bench, beats, source)
    check(beats.values, expected, pool)


@pytest.mark.sample(8)
@pytest.mark.parametrize("seed", range(CASES))
def test_one_beat_a_cycle(rig, seed):
    """Over windows, groups, layers and frames; the ring holds a frame, so that nothing waits for words."""
    bench, pool = rig
    plan = raster_plan(100 + seed, pool)
    beats, source, expected = start(bench, NPU, plan, pool)
    beats.room = 0  # the ring fills while the first window can't end
    run(bench, beats, source, cycles=1500)
    before = len(beats.cycles)
    beats.room = 1
    run(bench, beats, source, extra=5)
    check(beats.values, expected, pool)
    if not pool:
        assert "wait_table" not in beats.states[beats.states.index("beat") :]
    words = sum(s.inputs["words"] for s in plan.stages)
    frame = len(expected) // FRAMES
    if words <= 512:
        assert beats.cycles[frame - 1] - beats.cycles[before] + 1 == frame - before


@few_and_many(4, CASES)
@pytest.mark.parametrize("pool", [False, True], ids=["conv", "pool"])
def test_counters_and_tables_by_turns(pool, count):
    npu = NPU.changed(taps=8192, olds=8192, jumps=2048, pool_taps=2048, pool_olds=2048)
    with Bench(sequencer(Library(32), spec_of(npu, pool))) as bench:
        for seed in range(count):
            plan = raster_plan(seed, pool, ("raster", "pull"))
            beats, source, expected = start(bench, npu, plan, pool, stall=0.2, room=0.8)
            run(bench, beats, source)
            check(beats.values, expected, pool)


@pytest.mark.sample(2)
@pytest.mark.parametrize("pool", [False, True], ids=["conv", "pool"])
@pytest.mark.parametrize(("stall", "room"), [(0, 1), (0.4, 0.6)])
def test_ring_of_hold_tuples(pool, stall, room):
    """2 x 2 windows of a map 7 wide: a row and one more, 8 tuples; 6 of them are claimed at once."""
    npu = NPU.changed(tuple_words=8, pool_words=8)
    window = Window(kernel=(2, 2))
    (part,) = schedule(
        [ScheduleStage(name="case", weighted=not pool, height=5, width=7, window=Taps(window))], "raster"
    ).tables
    fields = {"target": 0} if pool else {"kernel_base": 0, "group_rows": 0, "groups_minus_1": 0, "tap_offset": 3}
    plan = plan_of([layer_rows(part, 1, 1, pool, fields, npu=npu)], [(part, 1)], "pool_" if pool else "")
    assert (plan.stages[0].row["hold_words"], plan.stages[0].row["gap_words"]) == (8, 5)
    with Bench(sequencer(Library(32), spec_of(npu, pool))) as bench:
        beats, source, expected = start(bench, npu, plan, pool, stall, room)
        run(bench, beats, source)
        check(beats.values, expected, pool)


INTEGER = {"engine": "integer", "feature_bits": 8, "weight_bits": 8, "shift_bits": 0, "acc_bits": 32}


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", [{}, {"accumulators": 4}, {"stream_weights": True}, INTEGER], ids=str)
def test_lint(kind):
    assert lint(generate(Design(name="raster", npus=(Npu.of(raster=True, **kind),))).text) == []
