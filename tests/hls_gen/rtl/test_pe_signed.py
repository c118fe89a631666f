"""Processing elements that add or subtract integers, behind what they share, against numpy."""

import random

import numpy as np
import pytest

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.signed_sum import Lanes, SignedSum, signed_stages, signed_sum, uses
from bitloom.hls_gen.rtl.array.lane_pairs import lane_pairs
from bitloom.hls_gen.rtl.array.pe_signed import pe_signed
from bitloom.hls_gen.rtl.primitives.block import Block, width
from bitloom.hls_gen.rtl.primitives.memory import Library

from .bench import bench_of, together
from .elements import Beat, check, check_gaps


def npu_of(lanes: int, planes: int, acc_bits: int, *, spare: int = 0, accumulators: int = 1) -> Npu:
    return Npu.of(
        kfp=lanes * (planes + 1) + spare,
        planes=planes,
        acc_bits=acc_bits,
        accumulators=accumulators,
        inlets=("host",),
        outlets=("host",),
    )


NPUS = {
    "one": npu_of(1, 6, 12),
    "two": npu_of(2, 8, 14),
    "three": npu_of(3, 8, 16, spare=5),
    "seven": npu_of(7, 8, 13),
    "eight": npu_of(8, 3, 9),
    "ten": npu_of(10, 9, 16, spare=1),
    "eleven": npu_of(11, 2, 10),
    "wide": npu_of(27, 8, 17),
    "widest": npu_of(31, 4, 13),
    "narrow": npu_of(3, 8, 8),
    "several": npu_of(7, 8, 14, accumulators=4),
}


def element(library: Library, npu: Npu) -> Block:
    """A PE behind the lane pairs, with the ports of a PE whose features are a word."""
    shared = lane_pairs(library, npu)
    pe = pe_signed(library, npu)
    b = Block(f"element_of_{pe.m.name}")
    ports = {name: b.input(name, w) for name, w in pe.port_widths.items() if name not in ("clk", "operands", "result")}
    operands = b.wire("operands", pe.port_widths["operands"])
    result = b.output("result", npu.array.acc_bits)
    b.instance(shared, "pairs", features=b.input("features", npu.array.word_bits), operands=operands)
    b.instance(pe, "pe", operands=operands, result=result, **ports)
    assert width(result) == npu.array.acc_bits
    return b


LIBRARY = Library(32, npus=list(NPUS.values()))  # so that each has modules of its own
bench = bench_of(lambda: together("elements", {name: element(LIBRARY, npu) for name, npu in NPUS.items()}))


@pytest.fixture(params=NPUS)
def name(request):
    return request.param


def word_of(npu: Npu, values: np.ndarray, noise: int) -> int:
    """The features, plane 0 first, then the constant plane; noise in the lanes that mean nothing."""
    lanes = npu.array.plane_lanes
    word = noise
    for plane in range(npu.array.planes):
        low = (plane + (plane > 0)) * lanes
        bits = sum((int(value) >> plane & 1) << k for k, value in enumerate(values))
        word = word & ~((1 << lanes) - 1 << low) | bits << low
    return word


def windows(npu: Npu, lengths: list[int], seed: int, extreme: bool = False) -> tuple[list[Beat], list[int]]:
    """Windows of so many beats, and their results modulo 2^acc_bits; ``extreme``: all values are the smallest or the
    largest."""
    draw = np.random.default_rng(seed)
    noise = random.Random(seed)
    lanes = npu.array.plane_lanes
    top = 1 << npu.array.planes - 1
    beats, results = [], []
    for count in lengths:
        total = 0
        for k in range(count):
            values = draw.choice([-top, top - 1], lanes) if extreme else draw.integers(-top, top, lanes)
            signs = draw.choice([-1, 1], lanes)
            weights = sum(int(sign > 0) << lane for lane, sign in enumerate(signs))
            features = word_of(npu, values, noise.getrandbits(npu.array.kfp))
            beats.append(Beat(features, weights, k == 0, k == count - 1))
            total += int(values @ signs)
        results.append(total % (1 << npu.array.acc_bits))
    return beats, results


@pytest.mark.sample(8)
@pytest.mark.parametrize("extreme", [False, True])
def test_back_to_back(bench, name, extreme):
    draw = random.Random(1)
    lengths = [1, 1, 5, 2, 1, *(draw.randrange(1, 6) for _ in range(100))]
    check(bench, name, NPUS[name], *windows(NPUS[name], lengths, 1, extreme))


def test_gaps(bench, name):
    draw = random.Random(2)
    check_gaps(bench, name, NPUS[name], *windows(NPUS[name], [draw.randrange(1, 6) for _ in range(80)], 2))


@pytest.mark.parametrize(("lanes", "stages"), [(1, 1), (7, 1), (10, 1), (11, 2), (30, 2), (31, 3), (90, 3)])
def test_stages(lanes, stages):
    """Two additions in a stage, one and the accumulator's in the last one."""
    assert signed_stages(lanes) == stages
    assert signed_sum(lanes).stage == stages + 1


@pytest.mark.parametrize("lanes", [*range(1, 40), 90, 113])
def test_each_lane_is_added_once(lanes):
    tree = signed_sum(lanes)
    assert sorted(tree.lanes) == list(range(lanes))
    assert sorted(lane for _, part in uses(tree) for lane in part.lanes) == list(range(lanes))


def test_a_row_adds_two_lanes():
    """Seven lanes are three rows: a first lane, and three pairs."""
    tree = signed_sum(7)
    assert tree == SignedSum(2, SignedSum(1, Lanes((0,)), (Lanes((1, 2)), Lanes((3, 4)))), (Lanes((5, 6)),))
