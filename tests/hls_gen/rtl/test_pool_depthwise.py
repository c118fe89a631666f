"""Pool unit with weights against golden: maxima, sums and depthwise convolutions, word by word, chosen per window; and
what makes features of its sums, for every number of values that an average may have."""

from itertools import cycle

import numpy as np
import pytest

from bitloom.golden.encoding import signed
from bitloom.golden.layer import Map
from bitloom.golden.layers.pool import MaxPool, SumPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.rounding import rounded_quotient
from bitloom.hls_gen.compiler.rows.pool_unit import reciprocals
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.pool_unit import LARGEST, PRODUCTS
from bitloom.hls_gen.design.widths import COUNT_BITS
from bitloom.hls_gen.rtl.pool_unit.pool_results import pool_results
from bitloom.hls_gen.rtl.pool_unit.pool_unit import pool_unit
from bitloom.hls_gen.rtl.primitives.memory import Library
from tests.npus import integer_npu

from .bench import Bench, Sink, Source, load, pack, run, steady
from .pool_units import FOLDINGS, PFP, PoolWindow, Taps, check_pool_unit, packed

LANES = {"kfp": 2, "kgp": 6, "pfp": 2, "ol": 2, "multiplier_bits": 31, "depthwise": True}
SIZES = {"pool_words": 16, "pool_kernel_rows": 32, "pool_scale_rows": 8, "layers": 8}
NPU = integer_npu(6, 5, 19, **LANES, **SIZES, half_even=1, round_twice=1)
LOW = -(1 << NPU.array.feature_bits - 1)
HIGH = (1 << NPU.array.feature_bits - 1) - 1
NPUS = {
    f"{name}_{PFP // ol}_steps": NPU.changed(**folding, ol=ol)
    for (name, folding), ol in zip(FOLDINGS.items(), cycle([6, 3, 2, 1]))
}
"""By folding, and by steps of results in a word that leaves."""
NPUS["narrow_sums"] = NPU.changed(**FOLDINGS["3x3_taps_3_on_a_lane"], acc_bits=15)
"""Sums of a beat have more bits than those of a window."""


def weights_of(npu: Npu) -> np.ndarray:
    """(rows, values of a beat): weights."""
    shape = (present(npu.pool_weights).rows, present(npu.pool_unit).beat_lanes)
    weights = np.random.default_rng(5).integers(-16, 16, shape)
    weights[0] = -16
    weights[1:4] = np.resize([[-16, 15], [15, -16], [0, 1]], (3, shape[1]))
    return weights


def window(rng: np.random.Generator, npu: Npu, beats: int | None, words: int) -> PoolWindow:
    """A window of 1 to 127 beats of each word, of no more products than sums have room for."""
    reduction = npu.reductions[rng.integers(0, len(npu.reductions))]
    bits, sum_bits = npu.array.feature_bits, npu.array.acc_bits
    beat = present(npu.pool_unit).beat
    largest = (-LOW << npu.array.weight_bits - 1) * beat.most_rows * beat.columns  # sum of a beat's products
    room = (1 << sum_bits - 1) - 1
    counts = [count for count in (1, 2, 3, 9, 127) if reduction is not PRODUCTS or count * largest <= room]
    beats = beats or int(rng.choice(counts))
    beside = reduction.beside.value(bits) if reduction.beside else 0
    taps = Taps(rng, npu, (beats, words), reduction, low=LOW, high=HIGH, beside=beside)
    marks = {each.mark: int(each is reduction) for each in npu.reductions if each.mark} | taps.ports(npu)
    marks["average"] |= marks["depthwise"] & int(rng.integers(0, 2))
    last_piece = int(rng.integers(0, npu.pool_word_steps))
    if npu.pool_last_piece_bits:
        marks["last_piece"] = last_piece
    weights = weights_of(npu)
    rows = rng.integers(0, len(weights), (beats, words))
    layer = MaxPool if reduction is LARGEST else SumPool
    sums = taps.reduced(layer, weights[rows] if reduction is PRODUCTS else None)
    return PoolWindow(
        words=taps.words(bits),
        ports=lambda beat, word: {"taps": beat + 1, "kernel_row": int(rows[beat, word]), **marks},
        out=[packed(word, sum_bits) for word in sums],
        above=(beats if reduction.divides else 1) | last_piece << COUNT_BITS,
    )


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", NPUS)
def test_pool_unit_with_weights(name: str) -> None:
    npu = NPUS[name]
    with Bench(pool_unit(Library(32), npu)) as bench:
        rows = [packed(row, npu.array.weight_bits) for row in weights_of(npu)]
        load(bench, memory_of(npu, "pool_kernels"), 0, rows)
        check_pool_unit(bench, npu, window, 16)


LAYERS = [None, "once", "even", "twice", None, "once"]
"""How the layers round; None: no depthwise convolution, but averages and maxima."""
STEPS = 3
"""Of a tuple."""


def scales(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Bias, multiplier and shift of the lanes of each row of memory ``pool_scales``."""
    shape = (present(NPU.pool_weights).scale_rows, NPU.results.ol)
    drawn = {"bias": (-99, 99), "multiplier": (1 << 25, 1 << 29), "shift": (31, 34)}
    return {name: rng.integers(*ends, shape) for name, ends in drawn.items()}


def limits(layer: int) -> tuple[int, int]:
    """Smallest and largest result of a layer."""
    return (LOW, HIGH) if LAYERS[layer] is None else (-20, 19 + layer)


def features(sums: np.ndarray, layer: int, arrays_of_layers: dict[str, np.ndarray], counts: np.ndarray) -> np.ndarray:
    """Golden's results for (tuples, STEPS, OL) sums of so many values."""
    rounding = LAYERS[layer]
    if rounding is None:
        return rounded_quotient(sums, counts[:, None, None])
    act = Requantise(name="act", encoding=signed(NPU.array.feature_bits), rounding=rounding, clip=limits(layer))
    arrays = {name: values[layer : layer + STEPS].ravel() for name, values in arrays_of_layers.items()}
    source = Map(height=1, width=1, channels=STEPS * NPU.results.ol, encoding=signed(NPU.array.acc_bits))
    return act.forward(sums.reshape(len(sums), 1, 1, -1), arrays, source).reshape(sums.shape)


def loaded(bench: Bench, arrays: dict[str, np.ndarray]) -> None:
    """Fill the memories of the unit: the scales of layer n begin at row n."""
    load(bench, memory_of(NPU, "reciprocals"), 0, reciprocals(NPU.reciprocal_bits).tolist())
    memory = memory_of(NPU, "pool_scales")
    lanes = [(name, lane) for name in arrays for lane in range(NPU.results.ol)]
    rows = range(present(NPU.pool_weights).scale_rows)
    load(bench, memory, 0, [pack(memory, {f"{n}_{k}": int(arrays[n][row, k]) for n, k in lanes}) for row in rows])
    memory = memory_of(NPU, "pool_results")
    for number, rounding in enumerate(LAYERS):
        low, high = limits(number)
        row = {"depthwise": rounding is not None, "scale_base": number, "low": low, "high": high}
        row |= {"half_even": rounding == "even", "round_twice": rounding == "twice"}
        load(bench, memory, number, [pack(memory, row)])
    bench["last_layer"] = len(LAYERS) - 1
    bench.reset()


@pytest.fixture(scope="module")
def unit():
    with Bench(pool_results(Library(32), NPU)) as bench:
        yield bench


@pytest.mark.parametrize("stall", [0, 0.5])
def test_features_of_sums(unit, stall):
    """Layer after layer, round and round, in every way to round; averages of 1 to 127 values, half of them halves or
    the nearest that are none."""
    rng = np.random.default_rng(7)
    arrays = scales(rng)
    steps, expected = [], []
    loaded(unit, arrays)
    for number in [*range(len(LAYERS))] * 2:
        tuples = 127 if LAYERS[number] is None else 20
        counts = np.arange(1, tuples + 1)
        sums = rng.integers(
            LOW * counts[:, None, None], HIGH * counts[:, None, None] + 1, (tuples, STEPS, NPU.results.ol)
        )
        if LAYERS[number] is None:
            near = (
                rng.integers(LOW, HIGH, (tuples, STEPS, NPU.results.ol)) * counts[:, None, None]
                + counts[:, None, None] // 2
            )
            sums = np.where(rng.random(sums.shape) < 0.5, near + rng.integers(-1, 2, sums.shape), sums)
            sums = np.clip(sums, LOW * counts[:, None, None], HIGH * counts[:, None, None])
        else:
            sums *= 40
        wanted = features(sums, number, arrays, counts)
        for t, k in np.ndindex(tuples, STEPS):
            side = int(t == tuples - 1) | int(counts[t]) << NPU.map_mark_bits
            last = int(k == STEPS - 1)
            steps.append({"data": packed(sums[t, k], NPU.array.acc_bits), "last": last, "side": side})
            expected.append((packed(wanted[t, k], NPU.array.feature_bits), last))
    sink = Sink(unit, "features_", ("data", "last"), expect=len(expected), stall=stall)
    run(unit, Source(unit, "in_", steps, stall=stall), sink)
    assert sink.words == expected
    assert stall or steady(sink.taken)
