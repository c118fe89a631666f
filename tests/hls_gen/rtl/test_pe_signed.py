"""Processing elements that add or subtract integers, behind what they share, against numpy."""

import random
from dataclasses import dataclass

import numpy as np
import pytest

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.signed_sum import Lanes, SignedSum, signed_stages, signed_sum, uses
from bitloom.hls_gen.rtl.array.lane_pairs import lane_pairs
from bitloom.hls_gen.rtl.array.pe_signed import pe_signed
from bitloom.hls_gen.rtl.primitives.block import Block, width
from bitloom.hls_gen.rtl.primitives.memory import Library

from .bench import Bench, together


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
    shared, pe = lane_pairs(library, npu), pe_signed(library, npu)
    b = Block(f"element_of_{pe.m.name}")
    ports = {name: b.input(name, w) for name, w in pe.port_widths.items() if name not in ("clk", "operands", "result")}
    operands = b.wire("operands", pe.port_widths["operands"])
    result = b.output("result", npu.array.acc_bits)
    b.instance(shared, "pairs", features=b.input("features", npu.array.word_bits), operands=operands)
    b.instance(pe, "pe", operands=operands, result=result, **ports)
    assert width(result) == npu.array.acc_bits
    return b


@pytest.fixture(scope="module")
def bench():
    library = Library(32, npus=list(NPUS.values()))  # so that each has modules of its own
    with Bench(together("elements", {name: element(library, npu) for name, npu in NPUS.items()})) as made:
        yield made


@pytest.fixture(params=NPUS)
def name(request):
    return request.param


@dataclass(frozen=True)
class Beat:
    """What a PE is given in a cycle."""

    values: np.ndarray
    """(lanes,): integers."""
    signs: np.ndarray
    """(lanes,): 1 or -1."""
    first: bool
    last: bool

    def word(self, npu: Npu, noise: int) -> int:
        """The features, plane 0 first, then the constant plane; noise in the lanes that mean nothing."""
        lanes, planes = npu.array.plane_lanes, npu.array.planes
        word = noise
        for plane in range(planes):
            low = (plane + (plane > 0)) * lanes
            bits = sum((int(value) >> plane & 1) << k for k, value in enumerate(self.values))
            word = word & ~((1 << lanes) - 1 << low) | bits << low
        return word


def random_beats(npu: Npu, windows: list[int], seed: int, extreme: bool = False) -> list[Beat]:
    """Windows of so many beats; ``extreme``: all values are the smallest or the largest."""
    draw = np.random.default_rng(seed)
    lanes, top = npu.array.plane_lanes, 1 << npu.array.planes - 1
    out = []
    for count in windows:
        for k in range(count):
            values = draw.choice([-top, top - 1], lanes) if extreme else draw.integers(-top, top, lanes)
            out.append(Beat(values, draw.choice([-1, 1], lanes), k == 0, k == count - 1))
    return out


def wanted(npu: Npu, beats: list[Beat]) -> list[int]:
    """The result of each window, modulo 2^acc_bits."""
    out, total = [], 0
    for beat in beats:
        total = (0 if beat.first else total) + int(beat.values @ beat.signs)
        if beat.last:
            out.append(total % (1 << npu.array.acc_bits))
    return out


def play(bench: Bench, name: str, beats: list[Beat | None]) -> list[int]:
    """``result`` of each window, latency cycles after its last beat; None is a cycle without a beat. Control comes as
    late as the convolver has it, noise where it means nothing."""
    npu, draw = NPUS[name], random.Random(0)
    latency = timing.pe_latency(npu)
    several = npu.array.accumulators > 1
    at = [*beats, *[None] * (latency + 1)]
    shown, slot = [], 0
    for t, beat in enumerate(at):
        late = at[t - latency + 1] if t >= latency - 1 else None
        following = at[t - latency + 2] if t >= latency - 2 else None
        given = {
            "features": beat.word(npu, draw.getrandbits(npu.array.kfp)) if beat else draw.getrandbits(npu.array.kfp),
            "weights": sum(int(sign > 0) << k for k, sign in enumerate(beat.signs)) if beat else draw.getrandbits(9),
            "valid": int(late is not None),
        }
        given["weights"] &= (1 << npu.array.plane_lanes) - 1
        if several:
            before, slot = slot, (slot + int(late is not None and late.first)) % npu.array.accumulators
            given |= {"slot": slot, "first": int(late.first) if late else draw.getrandbits(1), "drain_slot": before}
        else:
            clear = following is not None and following.first
            given |= {"last": int(late.last) if late else draw.getrandbits(1), "clear": int(clear)}
        bench.set(**{f"{name}_{port}": value for port, value in given.items()})
        if several:  # the accumulator of the beat before is that of a window that may have ended
            bench[f"{name}_drain_slot"] = slot if t and not (late and late.first) else before
        shown.append(bench[f"{name}_result"])
        bench.tick()
    return [shown[t + latency] for t, beat in enumerate(beats) if beat and beat.last]


@pytest.mark.parametrize("extreme", [False, True])
def test_back_to_back(bench, name, extreme):
    """Windows of 1 to 5 beats, one beat a cycle."""
    draw = random.Random(1)
    beats = random_beats(NPUS[name], [1, 1, 5, 2, 1, *(draw.randrange(1, 6) for _ in range(100))], 1, extreme)
    assert play(bench, name, list(beats)) == wanted(NPUS[name], beats)


def test_gaps(bench, name):
    """Cycles without a beat, in windows and between them, change nothing."""
    draw = random.Random(2)
    spread: list[Beat | None] = []
    for beat in random_beats(NPUS[name], [draw.randrange(1, 6) for _ in range(80)], 2):
        spread += [None] * draw.choice([0, 0, 1, 3]) + [beat]
    assert play(bench, name, spread) == wanted(NPUS[name], [beat for beat in spread if beat])


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
