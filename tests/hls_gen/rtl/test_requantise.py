"""Integer activation against golden: ties, saturation, every shift; a block of its own around it."""

import random
from dataclasses import dataclass, replace

import numpy as np
import pytest

from bitloom.golden.encoding import signed, unsigned
from bitloom.golden.layer import Map
from bitloom.golden.layers.requantise import MAX_SHIFT, Requantise
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.results import REQUANTISATION
from bitloom.hls_gen.rtl.primitives.block import Block
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.pipeline import Ready
from bitloom.hls_gen.rtl.results.requantise import requantise
from bitloom.hls_gen.rtl.results.step import Step, give
from bitloom.overlay.virtual.sim import lint
from tests.npus import integer_npu

from .bench import Bench, Sink, Source, run, steady, text_of

LATENCY = 6
"""Cycles from a step to its features; a raw value is there after one."""


def npu(
    feature_bits: int, acc_bits: int, ol: int, multiplier_bits: int = 16, fraction: int = 0, **roundings: int
) -> Npu:
    size = {"kfp": 1, "kgp": 4, "ol": ol, "multiplier_bits": multiplier_bits, "bias_fraction_bits": fraction}
    return integer_npu(feature_bits, 2, acc_bits, **size, **roundings)


NPUS = {
    "f8_a32": npu(8, 32, 1),
    "f8_a22": npu(8, 22, 3),
    "f5_a12": npu(5, 12, 4),
    "f2_a5": npu(2, 5, 2),
    "f4_a14_m1": npu(4, 14, 2, 1),
    "f3_a9_m5": npu(3, 9, 2, 5),
    "f3_a7_m0": npu(3, 7, 2, 0),
    "f8_a32_m0": npu(8, 32, 1, 0),
    "f9_a32_m31": npu(9, 32, 1, 31),
    "f9_a31_m15_b16": npu(9, 31, 1, 15, 16),
    "f4_a9_m3_b5": npu(4, 9, 3, 3, 5),
    "f3_a8_m0_b2": npu(3, 8, 2, 0, 2),
    "f8_a32_even": npu(8, 32, 1, half_even=1),
    "f4_a9_m3_b5_even": npu(4, 9, 3, 3, 5, half_even=1),
    "f3_a7_m0_even": npu(3, 7, 2, 0, half_even=1),
    "f9_a25_m31_b4_twice": npu(9, 25, 2, 31, 4, round_twice=1, half_even=1),
    "f9_a22_m31_b4_twice": npu(9, 22, 2, 31, 4, round_twice=1),
    "f3_a7_m0_b3_twice": npu(3, 7, 2, 0, 3, round_twice=1),
}


def probe(one: Npu) -> Block:
    """The activation with a step's signals as ports; ``in_valid`` is the step's ``busy``."""
    b = Block("requantise_probe")
    busy = b.input("in_valid")
    lanes = range(one.results.ol)
    sums = [b.input(f"in_sum_{k}", one.array.acc_bits) for k in lanes]
    parts = [("bias", one.biased_bits), ("multiplier", one.results.multiplier_bits), ("shift", one.scale_shift_bits)]
    parts = [(name, w) for name, w in parts if w]
    row = {f"{name}_{k}": b.input(f"in_{name}_{k}", w) for k in lanes for name, w in parts}
    fields = [("raw", 1), *((name, 1) for name in chosen(one)), *((name, one.array.feature_bits) for name in LIMITS)]
    layer = {name: b.input(f"in_{name}", w) for name, w in fields}
    ends = {name: b.input(f"in_{name}") for name in ("tuple_last", "map_last")}
    free = b.output("in_ready")
    free_before = b.wire("free_before_unused")
    step = Step(free=free, free_before=free_before, busy=busy, sums=sums, row=row, layer=layer, **ends)
    ready = Ready(b.wire("step_ready"))
    give(b, Library(32), requantise(b, one, step, REQUANTISATION.stages, ready), ready)
    return b


LIMITS = ("low", "high")


def chosen(one: Npu) -> list[str]:
    """Fields of a layer that say how it rounds."""
    return [name for name in ("half_even", "round_twice") if one.value(name)]


@pytest.fixture(scope="module", params=NPUS)
def built(request):
    with Bench(probe(NPUS[request.param])) as bench:
        yield bench, NPUS[request.param]


@dataclass
class Play:
    """Steps as the source gives them, and what must come out."""

    steps: list[dict[str, int]]
    features: list[tuple[int, int]]
    raw: list[tuple[int, int]]


def layers(one: Npu) -> list[Requantise]:
    """Encodings that fit the features, with and without ReLU, and limits within them."""
    f = one.array.feature_bits
    common = {"name": "act", "fraction": one.results.bias_fraction_bits}
    encodings = [signed(f), signed(2), unsigned(f - 1), unsigned(1)]
    acts = [Requantise(encoding=e, relu=relu, **common) for e in encodings for relu in (False, True)]
    high = signed(f).high
    acts += [Requantise(encoding=signed(f), clip=clip, **common) for clip in ((-high, high), (0, 1), (-1, -1))]
    ways = ["once", *["even"] * (3 * one.results.half_even), *["twice"] * (3 * one.results.round_twice)]
    acts = [replace(layer, rounding=ways[k % len(ways)]) for k, layer in enumerate(acts)]
    acts += [Requantise(encoding=signed(f), rounding=way, **common) for way in dict.fromkeys(ways)]  # negative ones
    return [replace(layer, fraction=0) if layer.rounding == "twice" else layer for layer in acts]


def values(one: Npu, count: int, draw: random.Random) -> list[tuple[int, int, int, int]]:
    """(sum, bias, multiplier, shift): corners, exact halves, small results, any."""
    top = 1 << one.biased_bits - 1
    most = min(MAX_SHIFT, one.most_shift)
    unit = 1 << one.results.bias_fraction_bits
    summed = 1 << one.array.acc_bits - 1
    largest = max(1, (1 << one.results.multiplier_bits) - 1)
    out = []
    for k in range(count):
        shift, multiplier = draw.randrange(most + 1), draw.randrange(1, largest + 1)
        total = draw.randrange(-top, top)
        if k % 4 == 0:  # corners
            shift, multiplier = draw.choice([0, 1, most - 1, most]), draw.choice([1, largest, (largest + 1) // 2])
            total = draw.choice([-top, -top + 1, -1, 0, 1, top - 1])
        elif k % 4 == 1:  # an odd multiple of 2^(shift - 1)
            shift = draw.randrange(1, min(most, one.biased_bits + max(one.results.multiplier_bits, 1) - 2))
            top_power = max(0, one.results.multiplier_bits - 1)
            power = draw.randrange(max(0, shift - 1 - (one.biased_bits - 2)), min(shift - 1, top_power) + 1)
            multiplier = 1 << power
            room = max(1, min(top >> (shift - 1 - power), 1 << one.array.feature_bits + 2))
            total = min((draw.randrange(-room, room) | 1), top - 1) << (shift - 1 - power)
            total = total if -top <= total < top else -top
        elif k % 4 == 2:  # results of a few bits
            shift = min(most, (abs(total) * multiplier).bit_length() - draw.randrange(0, one.array.feature_bits + 2))
            shift = max(0, shift)
        before, bias = divmod(total, unit)
        moved = draw.randrange(-summed, summed)  # from the bias to the sum
        if -summed <= before - moved < summed and -top <= bias + moved * unit < top:
            before = before - moved
            bias = bias + moved * unit
        out.append((before, bias, multiplier, shift))
    return out


def twice_values(one: Npu, count: int, draw: random.Random) -> list[tuple[int, int, int, int]]:
    """(sum, bias, multiplier, shift) for two roundings: around halves of the second one, and any; no bits behind."""
    most = one.most_shift - one.results.bias_fraction_bits
    largest = max(1, (1 << one.results.multiplier_bits) - 1)
    top = 1 << 62
    room = 1 << one.array.acc_bits - 1
    out = []
    while len(out) < count:
        multiplier = draw.choice([largest // 2 + 1, draw.randrange(largest // 2 + 1, largest + 1)])  # exact halves, any
        shift = draw.choice([31, 32, 33, draw.randrange(31, min(most + 4, MAX_SHIFT) + 1)])
        middle = ((2 * draw.randrange(-300, 300) + 1) << shift - 1) // multiplier + draw.randrange(-2, 3)
        total = draw.choice([middle, draw.randrange(-room, room), -room, room - 1])
        bias = draw.randrange(-room, room)
        if -room <= total < room and -room <= total - bias < room and abs(total) * multiplier < top:
            out.append((total - bias, bias, multiplier, shift))
    return out


def play(one: Npu, count: int, seed: int, raw: bool) -> Play:
    """``count`` steps of each layer; ``raw``: one layer in between gives the sums themselves."""
    draw = random.Random(seed)
    traffic = Play([], [], [])
    acc, lanes = (1 << one.array.acc_bits) - 1, (1 << one.array.feature_bits) - 1
    for number, layer in enumerate(layers(one)):
        is_raw = raw and number % 3 == 2
        drawn = twice_values if layer.rounding == "twice" else values
        sums, bias, multiplier, shift = np.array(drawn(one, count * one.results.ol, draw), np.int64).T
        arrays = {"bias": bias, "multiplier": multiplier, "shift": shift}
        source = Map(height=1, width=1, channels=len(sums), encoding=signed(one.array.acc_bits))
        wanted = layer.forward(sums.reshape(1, 1, 1, -1), arrays, source).ravel()
        more = (
            one.results.bias_fraction_bits - layer.fraction
        )  # as the compiler moves a layer with fewer bits behind the point
        bias = bias << more
        shift = np.minimum(shift + more, one.most_shift)
        for k in range(0, len(sums), one.results.ol):
            ends = {"tuple_last": draw.getrandbits(1), "map_last": draw.getrandbits(1)}
            step = {"raw": int(is_raw), "low": layer.low & lanes, "high": layer.high & lanes, **ends}
            rounds = {"half_even": int(layer.rounding == "even"), "round_twice": int(layer.rounding == "twice")}
            step |= {name: rounds[name] for name in chosen(one)}
            for lane in range(one.results.ol):
                step[f"sum_{lane}"] = int(sums[k + lane]) & acc
                step[f"bias_{lane}"] = int(bias[k + lane]) & ((1 << one.biased_bits) - 1)
                step[f"shift_{lane}"] = int(shift[k + lane])
                if one.results.multiplier_bits:
                    step[f"multiplier_{lane}"] = int(multiplier[k + lane])
            traffic.steps.append(step)
            part = slice(k, k + one.results.ol)
            if is_raw:
                word = sum((int(v) & acc) << i * one.array.acc_bits for i, v in enumerate(sums[part]))
                traffic.raw.append((word, ends["map_last"]))
            else:
                word = sum((int(v) & lanes) << i * one.array.feature_bits for i, v in enumerate(wanted[part]))
                traffic.features.append((word, ends["tuple_last"]))
    return traffic


def agents(bench: Bench, traffic: Play, stall_in: float, stall_out: float) -> tuple[Source, Sink, Sink]:
    names = ["data", "last"]
    return (
        Source(bench, "in_", traffic.steps, stall_in),
        Sink(bench, "features_", names, len(traffic.features), stall_out),
        Sink(bench, "raw_", names, len(traffic.raw), stall_out, seed=2),
    )


@pytest.mark.sample(5)
@pytest.mark.parametrize(("stall_in", "stall_out"), [(0, 0), (0.4, 0.4), (0, 0.8), (0.8, 0)])
def test_equals_golden(built, stall_in, stall_out):
    bench, one = built
    bench.reset()
    traffic = play(one, 60, 1, raw=True)
    source, features, raw = agents(bench, traffic, stall_in, stall_out)
    run(bench, source, features, raw)
    assert features.words == traffic.features
    assert raw.words == traffic.raw


@pytest.mark.sample(2)
def test_many_values(built):
    """A step a cycle, LATENCY cycles each."""
    bench, one = built
    bench.reset()
    traffic = play(one, 600 // one.results.ol, 2, raw=False)
    source, features, raw = agents(bench, traffic, 0, 0)
    run(bench, source, features, raw)
    assert features.words == traffic.features
    assert steady(source.taken)
    assert features.taken == [cycle + LATENCY for cycle in source.taken]


@pytest.mark.parametrize("name", ["f8_a32", "f9_a32_m31", "f9_a22_m31_b4_twice", "f4_a9_m3_b5_even", "f3_a7_m0"])
def test_lint(name):
    """A product in one block with LUTs, in two, and of synthesis' choice; none."""
    assert lint(text_of(probe(NPUS[name])), top="requantise_probe") == []
