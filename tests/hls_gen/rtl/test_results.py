"""Results unit: order of hls_gen.compiler.layout.result_layout, thresholds, raw values, credits. The array is played by
the test."""

import random
from dataclasses import dataclass, field

import numpy as np
import pytest

from bitloom.hls_gen.compiler.layout import result_layout
from bitloom.hls_gen.design.lanes import UNUSED
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.timing import CREDITS
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.results.results import results

from .bench import Agent, Bench, Sink, load, pack, run, steady

NPUS = {
    "ol_3_of_7": Npu.of(kfp=3, kgp=7, ol=3, acc_bits=9, layers=4, threshold_rows=64),
    "ol_1_of_5": Npu.of(kfp=3, kgp=5, ol=1, acc_bits=6, layers=4, threshold_rows=64),
    "ol_4_of_4": Npu.of(kfp=3, kgp=4, ol=4, acc_bits=11, layers=4, threshold_rows=64),
    "ol_1_of_1": Npu.of(kfp=3, kgp=1, ol=1, acc_bits=32, layers=4, threshold_rows=64),
}
DELAY = 5
"""Cycles from ``taken`` to ``result_valid``: in the array 1 + pe_latency."""


@dataclass(frozen=True)
class Layer:
    """One layer as the unit sees it."""

    kernels: int
    windows: int
    levels: int = 1
    double: bool = False
    raw: bool = False


LAYERS = {
    "all": [
        Layer(11, 3, levels=3, double=True),
        Layer(1, 4),
        Layer(5, 1, levels=2),
        Layer(9, 5, double=True, raw=True),
    ],
    "bits": [Layer(8, 6), Layer(6, 2, levels=1, double=True)],
    "raw": [Layer(7, 3, raw=True)],
    "long": [Layer(8, 4, levels=DELAY + 1), Layer(1, 3, levels=DELAY + 1, double=True)],
}


class Array(Agent):
    """Ends a pass of a window where there is room; its sums come DELAY cycles later and hold until the next."""

    def __init__(self, bench: Bench, passes: list[tuple[list[int], int]], stall: float, seed: int):
        self.bench, self.passes, self.stall, self.random = bench, passes, stall, random.Random(seed)
        self.npu_bits = bench.widths["results"] // len(passes[0][0])
        self.taken: list[int] = []
        self.room: list[int] = []
        self._line: list[int | None] = [None] * DELAY

    def drive(self) -> None:
        room = self.bench["room"]
        self.room.append(room)
        now = len(self.taken) if room and not self.done and self.random.random() >= self.stall else None
        self.bench["taken"] = int(now is not None)
        if now is not None:
            self.taken.append(self.bench.cycle)
        self._line.append(now)
        arrived = self._line.pop(0)
        self.bench["result_valid"] = int(arrived is not None)
        if arrived is not None:
            sums, offset = self.passes[arrived]
            mask = (1 << self.npu_bits) - 1
            self.bench["results"] = sum((s & mask) << k * self.npu_bits for k, s in enumerate(sums))
            if "result_offset" in self.bench:
                self.bench["result_offset"] = offset & mask

    @property
    def done(self) -> bool:
        return len(self.taken) == len(self.passes)


@dataclass
class Case:
    """Rows for the unit, what the array gives, what must come out."""

    npu: Npu
    rows: list[dict[str, int]] = field(default_factory=list)
    limits: list[np.ndarray] = field(default_factory=list)
    thresholds: list[list[int]] = field(default_factory=list)
    passes: list[tuple[list[int], int]] = field(default_factory=list)
    raw: list[tuple[list[int | None], int]] = field(default_factory=list)
    """Values (None: unused lane) and last."""
    bits: list[tuple[int, int]] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    """Of each pass."""

    def layer(self, layer: Layer, rng: np.random.Generator) -> None:
        """Row and thresholds of a layer."""
        npu, high = self.npu, (1 << self.npu.array.acc_bits - 1) - 1
        groups = npu.array.groups(layer.kernels)
        in_last = layer.kernels - (groups - 1) * npu.array.kgp
        self.rows.append(
            {
                "groups_minus_1": groups - 1,
                "last_units_minus_1": -(-in_last // npu.results.ol) - 1,
                "windows_minus_1": layer.windows - 1,
                "levels_minus_1": layer.levels - 1,
                "threshold_base": len(self.thresholds),
                "double": int(layer.double),
                "raw": int(layer.raw),
            }
        )
        limit = rng.integers(-high // 4, high // 4 + 1, layer.kernels * layer.levels)
        limit[0], limit[-1] = -high - 1, high  # always, never
        self.limits.append(limit)
        if not layer.raw:
            steps = result_layout(layer.kernels, layer.levels, npu.array.kgp, npu.results.ol)
            self.thresholds += np.where(steps == UNUSED, high, limit[steps]).tolist()

    def window(self, layer: Layer, limit: np.ndarray, map_last: bool, rng: np.random.Generator) -> None:
        """Sums of one window of a layer, and what comes out for it."""
        npu, quarter = self.npu, 1 << self.npu.array.acc_bits - 3
        steps = result_layout(layer.kernels, layer.levels, npu.array.kgp, npu.results.ol)
        values = np.zeros(npu.array.groups(layer.kernels) * npu.array.kgp, np.int64)
        for group in range(0, layer.kernels, npu.array.kgp):
            offset, sums = int(rng.integers(-quarter, quarter + 1)), rng.integers(-quarter, quarter + 1, npu.array.kgp)
            part = slice(group, group + npu.array.kgp)
            values[part] = (sums << layer.double) - offset
            if (
                not layer.raw and layer.levels == 1 and group + npu.array.kgp <= layer.kernels
            ):  # equal to the threshold: 1
                sums[1:2] = (limit[part][1:2] + offset) >> layer.double
                sums = np.clip(sums, -quarter, quarter)
                values[part] = (sums << layer.double) - offset
            self.passes.append((sums.tolist(), offset))
            self.steps.append(-(-min(npu.array.kgp, layer.kernels - group) // npu.results.ol) * layer.levels)
        for k, step in enumerate(steps):
            tuple_last = k == len(steps) - 1
            shown = values[step // layer.levels]  # (ol)
            if layer.raw:
                self.raw.append(
                    ([None if lane == UNUSED else int(v) for lane, v in zip(step, shown)], int(tuple_last and map_last))
                )
            else:
                verdicts = (shown >= limit[step]) & (step != UNUSED)
                self.bits.append((sum(int(v) << i for i, v in enumerate(verdicts)), int(tuple_last)))


def case(npu: Npu, layers: list[Layer], frames: int) -> Case:
    rng, made = np.random.default_rng(npu.array.kgp), Case(npu)
    for layer in layers:
        made.layer(layer, rng)
    for _ in range(frames):
        for layer, limit in zip(layers, made.limits):
            for window in range(layer.windows):
                made.window(layer, limit, window == layer.windows - 1, rng)
    return made


@pytest.fixture(scope="module", params=NPUS)
def built(request):
    npu = NPUS[request.param]
    with Bench(results(Library(32), npu)) as made:
        yield made, npu


def start(built, layers: str, frames: int, stall_in: float, stall_out: float) -> tuple[Bench, Case, Array, Sink, Sink]:
    """The unit with the rows of ``layers`` loaded, and the agents around it."""
    bench, npu = built
    made = case(npu, LAYERS[layers], frames)
    rows, thresholds = memory_of(npu, "results"), memory_of(npu, "thresholds")
    bench.set(rst=1, taken=0, result_valid=0, last_layer=len(made.rows) - 1)
    load(bench, rows, 0, [pack(rows, row) for row in made.rows])
    mask = (1 << npu.array.acc_bits) - 1
    load(
        bench,
        thresholds,
        0,
        [sum((t & mask) << k * npu.array.acc_bits for k, t in enumerate(row)) for row in made.thresholds],
    )
    bench["rst"] = 0
    names = ["data", "last"]
    return (
        bench,
        made,
        Array(bench, made.passes, stall_in, 1),
        Sink(bench, "raw_", names, len(made.raw), stall_out, seed=2),
        Sink(bench, "features_", names, len(made.bits), stall_out, seed=3),
    )


def check(made: Case, raw: Sink, bits: Sink) -> None:
    assert bits.words == made.bits
    width, mask = made.npu.array.acc_bits, (1 << made.npu.array.acc_bits) - 1
    for (word, last), (values, expected_last) in zip(raw.words, made.raw):
        shown = [word >> k * width & mask for k in range(made.npu.results.ol)]
        assert [s for s, v in zip(shown, values) if v is not None] == [v & mask for v in values if v is not None]
        assert last == expected_last


@pytest.mark.sample(10)
@pytest.mark.parametrize(("stall_in", "stall_out"), [(0, 0), (0.5, 0.5), (0, 0.8), (0.9, 0)])
@pytest.mark.parametrize("layers", LAYERS)
def test_equals_numpy(built, layers, stall_in, stall_out):
    bench, made, array, raw, bits = start(built, layers, 3, stall_in, stall_out)
    run(bench, array, raw, bits)
    check(made, raw, bits)


def test_one_step_a_cycle(built):
    """Where a pass has more steps than the way through the array takes cycles, steps leave without a gap, over
    windows, layers
    and frames. Latency 2 cycles from ``result_valid``."""
    bench, made, array, raw, bits = start(built, "long", 3, 0, 0)
    assert min(made.steps) == DELAY + 1
    run(bench, array, raw, bits)
    check(made, raw, bits)
    assert steady(bits.taken)
    assert bits.taken[0] == array.taken[0] + DELAY + 2


def test_credits(built):
    """With the output closed, passes end until ``room`` falls and nothing is lost; a pass that leaves gives its
    room back."""
    bench, made, array, raw, bits = start(built, "bits", 2, 0, 0)
    raw.closed = bits.closed = True
    run(bench, array, raw, bits, cycles=60)
    left = 2 // made.steps[0]  # passes of which all steps wait at the output: one in the values' register, one aside
    assert len(array.taken) == CREDITS + left
    assert bench["room"] == 0
    bits.closed = False
    run(bench, array, raw, bits)
    check(made, raw, bits)
    assert bench["room"] == 1


def test_restart(built):
    """rst in the middle of a layer: the unit begins at its first layer again."""
    bench, made, array, raw, bits = start(built, "all", 1, 0, 0)
    run(bench, array, raw, bits, cycles=25)
    bench, made, array, raw, bits = start(built, "bits", 2, 0.3, 0.3)
    run(bench, array, raw, bits)
    check(made, raw, bits)


# Without a pool unit the unit says where a map goes and ends; without outlet host there are no raw values.

WAYS = {
    "three": Npu.of(kfp=3, kgp=5, ol=2, acc_bits=9, layers=4, threshold_rows=64, pool=False,
                 inlets=("host", "ring", "loop"), outlets=("ring", "loop", "host")),
    "one": Npu.of(kfp=3, kgp=5, ol=2, acc_bits=9, layers=4, threshold_rows=64, pool=False, inlets=("ring",),
               outlets=("ring",)),
    "host": Npu.of(kfp=3, kgp=5, ol=2, acc_bits=9, layers=4, threshold_rows=64, pool=False, inlets=("host",),
                outlets=("host",)),
    "with_pool": Npu.of(kfp=3, kgp=5, ol=2, acc_bits=9, layers=4, threshold_rows=64, inlets=("ring", "loop"),
                     outlets=("ring", "loop")),
}  # fmt: skip


@pytest.fixture(scope="module", params=WAYS)
def way(request):
    npu = WAYS[request.param]
    with Bench(results(Library(32), npu)) as made:
        yield made, npu


@pytest.mark.sample(6)
@pytest.mark.parametrize(("stall_in", "stall_out"), [(0, 0), (0.5, 0.5), (0, 0.8)])
def test_the_side_of_a_map(way, stall_in, stall_out):
    """Map's end and outlet with every step, to the step; ports and fields only where they mean something."""
    bench, npu = way
    raw, frames = "host" in npu.ports.outlets, 3
    layers = [Layer(11, 3, levels=3, double=True), Layer(1, 4), Layer(5, 1, levels=2)]
    layers += [Layer(9, 5, raw=True)] * raw
    made, targets = case(npu, layers, frames), [2, 0, 1, 1]
    rows, thresholds = memory_of(npu, "results"), memory_of(npu, "thresholds")
    bench.set(rst=1, taken=0, result_valid=0, last_layer=len(layers) - 1)
    side = 0 if npu.pool_unit else npu.target_bits
    fields = set(rows.widths)
    assert (("target" in fields), ("raw" in fields)) == (side > 0, raw)
    assert ("features_side" in bench, "raw_valid" in bench) == (not npu.pool_unit, raw)
    whole = [{**row, "target": target % len(npu.ports.outlets)} for row, target in zip(made.rows, targets)]
    load(bench, rows, 0, [pack(rows, {k: v for k, v in row.items() if k in fields}) for row in whole])
    mask = (1 << npu.array.acc_bits) - 1
    limits = [sum((t & mask) << k * npu.array.acc_bits for k, t in enumerate(row)) for row in made.thresholds]
    load(bench, thresholds, 0, limits)
    bench["rst"] = 0
    sides = []
    for layer, row in list(zip(layers, whole)) * frames:
        steps = len(result_layout(layer.kernels, layer.levels, npu.array.kgp, npu.results.ol)) * (not layer.raw)
        for window in range(layer.windows):
            ends = [k == steps - 1 and window == layer.windows - 1 for k in range(steps)]
            sides += [(int(end) | (row["target"] << 1 if side else 0),) for end in ends]
    names = ["data", "last"] + ["side"] * (not npu.pool_unit)
    bits = Sink(bench, "features_", names, len(made.bits), stall_out, seed=3)
    sums = [Sink(bench, "raw_", ["data", "last"], len(made.raw), stall_out, seed=2)] * raw
    run(bench, Array(bench, made.passes, stall_in, 1), bits, *sums)
    assert len(sides) == len(made.bits)
    assert bits.words == [word + (() if npu.pool_unit else end) for word, end in zip(made.bits, sides)]
    if sums:
        bits.words = made.bits
        check(made, sums[0], bits)


def test_results_have_the_number_of_their_layer():
    """By it the addition finds its row: through all stages, while the next layer's results follow without a gap."""
    npu = Npu.of(engine="integer", feature_bits=4, weight_bits=2, shift_bits=0, kfp=2, kgp=2, ol=2, acc_bits=10,
              layers=8, multiplier_bits=2, skip_words=2)  # fmt: skip
    windows, memory = [3, 1, 4, 1, 2], memory_of(npu, "results")
    rows = [{**dict.fromkeys(memory.widths, 0), "windows_minus_1": count - 1, "high": 7} for count in windows]
    scales = {name: int(name.startswith("multiplier")) for name in memory_of(npu, "scales").widths}
    numbers = [number for number, count in enumerate(windows) for _ in range(count)] * 3
    values = [k % 7 for k in range(len(numbers))]
    with Bench(results(Library(32), npu)) as bench:
        for stall_in, stall_out in ((0, 0), (0.4, 0.4)):
            bench.set(rst=1, taken=0, result_valid=0, last_layer=len(rows) - 1)
            load(bench, memory, 0, [pack(memory, row) for row in rows])
            load(bench, memory_of(npu, "scales"), 0, [pack(memory_of(npu, "scales"), scales)])
            bench["rst"] = 0
            array = Array(bench, [([value, 0], 0) for value in values], stall_in, 1)
            found = Sink(bench, "features_", ["data", "side"], len(numbers), stall_out, seed=2)
            run(bench, array, found)
            assert found.words == list(zip(values, numbers))
