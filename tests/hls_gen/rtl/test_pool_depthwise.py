"""Pool unit with weights against golden: maxima, sums and depthwise convolutions, word by word, chosen per window; and
what makes features of its sums, for every number of values that an average may have."""

import numpy as np
import pytest

from bitloom.golden.encoding import signed
from bitloom.golden.layer import Map
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.rounding import rounded_quotient
from bitloom.hls_gen.compiler.rows.pool_unit import reciprocals
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.timing import DEPTHWISE_LATENCY
from bitloom.hls_gen.rtl.pool_unit.pool_results import pool_results
from bitloom.hls_gen.rtl.pool_unit.pool_unit import pool_unit
from bitloom.hls_gen.rtl.primitives.memory import Library
from tests.npus import integer_npu

from .bench import Bench, Sink, Source, load, pack, run, steady
from .pool_units import PoolBeat, PoolUnitTests, beats_of, marks_of, packed, side_of

LANES = {"kfp": 2, "kgp": 5, "pfp": 2, "ol": 2, "multiplier_bits": 31, "depthwise": True}
SIZES = {"pool_words": 16, "pool_kernel_rows": 32, "pool_scale_rows": 8, "layers": 8}
NPU = integer_npu(6, 5, 19, **LANES, **SIZES, half_even=1, round_twice=1)
LATENCY = 1 + DEPTHWISE_LATENCY + 2
"""Cycles from the beat to the word at the output: one, the product's, and the FIFO's two."""
LOW = -(1 << NPU.array.feature_bits - 1)
HIGH = (1 << NPU.array.feature_bits - 1) - 1
WEIGHTS = np.random.default_rng(5).integers(-16, 16, (present(NPU.pool_weights).rows, present(NPU.pool_unit).pfp))
WEIGHTS[:4] = [[-16, 15], [15, -16], [-16, -16], [0, 1]]


@pytest.fixture(scope="module")
def built():
    with Bench(pool_unit(Library(32), NPU)) as bench:
        load(bench, memory_of(NPU, "pool_kernels"), 0, [packed(row, NPU.array.weight_bits) for row in WEIGHTS])
        yield bench


def windows(
    count: int, seed: int, words: int | None = None, taps: int | None = None
) -> tuple[list[PoolBeat], list[int]]:
    """(beats, words that must come out) of windows of 1 to 127 taps, tuples of 1 to 16 words."""
    rng = np.random.default_rng(seed)
    beats, out = [], []
    for window in range(count):
        n_taps, n_words = taps or int(rng.choice([1, 2, 3, 9, 127])), words or int(rng.choice([1, 2, 5, 16]))
        average, depthwise = (int(v) for v in rng.integers(0, 2, 2))
        shape = (n_taps, n_words, present(NPU.pool_unit).pfp)
        tuples = rng.choice([LOW, HIGH], shape) if rng.random() < 0.3 else rng.integers(LOW, HIGH + 1, shape)
        rows = rng.integers(0, len(WEIGHTS), (n_taps, n_words))
        marks = marks_of(n_words, window)
        words_of_taps = [[packed(word, NPU.array.feature_bits) for word in tap] for tap in tuples]
        kind = {"average": average, "depthwise": depthwise}
        beats += beats_of(
            words_of_taps,
            marks,
            lambda tap, k, rows=rows, kind=kind: {"taps": tap + 1, "kernel_row": int(rows[tap, k]), **kind},
        )
        if depthwise:
            result = (tuples * WEIGHTS[rows]).sum(axis=0)
        else:
            result = tuples.sum(axis=0) if average else tuples.max(axis=0)
        number = n_taps if average and not depthwise else 1
        above = present(NPU.pool_unit).pfp * NPU.array.acc_bits
        sides = [side_of(mark) | number << NPU.pool_side_bits for mark in marks]
        out += [packed(word, NPU.array.acc_bits) | side << above for word, side in zip(result, sides)]
    return beats, out


class TestDepthwisePoolUnit(PoolUnitTests):
    npu = NPU
    windows = staticmethod(windows)
    count = 16
    latency = LATENCY
    inside = 9


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
    """What golden makes of (tuples, STEPS, OL) sums of so many values."""
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
