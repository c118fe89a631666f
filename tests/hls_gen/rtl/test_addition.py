"""Addition behind the activation against golden: ties, saturation, ends; words of the skip store in steps."""

import random
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from bitloom.golden.encoding import signed
from bitloom.golden.layer import Map
from bitloom.golden.layers.add import Add, Pairwise
from bitloom.golden.layers.multiply import MultiplyMaps
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.memories.results import numbers_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.results import ADDITION
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.results.addition import addition
from bitloom.hls_gen.rtl.results.step import number_bits
from tests.npus import integer_npu

from .bench import Bench, Sink, Source, load, pack, run

PRODUCTS = (2, 4, 5)
"""Layers of which a product of maps is computed, where the NPU does that."""
LATENCY = 8
"""Cycles from a step to its sum, where what is added is there."""


def npu(feature_bits: int, kfp: int, ol: int, **more: Any) -> Npu:
    return integer_npu(feature_bits, 2, 32, kfp=kfp, kgp=16, ol=ol, layers=8, skip_words=9, **more)


IN_LUTS = {"lut_products": ("addition",)}
NPUS = {
    "f9_k8_o2": npu(9, 8, 2, pool=False, **IN_LUTS),
    "f18_k3_o1": npu(18, 3, 1),
    "f8_k4_o4": npu(8, 4, 4, pool=False),
    "f5_k2_o4": npu(5, 2, 4, add_factor_bits=9, add_bias_bits=12),
    "f2_k3_o1_small": npu(2, 3, 1, add_factor_bits=2, add_bias_bits=2),
    "f4_k10_o2": npu(4, 10, 2, add_factor_bits=6, add_bias_bits=20),
    "f9_k4_o2_products": npu(9, 4, 2, map_products=1),
    "f8_k4_o2_products": npu(8, 4, 2, add_factor_bits=5, add_bias_bits=12, map_products=1, **IN_LUTS),
}


@dataclass
class Play:
    """Steps that go in, and those that must come out."""

    rows: list[dict[str, int]]
    steps: list[dict[str, int]] = field(default_factory=list)
    words: list[dict[str, int]] = field(default_factory=list)
    sums: list[tuple[int, ...]] = field(default_factory=list)


def layers(one: Npu, draw: random.Random) -> list[tuple[Pairwise, dict[str, np.ndarray]] | None]:
    """The addition of each of the NPU's layers; None for those that add nothing."""
    most = (1 << one.value("add_factor_bits") - 1) - 1
    wide = 1 << one.value("add_bias_bits") - 1
    f = one.array.feature_bits
    shifts = one.most_add_shift
    low = -(1 << min(f, 9) - 1)
    clips = [None, None, (-1, 1), None, (0, -low - 1), None, None, None]  # halves are seen of either sign
    additions: list[tuple[Pairwise, dict[str, np.ndarray]] | None] = []
    for number in range(one.loader.layers):
        add: Pairwise = Add(name="add", encoding=signed(min(f, 9)), clip=clips[number % 8], inputs=("a", "b"))
        if number % 8 == 0:  # without a shift nothing is rounded
            factors = [draw.choice([-1, 1]) for _ in range(2)]
            bias = draw.randrange(-2, 2)
            shift = 0
        elif number % 4 == 0:  # ends
            factors = [draw.choice([-most, most]) for _ in range(2)]
            bias = draw.choice([-wide, wide - 1])
            shift = draw.choice([0, shifts - 1, shifts])
        elif number % 4 == 1:  # halves: sums are odd multiples of 2^(shift - 1)
            shift = draw.randrange(1, min(one.value("add_factor_bits"), one.value("add_bias_bits"), shifts))
            factors = [1 << shift - 1, -(1 << shift - 1)]
            bias = draw.choice([-1, 1]) << shift - 1
        elif number % 4 == 2:  # results of a few bits
            factors = [draw.randrange(-most, most + 1) for _ in range(2)]
            bias = draw.randrange(-wide, wide)
            shift = min(
                shifts,
                draw.randrange(one.value("add_factor_bits") - 1, one.value("add_factor_bits") + 2),
            )
        else:
            additions.append(None)
            continue
        if one.multiplies_maps and number in PRODUCTS:
            add = MultiplyMaps(name="product", encoding=add.encoding, clip=add.clip, inputs=add.inputs)
            factors = [abs(factors[0])]
            bias = max(bias, ~bias)
        arrays = {"multiplier": np.array(factors), "bias": np.array([bias]), "shift": np.array([shift])}
        additions.append((add, arrays))
    return additions


def row_of(one: Npu, layer: tuple[Pairwise, dict[str, np.ndarray]] | None) -> dict[str, int]:
    """The row of memory ``additions``."""
    if layer is None:
        return numbers_of(one, ADDITION.of_layer, {})
    add, arrays = layer
    product = isinstance(add, MultiplyMaps)
    kept, skipped = (int(factor) for factor in ([0] if product else []) + arrays["multiplier"].tolist())
    numbers = {
        "multiplies": int(product),
        "factor_kept": kept,
        "factor_skipped": skipped,
        "bias": int(arrays["bias"][0]),
        "shift": int(arrays["shift"][0]),
        "low": add.low,
        "high": add.high,
    }
    return numbers_of(one, ADDITION.of_layer, numbers)


def features(one: Npu, shape: tuple[int, ...], draw: np.random.Generator) -> np.ndarray:
    """Values of which many are the ends, and many small."""
    top = 1 << one.array.feature_bits - 1
    kinds = [draw.integers(-top, top, shape), draw.choice([-top, top - 1], shape), draw.integers(-2, 2, shape)]
    return np.choose(draw.integers(0, 3, shape), kinds)


def packed(one: Npu, values: np.ndarray) -> int:
    """Lanes side by side, lane 0 low."""
    f = one.array.feature_bits
    return sum((int(value) & ((1 << f) - 1)) << k * f for k, value in enumerate(values))


def play(one: Npu, tuples: int, seed: int) -> Play:
    """Tuples of any layers, one after another, of 1 to 7 steps each."""
    draw = random.Random(seed)
    numbers = np.random.default_rng(seed)
    of_layers = layers(one, draw)
    traffic = Play([row_of(one, layer) for layer in of_layers])
    side = one.result_side_bits
    for _ in range(tuples):
        number, steps = draw.randrange(one.loader.layers), draw.randrange(1, 8)
        kept, skipped = (features(one, (steps, one.results.ol), numbers) for _ in range(2))
        wanted = kept
        if of_layers[number] is not None:
            add, arrays = of_layers[number]
            source = Map(height=1, width=1, channels=kept.size, encoding=signed(one.array.feature_bits))
            maps = [values.reshape(1, 1, 1, -1) for values in (kept, skipped)]
            wanted = add.forward_of(maps, arrays, [source, source]).reshape(kept.shape)
            lanes = skipped.ravel()
            for low in range(0, lanes.size, one.array.kfp):
                word = np.zeros(one.array.kfp, np.int64) - 1  # what is left of the last word means nothing
                word[: lanes[low : low + one.array.kfp].size] = lanes[low : low + one.array.kfp]
                traffic.words.append({"data": packed(one, word)})
        for k in range(steps):
            last = int(k == steps - 1)
            mark = draw.getrandbits(side) if side else 0
            above = int(of_layers[number] is not None) << number_bits(one) | number
            traffic.steps.append({"data": packed(one, kept[k]), "last": last, "side": above << side | mark})
            traffic.sums.append((packed(one, wanted[k]), last, *([mark] if side else [])))
    return traffic


QUICK = ("f9_k8_o2", "f18_k3_o1", "f5_k2_o4", "f9_k4_o2_products")


@pytest.fixture(
    scope="module", params=[name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in NPUS]
)
def built(request):
    one = NPUS[request.param]
    with Bench(addition(Library(32), one)) as bench:
        yield bench, one


def is_added(one: Npu, step: dict[str, int]) -> int:
    """Whether something is added to a step."""
    return step["side"] >> one.result_side_bits + number_bits(one)


def agents(bench: Bench, one: Npu, traffic: Play, stalls: tuple[float, float, float]) -> list[Source | Sink]:
    """Of the steps, the words of the skip store and the sums."""
    memory = memory_of(one, "additions")
    load(bench, memory, 0, [pack(memory, row) for row in traffic.rows])
    names = ["data", "last", *(["side"] if one.result_side_bits else [])]
    sources = [Source(bench, "in_", traffic.steps, stalls[0]), Source(bench, "skip_", traffic.words, stalls[1], seed=2)]
    return [*sources, Sink(bench, "features_", names, len(traffic.sums), stalls[2])]


@pytest.mark.sample(6)
@pytest.mark.parametrize("stalls", [(0, 0, 0), (0.4, 0.4, 0.4), (0, 0.8, 0), (0.8, 0, 0), (0, 0, 0.8)])
def test_equals_golden(built, stalls):
    bench, one = built
    bench.reset()
    traffic = play(one, 60, int(10 * sum(stalls)))
    steps, words, sums = agents(bench, one, traffic, stalls)
    run(bench, steps, words, sums)
    assert sums.words == traffic.sums


def test_rate_and_latency(built):
    """A step a cycle, where words of the store have as many lanes at least. A step to which nothing is added leaves as
    it comes, when those before it have left."""
    bench, one = built
    bench.reset()
    traffic = play(one, 40, 7)
    steps, words, sums = agents(bench, one, traffic, (0, 0, 0))
    run(bench, steps, words, sums)
    if one.results.ol <= one.array.kfp:
        adds = [is_added(one, step) for step in traffic.steps]
        assert sums.taken == [cycle + LATENCY * added for cycle, added in zip(steps.taken, adds)]
        waits = [1 + (LATENCY + 1) * (before > after) for before, after in pairwise(adds)]
        assert [after - before for before, after in pairwise(steps.taken)] == waits


def test_a_step_waits_for_its_word(built):
    """It says so, steps before it go on, and those behind it wait."""
    bench, one = built
    bench.reset()
    traffic = play(one, 60, 3)
    steps, _, sums = agents(bench, one, traffic, (0, 0, 0))
    before = next(k for k, step in enumerate(traffic.steps) if is_added(one, step))
    bench["skip_valid"] = 0
    sums.expect = before
    run(bench, sums, steps, cycles=before + 20)
    assert sums.words == traffic.sums[:before]
    assert (len(steps.taken), bench["waits"]) == (before + 1, 1)
