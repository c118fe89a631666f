"""PE against numpy: flat, grouped (planes beside each other) and shifted (planes one after another)."""

import random

import numpy as np
import pytest

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.timing import pe_latency
from bitloom.hls_gen.rtl.array.pe import pe
from bitloom.hls_gen.rtl.primitives.memory import Library

from .bench import bench_of, together
from .elements import Beat, check, check_gaps

NPUS = {
    "flat": Npu.of(kfp=13, acc_bits=10, shift_bits=0),
    "flat_wide": Npu.of(kfp=130, acc_bits=12, shift_bits=0),
    "grouped": Npu.of(kfp=29, acc_bits=15, planes=8),
    "grouped_wide": Npu.of(kfp=200, acc_bits=13, planes=2),
    "grouped_few": Npu.of(kfp=9, acc_bits=7, planes=2),
    "grouped_narrow": Npu.of(kfp=28, acc_bits=6, planes=8),
    "shifted": Npu.of(kfp=5, acc_bits=14, shift_bits=3),
    "grouped_9": Npu.of(kfp=20, acc_bits=16, planes=9),
    "shifted_9": Npu.of(kfp=5, acc_bits=15, shift_bits=4),
    "shifted_narrow": Npu.of(kfp=1, acc_bits=4, shift_bits=3),
    "shifted_1": Npu.of(kfp=70, acc_bits=11, shift_bits=1),
}
LATENCY = dict.fromkeys(NPUS, 3) | dict.fromkeys(("flat_wide", "grouped_wide", "shifted_1"), 4)


LIBRARY = Library(32)
bench = bench_of(lambda: together("pes", {name: LIBRARY.get(pe, LIBRARY, npu) for name, npu in NPUS.items()}))


@pytest.fixture(params=NPUS)
def name(request):
    return request.param


def bits(word: int, lanes: int) -> np.ndarray:
    return np.array([word >> k & 1 for k in range(lanes)], np.int64)


def lane_weights(npu: Npu, code: int) -> np.ndarray:
    """The count of a match in each lane; the module's text, lane by lane."""
    weight = np.ones(npu.array.kfp, np.int64)
    if npu.array.planes and code:
        size = npu.array.kfp // (npu.array.planes + 1)
        for lane in range(2 * size, npu.array.kfp):  # the first two thirds: plane 0 and the constant lanes
            plane = min(lane // size - 1, npu.array.planes - 1)  # what is left over belongs to the last
            weight[lane] = -(1 << plane) if plane == npu.array.planes - 1 else 1 << plane
    elif not npu.array.planes and npu.value("shift_bits"):
        weight <<= code & ((1 << npu.value("shift_bits")) - 1)
        weight *= -1 if code >> npu.value("shift_bits") else 1
    return weight


def wanted(npu: Npu, beats: list[Beat]) -> list[int]:
    """The result of each window, modulo 2^acc_bits."""
    out = []
    total = 0
    for beat in beats:
        match = bits(beat.features, npu.array.kfp) == bits(beat.weights, npu.array.kfp)
        total = (0 if beat.first else total) + int(match @ lane_weights(npu, beat.code))
        if beat.last:
            out.append(total % (1 << npu.array.acc_bits))
    return out


def random_beats(npu: Npu, windows: list[int], seed: int, full: bool = False) -> list[Beat]:
    """Windows of so many beats; ``full``: all lanes match."""
    draw = random.Random(seed)
    out = []
    for count in windows:
        for k in range(count):
            features = draw.getrandbits(npu.array.kfp)
            weights = features if full else draw.getrandbits(npu.array.kfp)
            if draw.random() < 0.2 and not full:
                weights = features ^ (1 << draw.randrange(npu.array.kfp))
            code = draw.getrandbits(npu.code_bits) if npu.code_bits else 0
            out.append(Beat(features, weights, k == 0, k == count - 1, code))
    return out


def test_latency_is_what_the_module_says(name):
    assert pe_latency(NPUS[name]) == LATENCY[name]


def test_back_to_back(bench, name):
    """Windows of 1 to 5 beats."""
    npu = NPUS[name]
    draw = random.Random(1)
    beats = random_beats(npu, [1, 1, 5, 2, 1, 4, 3, *(draw.randrange(1, 6) for _ in range(150))], 1)
    check(bench, name, npu, beats, wanted(npu, beats))


def test_gaps(bench, name):
    npu = NPUS[name]
    draw = random.Random(2)
    beats = random_beats(npu, [draw.randrange(1, 6) for _ in range(100)], 2)
    check_gaps(bench, name, npu, beats, wanted(npu, beats))


def test_all_lanes_match(bench, name):
    """The largest counts of every group, for every code."""
    npu = NPUS[name]
    beats = random_beats(npu, [1] * 40, 3, full=True)
    check(bench, name, npu, beats, wanted(npu, beats))


@pytest.mark.parametrize("name", [n for n, npu in NPUS.items() if npu.array.kfp < 64])
def test_each_lane_alone(bench, name):
    """One match in one lane: its weight."""
    npu = NPUS[name]
    for code in range(1 << npu.code_bits if npu.code_bits else 1):
        beats = [Beat(1 << lane, ((1 << npu.array.kfp) - 1), True, True, code) for lane in range(npu.array.kfp)]
        results = [int(w) % (1 << npu.array.acc_bits) for w in lane_weights(npu, code)]
        check(bench, name, npu, beats, results)


@pytest.mark.parametrize(
    ("npu", "parts"),
    [
        (Npu.of(kfp=29, planes=8), [(0, 6), (6, 3), (9, 3), (12, 3), (15, 3), (18, 3), (21, 3), (24, 5)]),
        (Npu.of(kfp=9, planes=8), [(0, 2), *((k, 1) for k in range(2, 9))]),
        (Npu.of(kfp=200, planes=2), [(0, 132), (132, 68)]),
        (Npu.of(kfp=70), [(0, 70)]),
    ],
)
def test_groups(npu, parts):
    assert npu.array.lane_groups == parts


def test_no_code_where_only_integers_come():
    planes = Npu.of(kfp=27, planes=8)
    frames_only = planes.changed(inlets=("host",), outlets=("ring", "host"))
    assert (planes.code_bits, frames_only.code_bits) == (1, 0)
    assert frames_only.changed(inlets=("host", "ring")).code_bits == 1
    assert frames_only.changed(accumulate="both").code_bits == 2
