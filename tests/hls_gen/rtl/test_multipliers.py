"""Multipliers that PEs share: every product of every pair of operands, and PEs that take them, against numpy."""

import itertools

import pytest
from veriloggen import Cat

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.packed_products import most_kernels
from bitloom.hls_gen.rtl.array.multipliers import LATENCY, multipliers
from bitloom.hls_gen.rtl.primitives.block import Block, add, any_of, bits, const, product, width
from bitloom.hls_gen.rtl.primitives.memory import Library
from tests.errors import value_error

from .bench import Bench, together

LANES = 4
SMALL = [(4, 4, 3), (3, 3, 4), (8, 2, 3), (5, 4, 2)]
"""Bits of features, bits of weights, kernels: quick to try whole."""


def npu(feature_bits: int, weight_bits: int, kernels: int, **fields: int) -> Npu:
    given = {"kfp": LANES, "kgp": kernels, "acc_bits": 32, **fields}
    sizes = {"feature_bits": feature_bits, "weight_bits": weight_bits, "kernels_per_multiplier": kernels}
    return Npu.of(engine="integer", shift_bits=0, **sizes, **given)


def judge(one: Npu, library: Library) -> Block:
    """A module that counts through all operands, one a lane and cycle; ``wrong`` once a product was wrong."""
    lanes = one.array.kfp
    lane_bits = one.array.kfp.bit_length() - 1
    size = operands(one)
    f, w, kernels = one.array.feature_bits, one.array.weight_bits, one.array.kernels_per_multiplier
    b = Block(f"judge_{f}x{w}x{kernels}")
    count = b.reg("count", size - lane_bits)
    b.on(None, (count, add(count, 1, width(count))))
    all_of = [b.wire(f"operands_{k}", size, Cat(count, const(k, lane_bits))) for k in range(lanes)]
    features = [b.wire(f"feature_{k}", f, bits(all_of[k], 0, f)) for k in range(lanes)]
    places = itertools.product(range(kernels), range(lanes))
    weights = {(j, k): b.wire(f"weight_{k}_{j}", w, bits(all_of[k], f + j * w, w)) for j, k in places}
    ports = {"features": joined(features), "weights": joined(list(weights.values()))}
    ports |= {f"products_{j}": b.wire(f"products_{j}", lanes * (f + w)) for j in range(kernels)}
    ports |= {f"carries_{j}": b.wire(f"carries_{j}", lanes) for j in range(1, kernels)}
    b.instance(library.get(multipliers, library, one, kernels), "shared", **ports)
    wrong = []
    for (j, k), weight in weights.items():
        late = [b.reg(f"wanted_{k}_{j}_{t}", f + w, init=None) for t in range(LATENCY)]
        b.on(None, (late[0], product(features[k], weight)), *zip(late[1:], late))
        given = bits(ports[f"products_{j}"], k * (f + w), f + w)
        carry = bits(ports[f"carries_{j}"], k, 1) if j else const(0, 1)
        total = b.wire(f"total_{k}_{j}", f + w, add(given, carry, f + w))
        wrong.append(b.wire(f"wrong_{k}_{j}", 1, total != late[-1]))
    begun = b.reg("begun", LATENCY)
    ever = b.output_reg("wrong")
    b.on(None, (begun, Cat(bits(begun, 0, LATENCY - 1), const(1, 1))))
    b.on(bits(begun, LATENCY - 1, 1) & any_of(*wrong), (ever, 1))
    b.output("count_now", width(count), count)
    return b


def joined(parts):
    return Cat(*reversed(parts))


def operands(one: Npu) -> int:
    """Bits of a feature and of its weights."""
    return one.array.feature_bits + one.array.kernels_per_multiplier * one.array.weight_bits


def test_every_product_of_small_operands():
    npus = {f"{f}x{w}x{kernels}": npu(f, w, kernels) for f, w, kernels in SMALL}
    library = Library(32, npus=list(npus.values()))
    with Bench(together("judges", {f"n{name}": judge(one, library) for name, one in npus.items()})) as bench:
        bench.tick((1 << max(map(operands, npus.values()))) // LANES + LATENCY + 1)
        assert {name: bench[f"n{name}_wrong"] for name in npus} == dict.fromkeys(npus, 0)


@pytest.mark.slow
@pytest.mark.parametrize(("feature_bits", "weight_bits"), [(8, 8), (9, 8), (8, 4), (10, 7)])
def test_every_product_of_two_kernels(feature_bits, weight_bits):
    one = npu(feature_bits, weight_bits, 2, kfp=16)
    with Bench(judge(one, Library(32))) as bench:
        bench.tick((1 << operands(one)) // 16 + LATENCY + 1)
        assert bench["count_now"] == LATENCY + 1  # all operands have been there
        assert bench["wrong"] == 0


def test_the_largest_products_of_two_kernels():
    """Where products lie closest: features of 9 bits, weights of 8."""
    one = npu(9, 8, 2, kfp=1)
    library = Library(32)
    with Bench(library.get(multipliers, library, one, 2)) as bench:
        ends = (-256, -255, -1, 0, 1, 255), (-128, -127, -1, 0, 127), (-128, -1, 0, 127)
        for feature, low, high in itertools.product(*ends):
            bench.set(features=feature % 512, weights=(high % 256) << 8 | low % 256)
            bench.tick(LATENCY)
            assert bench["products_0"] == feature * low % (1 << 17)
            assert (bench["products_1"] + bench["carries_1"]) % (1 << 17) == feature * high % (1 << 17)


@pytest.mark.parametrize(
    ("feature_bits", "weight_bits", "kernels"),
    [(8, 8, 2), (9, 8, 2), (10, 8, 1), (4, 4, 3), (8, 4, 2), (3, 3, 4), (2, 2, 6), (18, 2, 2), (19, 2, 1)],
)
def test_how_many_kernels_share_a_multiplier(feature_bits, weight_bits, kernels):
    """As many as leave room for every product in operands of 25 and 18 bits."""
    assert most_kernels(feature_bits, weight_bits) == kernels


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"kernels_per_multiplier": 3},
            "npu: kernels_per_multiplier must be 1..2 for features of 8 and weights of 8 bits, got 3",
        ),
        ({"kernels_per_multiplier": 2, "kgp": 1}, "npu: kernels_per_multiplier must be <= kgp = 1, got 2"),
        ({"kernels_per_multiplier": 0}, "npu: kernels_per_multiplier must be 1..6, got 0"),
    ],
)
def test_refused(given, message):
    with value_error(message):
        Npu.of(**{"engine": "integer", "shift_bits": 0, "feature_bits": 8, "weight_bits": 8, "kgp": 8} | given)
