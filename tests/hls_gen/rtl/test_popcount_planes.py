"""Popcount of bit planes for simulation, against numpy; test_sums.py proves that of synthesis equal."""

import random

import numpy as np
import pytest
import veriloggen

from bitloom.hls_gen.check import check
from bitloom.hls_gen.design.lanes import lane_groups
from bitloom.hls_gen.rtl.array.popcount_planes import popcount_planes, stages, weighted_bits
from bitloom.hls_gen.rtl.primitives.memory import Target
from bitloom.overlay.virtual.sim import lint

from .bench import Bench, text_of, together

SMALL = ((3, 2), (5, 2), (6, 2), (7, 2), (9, 2), (12, 3), (9, 8), (10, 8), (10, 9), (13, 4), (17, 8))
LARGE = ((20, 8), (27, 8), (29, 8), (30, 9), (32, 6), (72, 8), (70, 3), (130, 2), (200, 2))


def lane_weights(lanes: int, planes: int) -> np.ndarray:
    """The count of a match in each lane but the first, which is ``rest``."""
    size = lanes // (planes + 1)
    plane = np.clip(np.arange(lanes) // size - 1, 0, planes - 1)
    weight = np.where(plane == planes - 1, -1, 1) << plane
    return np.append(0, weight[1:])


def text(lanes: int, planes: int, width: int, target: Target, name: str = "") -> str:
    veriloggen.reset()
    block = popcount_planes(lanes, planes, width, target)
    verilog = text_of(block)
    return verilog.replace(f"module {block.m.name} (", f"module {name} (") if name else verilog


@pytest.mark.sample(5)
@pytest.mark.parametrize("target", ["simulation", "synthesis"])
@pytest.mark.parametrize(("lanes", "planes"), SMALL + LARGE)
def test_clean(lanes, planes, target):
    width = weighted_bits(lanes, planes)
    verilog = text(lanes, planes, width, target)
    name = f"popcount_planes_{lanes}_{planes}_{width}"
    check(verilog, name)
    assert lint(verilog, top=name) == []
    assert verilog == text(lanes, planes, width, target)


@pytest.mark.parametrize("target", ["simulation", "synthesis"])
@pytest.mark.parametrize(("lanes", "planes", "width"), [(6, 4, 4), (9, 4, 3), (20, 2, 2)])
def test_clean_where_the_accumulator_is_narrower(lanes, planes, width, target):
    name = f"popcount_planes_{lanes}_{planes}_{width}"
    verilog = text(lanes, planes, width, target)
    check(verilog, name)
    assert lint(verilog, top=name) == []


def test_unknown_body():
    with pytest.raises(ValueError, match=r"^popcount_planes: target must be simulation or synthesis, got 'csa'$"):
        popcount_planes(8, 2, 6, "csa")


@pytest.mark.parametrize(("lanes", "planes"), SMALL + LARGE)
def test_weighted_bits(lanes, planes):
    """Two's complement of so many bits holds every sum, of one bit less it doesn't."""
    weight = lane_weights(lanes, planes)
    low, high = int(weight[weight < 0].sum()), int(weight[weight > 0].sum())
    top = 1 << weighted_bits(lanes, planes) - 1
    assert -top <= low
    assert high < top
    assert low < -top // 2 or high >= top // 2


def words(lanes: int, planes: int, number: int) -> list[int]:
    """Words of matches: none, all, each lane alone and all but it, each group, random ones."""
    draw = random.Random(lanes)
    full = (1 << lanes) - 1
    of_groups = [((1 << n) - 1) << low for low, n in lane_groups(lanes, planes)]
    values = [0, full, *of_groups, *(full ^ group for group in of_groups), *(1 << k for k in range(lanes))]
    return values + [full ^ 1 << k for k in range(lanes)] + [draw.getrandbits(lanes) for _ in range(number)]


def simulate(sizes: tuple[tuple[int, int], ...], number: int) -> None:
    draw = random.Random(1)
    blocks = {f"p{n}_{p}": popcount_planes(n, p, weighted_bits(n, p)) for n, p in sizes}
    with Bench(together("popcounts", blocks)) as bench:
        for lanes, planes in sizes:
            name = f"p{lanes}_{planes}"
            width = weighted_bits(lanes, planes)
            late: list[int] = []
            for word in [*words(lanes, planes, number), *[0] * stages(lanes, planes)]:
                weights = draw.getrandbits(lanes)
                features = ~(weights ^ word) & ((1 << lanes) - 1)
                bench.set(**{f"{name}_features": features, f"{name}_weights": weights})
                bench.tick()
                late.append(word)
                if len(late) < stages(lanes, planes):
                    continue
                then = late.pop(0)
                match = np.array([then >> k & 1 for k in range(lanes)])
                weighted = int(match @ lane_weights(lanes, planes)) % (1 << width)
                assert bench[f"{name}_weighted"] == weighted, (lanes, planes, then)
                assert bench[f"{name}_plain"] == int(match[1:].sum()), (lanes, planes, then)
                assert bench[f"{name}_rest"] == match[0], (lanes, planes, then)


def test_simulated():
    simulate(SMALL + LARGE, 40)


@pytest.mark.slow
@pytest.mark.parametrize("planes", range(2, 9))
def test_simulated_all(planes):
    """Lanes to 80, in steps that skip no size of a group."""
    simulate(tuple((lanes, planes) for lanes in range(planes + 1, 81, planes)), 300)
