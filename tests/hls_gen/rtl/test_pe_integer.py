"""Integer PE against numpy: random and corner operands, windows back to back and with gaps."""

import random
from dataclasses import dataclass

import numpy as np
import pytest

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.timing import pe_latency
from bitloom.hls_gen.rtl.array.pe_integer import pe_integer
from bitloom.hls_gen.rtl.primitives.memory import Library

from .bench import Bench, together


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


@dataclass(frozen=True)
class Beat:
    """What a PE is given in a cycle: (kfp,) each."""

    features: np.ndarray
    weights: np.ndarray
    first: bool
    last: bool


@pytest.fixture(scope="module")
def bench():
    library = Library(32)
    with Bench(together("pes", {name: library.get(pe_integer, library, one) for name, one in NPUS.items()})) as made:
        yield made


@pytest.fixture(params=NPUS)
def name(request):
    return request.param


def packed(values: np.ndarray, bits: int) -> int:
    return sum((int(v) & ((1 << bits) - 1)) << k * bits for k, v in enumerate(values))


def windows(one: Npu, lengths: list[int], seed: int, corners: bool = False) -> list[Beat]:
    """Windows of so many beats; ``corners``: operands are the smallest or the largest values."""
    rng, out = np.random.default_rng(seed), []
    for count in lengths:
        for k in range(count):
            tops = [1 << bits - 1 for bits in (one.array.feature_bits, one.array.weight_bits)]
            if corners:
                operands = [rng.choice([-top, top - 1], one.array.kfp) for top in tops]
                if rng.random() < 0.5:
                    operands = [np.full(one.array.kfp, rng.choice([-top, top - 1])) for top in tops]
            else:
                operands = [rng.integers(-top, top, one.array.kfp) for top in tops]
            out.append(Beat(*operands, k == 0, k == count - 1))
    return out


def wanted(one: Npu, beats: list[Beat]) -> list[int]:
    """The result of each window, modulo 2^acc_bits."""
    out, total = [], 0
    for beat in beats:
        total = (0 if beat.first else total) + int(beat.features @ beat.weights)
        if beat.last:
            out.append(total % (1 << one.array.acc_bits))
    return out


def play(bench: Bench, name: str, beats: list[Beat | None]) -> list[int]:
    """``result`` latency cycles after each last beat, and that it held until then. None is a cycle without a beat;
    control comes with the delay that the convolver has."""
    one, draw = NPUS[name], random.Random(0)
    latency = pe_latency(one)
    line: list[Beat | None] = [None] * (latency - 1)
    shown = []
    for beat in [*beats, *([None] * (latency + 1))]:
        line.append(beat)
        late = line.pop(0)
        following = line[0]
        clear = int(following is not None and following.first)
        flag = {"clear": clear, "last": int(late.last) if late else draw.getrandbits(1)}
        features = packed(beat.features, one.array.feature_bits) if beat else draw.getrandbits(one.array.word_bits)
        weights = (
            packed(beat.weights, one.array.weight_bits)
            if beat
            else draw.getrandbits(one.array.kfp * one.array.weight_bits)
        )
        ports = {"features": features, "weights": weights, "valid": int(late is not None), **flag}
        bench.set(**{f"{name}_{port}": value for port, value in ports.items()})
        shown.append(bench[f"{name}_result"])
        bench.tick()
    ends = [t + latency for t, beat in enumerate(beats) if beat and beat.last]
    for here, after in zip(ends, [*ends[1:], len(shown)]):
        assert len(set(shown[here:after])) == 1, f"cycle {here}: the result must hold until the next"
    return [shown[t] for t in ends]


def test_latency_is_what_the_module_says(name):
    assert pe_latency(NPUS[name]) == LATENCY[name]


@pytest.mark.parametrize("corners", [False, True])
def test_back_to_back(bench, name, corners):
    draw = random.Random(1)
    beats = windows(NPUS[name], [1, 1, 5, 2, 1, *(draw.randrange(1, 6) for _ in range(100))], 1, corners)
    assert play(bench, name, beats) == wanted(NPUS[name], beats)


def test_gaps(bench, name):
    """Cycles without a beat, inside windows and between them, change nothing."""
    draw, beats = random.Random(2), []
    for beat in windows(NPUS[name], [draw.randrange(1, 6) for _ in range(80)], 2):
        beats += [None] * draw.choice([0, 0, 1, 3]) + [beat]
    assert play(bench, name, beats) == wanted(NPUS[name], [b for b in beats if b])


def test_the_largest_sum_of_one_beat_fits(bench, name):
    """All operands at the corner whose products are largest, and at that whose are smallest: no bit is lost."""
    one = NPUS[name]
    low, high = -(1 << one.array.feature_bits - 1), (1 << one.array.feature_bits - 1) - 1
    weight = np.full(one.array.kfp, -(1 << one.array.weight_bits - 1))
    beats = [Beat(np.full(one.array.kfp, value), weight, True, True) for value in (low, high)]
    sign = 1 << one.array.acc_bits - 1
    assert [(v ^ sign) - sign for v in play(bench, name, beats)] == [
        one.array.kfp * int(weight[0]) * v for v in (low, high)
    ]
