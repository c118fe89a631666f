"""Integer PE against numpy: random and corner operands, windows back to back and with gaps."""

import random

import numpy as np
import pytest

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.timing import pe_latency
from bitloom.hls_gen.rtl.array.pe_integer import pe_integer
from bitloom.hls_gen.rtl.primitives.memory import Library

from .bench import bench_of, together
from .elements import Beat, check, check_gaps


def npu(kfp: int, feature_bits: int, weight_bits: int, more: int) -> Npu:
    """``more``: bits of the accumulator beyond what one beat needs."""
    bits = {"engine": "integer", "shift_bits": 0, "feature_bits": feature_bits, "weight_bits": weight_bits}
    return Npu.of(kfp=kfp, acc_bits=Npu.of(kfp=kfp, acc_bits=32, **bits).array.least_acc_bits + more, **bits)


NPUS = {
    "k1_8x8": npu(1, 8, 8, 3),
    "k5_8x8": npu(5, 8, 8, 2),
    "k17_4x3": npu(17, 4, 3, 1),
    "k64_2x2": npu(64, 2, 2, 4),
    "k4_2x8": npu(4, 2, 8, 0),
}
LATENCY = {"k1_8x8": 4, "k5_8x8": 5, "k17_4x3": 6, "k64_2x2": 6, "k4_2x8": 4}


LIBRARY = Library(32)
bench = bench_of(lambda: together("pes", {name: LIBRARY.get(pe_integer, LIBRARY, one) for name, one in NPUS.items()}))


@pytest.fixture(params=NPUS)
def name(request):
    return request.param


def packed(values: np.ndarray, bits: int) -> int:
    return sum((int(v) & ((1 << bits) - 1)) << k * bits for k, v in enumerate(values))


def beats_of(one: Npu, windows: list[list[tuple[np.ndarray, np.ndarray]]]) -> tuple[list[Beat], list[int]]:
    """Beats of windows whose operands, (kfp,) each, are given, and results modulo 2^acc_bits."""
    bits = (one.array.feature_bits, one.array.weight_bits)
    beats = list[Beat]()
    for window in windows:
        for k, operands in enumerate(window):
            beats.append(Beat(*map(packed, operands, bits), k == 0, k == len(window) - 1))
    return beats, [sum(int(f @ w) for f, w in window) % (1 << one.array.acc_bits) for window in windows]


def windows(one: Npu, lengths: list[int], seed: int, corners: bool = False) -> tuple[list[Beat], list[int]]:
    """Windows of so many beats; ``corners``: operands are the smallest or the largest values."""
    rng = np.random.default_rng(seed)
    tops = [1 << bits - 1 for bits in (one.array.feature_bits, one.array.weight_bits)]

    def operands() -> tuple[np.ndarray, ...]:
        if not corners:
            return tuple(rng.integers(-top, top, one.array.kfp) for top in tops)
        if rng.random() < 0.5:
            return tuple(np.full(one.array.kfp, rng.choice([-top, top - 1])) for top in tops)
        return tuple(rng.choice([-top, top - 1], one.array.kfp) for top in tops)

    return beats_of(one, [[operands() for _ in range(count)] for count in lengths])


def test_latency_is_what_the_module_says(name):
    assert pe_latency(NPUS[name]) == LATENCY[name]


@pytest.mark.parametrize("corners", [False, True])
def test_back_to_back(bench, name, corners):
    draw = random.Random(1)
    lengths = [1, 1, 5, 2, 1, *(draw.randrange(1, 6) for _ in range(100))]
    check(bench, name, NPUS[name], *windows(NPUS[name], lengths, 1, corners))


def test_gaps(bench, name):
    draw = random.Random(2)
    check_gaps(bench, name, NPUS[name], *windows(NPUS[name], [draw.randrange(1, 6) for _ in range(80)], 2))


def test_the_largest_sum_of_one_beat_fits(bench, name):
    """All operands at the corner whose products are largest, and at that whose are smallest: no bit is lost."""
    one = NPUS[name]
    low, high = -(1 << one.array.feature_bits - 1), (1 << one.array.feature_bits - 1) - 1
    weight = np.full(one.array.kfp, -(1 << one.array.weight_bits - 1))
    beats, results = beats_of(one, [[(np.full(one.array.kfp, value), weight)] for value in (low, high)])
    sign = 1 << one.array.acc_bits - 1
    assert [(v ^ sign) - sign for v in results] == [one.array.kfp * int(weight[0]) * v for v in (low, high)]
    check(bench, name, one, beats, results)
