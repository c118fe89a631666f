"""Divider against golden: every sum and count by the formula in numpy, and by the hardware."""

import random
from collections.abc import Iterable

import numpy as np
import pytest

from bitloom.golden.layers.rounding import rounded_quotient
from bitloom.hls_gen.compiler.rows.pool_unit import reciprocals
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.timing import DIVIDE_LATENCY as LATENCY
from bitloom.hls_gen.design.widths import COUNT_BITS
from bitloom.hls_gen.rtl.pool_unit.divide import divide
from bitloom.hls_gen.rtl.primitives.memory import Library

from .bench import Bench

COUNTS = 1 << COUNT_BITS
BITS = (2, 5, 8, 9)
"""Feature bits of the dividers under test."""
MOST = 81
"""Counts that the spec asks for (B14); the memory has room up to COUNTS - 1."""

Case = tuple[int, int, int]
"""Sum, count, average."""


def npu(bits: int) -> Npu:
    return Npu.of(engine="integer", feature_bits=bits, weight_bits=8, shift_bits=0, acc_bits=24)


@pytest.fixture(scope="module")
def benches():
    library = Library(32)
    benches = {bits: Bench(divide(library, npu(bits))) for bits in BITS}
    yield benches
    for bench in benches.values():
        bench.close()


def sums(count: int, bits: int) -> np.ndarray:
    """Every sum of so many features."""
    return np.arange(-count << bits - 1, (count << bits - 1) - count + 1)


def quotients(cases: Iterable[Case]) -> list[int]:
    total, count, average = np.array(list(cases)).T
    return np.where(average, rounded_quotient(total, count), total).tolist()


def play(bench: Bench, bits: int, cases: list[Case]) -> list[int]:
    """The quotients, LATENCY cycles after what they belong to, a case a cycle."""
    width = npu(bits).pool_sum_bits
    table = reciprocals(npu(bits).reciprocal_bits).tolist()
    out = []
    for k in range(len(cases) + LATENCY):
        if k >= LATENCY:
            value = bench["quotient"]
            out.append(value - (value >> bits - 1 << bits))
        total, count, average = cases[min(k, len(cases) - 1)]
        bench.set(sum=total & ((1 << width) - 1), count=count, average=average, reciprocal=table[count])
        bench.tick()
    return out


@pytest.mark.parametrize(("bits", "power"), [(2, 23), (8, 23), (9, 24)])
def test_driver_and_hardware_agree_on_the_reciprocals(bits, power):
    table = reciprocals(npu(bits).reciprocal_bits)
    assert table[1:].tolist() == [-(-(1 << power) // (2 * count)) for count in range(1, COUNTS)]
    assert int(table.max()).bit_length() == power == memory_of(npu(bits), "reciprocals").width


@pytest.mark.parametrize("bits", [*range(2, 10)])
def test_the_formula_is_exact(bits):
    """All sums of 1 .. 127 features: floor((2 |sum| + count) * ceil(2^p / (2 count)) / 2^p), with the sum's sign."""
    power = npu(bits).reciprocal_bits
    table = reciprocals(power)
    for count in range(1, COUNTS):
        total = sums(count, bits)
        size = (2 * np.abs(total) + count) * table[count] >> power
        np.testing.assert_array_equal(np.sign(total) * size, rounded_quotient(total, np.array(count)))


@pytest.mark.parametrize("bits", BITS)
def test_sampled_sums_of_every_count(benches, bits):
    """The ends, around 0, exact halves, and others at random; counts and modes mixed, one case a cycle."""
    draw = random.Random(bits)
    cases = []
    for count in range(1, COUNTS):
        every = sums(count, bits).tolist()
        halves = [v for v in every if 2 * v % count == 0 and v % count][:20]
        chosen = {*every[:3], *every[-3:], *halves, *(v for v in range(-3, 4) if v in every)}
        cases += [(v, count, 1) for v in chosen.union(draw.choices(every, k=25))]
    cases += [(v, draw.randrange(1, COUNTS), 0) for v in sums(1, bits).tolist()]
    draw.shuffle(cases)
    assert play(benches[bits], bits, cases) == quotients(cases)


BOUNDS = [(5, 23, "8 bits (n <= 2 * 127 * 128 + 127)"), (9, 24, "9 bits (n <= 2 * 127 * 256 + 127)")]


@pytest.mark.parametrize(("bits", "power", "bound"), BOUNDS)
def test_the_header_has_the_numbers_of_its_features(bits, power, bound):
    (text,) = divide(Library(32), npu(bits)).modules().values()
    header = " ".join(line.removeprefix("//").strip() for line in text.splitlines() if line.startswith("//"))
    assert f"product --> >> {power}, sign" in header
    assert f"ceil(2^{power} / (2 count))" in header
    assert f"n (d - 1) < 2^{power} for counts to 127 and features of {bound}" in header


@pytest.mark.slow
@pytest.mark.parametrize("bits", [8, 9])
def test_every_sum_of_every_count(benches, bits):
    for count in range(1, MOST + 1):
        cases = [(v, count, 1) for v in sums(count, bits).tolist()]
        assert play(benches[bits], bits, cases) == quotients(cases), f"count {count}"
