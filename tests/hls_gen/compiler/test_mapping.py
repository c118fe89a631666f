"""Mapping: NPUs of layers in chains and rings, the best runs against all there are, every message."""

import random
from itertools import product
from math import inf

import pytest

from bitloom.hls_gen.compiler.mapping import assign, check_mapping
from bitloom.hls_gen.compiler.ways import outlet_between
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import cascade, looped, pipeline, ring
from tests.errors import value_error

ALONE = [Npu.of()]
PIPELINE, CASCADE, RING = (join([Npu.of()] * 3) for join in (pipeline, cascade, ring))
NAMES = ["a", "b", "c", "d", "e", "f", "g"]


def equal(layers: int, npus: int) -> list[list[int]]:
    """Beats of layers that are alike on NPUs that are alike."""
    return [[10] * npus] * layers


# The way of a map.


def each(*groups):
    """A case for each of the last values of a group: (chain, value, [a, b]) is (chain, value, a), (chain, value, b)."""
    return [(*shared, last) for *shared, lasts in groups for last in lasts]


@pytest.mark.parametrize(
    ("chain", "outlet", "way"),
    each(
        (ALONE, "loop", [(0, 0)]),
        (CASCADE, "loop", [(0, 0), (2, 2)]),
        (CASCADE, "ring", [(0, 1), (1, 2)]),
        (PIPELINE, "ring", [(0, 1), (1, 2)]),
        (RING, "ring", [(0, 1), (1, 2), (2, 0)]),
    ),
)
def test_way(chain, outlet, way):
    assert outlet_between(chain, "a", *way) == outlet


@pytest.mark.parametrize(
    ("chain", "outlets", "way"),
    each(
        (PIPELINE, "ring", [(0, 0), (0, 2), (1, 0)]),
        (PIPELINE, "host", [(2, 0)]),
        (CASCADE, "ring, loop, host", [(0, 2)]),
        (CASCADE, "loop, host", [(2, 1), (2, 0)]),
        (RING, "ring, host", [(1, 1), (0, 2), (2, 1)]),
    ),
)
def test_no_way(chain, outlets, way):
    here, there = way
    with value_error(f"a: NPU {here} must have an outlet to NPU {there}, got {outlets}"):
        outlet_between(chain, "a", here, there)


def test_an_npu_alone_does_not_follow_itself():
    """Outlet ring leads to another NPU: where there is none, it leads nowhere."""
    with value_error("a: NPU 0 must have an outlet to NPU 0, got ring, host"):
        outlet_between([Npu.of(inlets=("host", "ring"), outlets=("ring", "host"))], "a", 0, 0)


# Given mappings.


@pytest.mark.parametrize(
    ("chain", "mapping"),
    each(
        (ALONE, [[0], [0, 0, 0]]),
        (PIPELINE, [[0, 1, 2]]),
        (CASCADE, [[0], [0, 0, 0], [0, 0, 1], [0, 1, 1, 2], (0, 1, 2)]),
        (RING, [[0], [0, 1], [0, 1, 2, 0, 1, 2, 0]]),
    ),
)
def test_mappings_that_are_possible(chain, mapping):
    check_mapping(chain, NAMES[: len(mapping)], mapping, is_chain=True)


@pytest.mark.parametrize(
    ("chain", "mapping", "message"),
    [
        (CASCADE, [0], "mapping: an NPU 0..2 must be given for each of 2 layers, got [0]"),
        (CASCADE, [0, 1, 2], "mapping: an NPU 0..2 must be given for each of 2 layers, got [0, 1, 2]"),
        (CASCADE, [0, 3], "mapping: an NPU 0..2 must be given for each of 2 layers, got [0, 3]"),
        (CASCADE, [0, -1], "mapping: an NPU 0..2 must be given for each of 2 layers, got [0, -1]"),
        (ALONE, [0, 1], "mapping: an NPU 0..0 must be given for each of 2 layers, got [0, 1]"),
        (CASCADE, [1, 1], "a: the first layer must be computed by NPU 0, got NPU 1"),
        (RING, [2, 0], "a: the first layer must be computed by NPU 0, got NPU 2"),
        (CASCADE, [0, 2], "a: NPU 0 must have an outlet to NPU 2, got ring, loop, host"),
        (RING, [0, 0], "a: NPU 0 must have an outlet to NPU 0, got ring, host"),
        (PIPELINE, [0, 1], "b: the last layer needs an NPU with outlet host, got NPU 1"),
    ],
)
def test_mappings_that_are_not(chain, mapping, message):
    with value_error(message):
        check_mapping(chain, NAMES[:2], mapping, is_chain=True)


def test_the_layer_without_a_way_is_named():
    with value_error("c: NPU 1 must have an outlet to NPU 0, got ring, loop, host"):
        check_mapping(CASCADE, NAMES[:4], [0, 1, 1, 0], is_chain=True)


# Mappings that are found.


@pytest.mark.parametrize("layers", [1, 2, 3, 7])
@pytest.mark.parametrize("count", [2, 3, 5])
def test_a_ring_takes_layers_by_turns(layers, count):
    """Whatever they cost."""
    chain = ring([Npu.of()] * count)
    mapping = assign(chain, NAMES[:layers], [[1000 if i == n else 1 for n in range(count)] for i in range(layers)])
    assert mapping == [i % count for i in range(layers)]


@pytest.mark.parametrize(
    ("beats", "expected"),
    [
        ([10, 10, 10], [0, 1, 2]),
        ([10, 10, 10, 10, 10, 10], [0, 0, 1, 1, 2, 2]),
        ([30, 10, 10, 10], [0, 1, 2, 2]),  # else NPU 1 would compute its first layer as slowly as NPU 0
        ([10, 10, 10, 30], [0, 0, 1, 2]),
        ([10, 50, 10], [0, 1, 2]),
        ([50, 10, 10, 50], [0, 1, 1, 2]),
        ([7], [0]),
    ],
)
def test_the_busiest_has_as_little_as_can_be(beats, expected):
    mapping = assign(CASCADE, NAMES[: len(beats)], [[b] * 3 for b in beats])
    runs = [sum(b for b, n in zip(beats, mapping) if n == k) for k in range(3)]
    assert max(runs) == max(sum(b for b, n in zip(beats, expected) if n == k) for k in range(3))
    assert max(mapping) == max(expected)


@pytest.mark.parametrize("layers", [2, 4])
def test_a_pipeline_of_another_length(layers):
    with value_error(
        f"{NAMES[layers - 1]}: a chain of 3 NPUs must have room for all {layers} layers, each NPU for those of its "
        "engine, without loop for one, and end at one with outlet host"
    ):
        assign(PIPELINE, NAMES[:layers], equal(layers, 3))


def test_a_chain_that_is_cut_off():
    """The one NPU with outlet host has no NPU before that leads on."""
    chain = [Npu.of(inlets=("host", "loop"), outlets=("loop",)), Npu.of(inlets=("ring",), outlets=("host",))]
    with value_error("a: NPU 0 must have an outlet to NPU 1, got loop"):
        assign(chain, NAMES[:2], equal(2, 2))


def possible(chain: list[dict], names: list[str], mapping: tuple[int, ...]) -> bool:
    try:
        check_mapping(chain, names, mapping, is_chain=True)
    except ValueError:
        return False
    return True


@pytest.mark.sample(40)
@pytest.mark.parametrize("seed", range(150))
def test_best_of_all_mappings(seed):
    """Of chains of any make: the busiest NPU has no more to do than in any mapping that is possible; and if there is
    none, none is found."""
    draw = random.Random(seed)
    count, layers = draw.randint(1, 4), draw.randint(1, 5)
    chain = []
    for n in range(count):
        loop = ["loop"] * (draw.random() < 0.6)
        host = ["host"] * (n == count - 1 or draw.random() < 0.5)
        onward = ["ring"] * (n < count - 1)
        chain.append(Npu.of(inlets=("ring" if n else "host", *loop), outlets=(*onward, *loop, *host)))
    beats = [[draw.randint(1, 9) * draw.choice([1, 1, 10]) for _ in range(count)] for _ in range(layers)]

    def cost(mapping: tuple[int, ...]) -> int:
        return max(sum(row[n] for row, m in zip(beats, mapping) if m == n) for n in range(count))

    names = NAMES[:layers]
    there = [cost(m) for m in product(range(count), repeat=layers) if possible(chain, names, m)]
    if not there:
        with pytest.raises(ValueError, match=r"must have room for all"):
            assign(chain, names, beats)
        return
    assigned = assign(chain, names, beats)
    assert cost(tuple(assigned)) == min(there)


# Rings of both engines.


@pytest.mark.parametrize(("loops", "expected"), [(True, [0, 0, 1, 1, 0]), (False, [0, 1, 0, 1, 0])])
def test_a_layer_stays_where_the_next_npu_has_another_engine(loops, expected):
    """Only where there is a loop: else it goes on, and is refused there."""
    npus = ring([Npu.of(), Npu.of()])
    npus = looped(npus) if loops else npus
    cycles = [[1, inf], [1, inf], [inf, 1], [inf, 1], [1, inf]]
    assert assign(npus, NAMES[:5], cycles, [[0.0] * 2] * 5) == expected
