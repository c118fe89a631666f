"""Designs that the area model is fitted to: small, random, the same for every seed.

Each is a chain of up to three NPUs that differ, so that one synthesis tells of each kind of block several times. Beside
them there are blocks that differ in one thing from a usual one, so that the fit sees what that costs.
"""

import random
from typing import Any

from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import cascade, pipeline, ring
from tests.npus import integer_npu

MOST_LANES = 200
"""Lanes of an NPU at most, so that a synthesis takes a minute or two; of the integer engine INTEGER_LANES."""
INTEGER_LANES = 32
FEATURES = (8, 3, 8, 4, 8, 2)
"""Bits of a feature in one integer design after another."""
MEMORIES = ("tuple_words", "pool_words", "taps", "olds", "jumps", "pool_taps", "pool_olds", "kernel_rows")
SIZES = dict.fromkeys((*MEMORIES, "threshold_rows", "map_words"), 64)
USUAL = integer_npu(8, 8, 24, kfp=2, kgp=2, pfp=1, ol=1, layers=4, **SIZES)
"""An NPU from which those of `directed` differ in few things."""
PLANES: dict[str, Any] = {"engine": "binary", "planes": 8, "feature_bits": 1, "weight_bits": 1, "acc_bits": 13}
"""Fields of a binary NPU that reads bit planes."""
NARROW = ((2, 2, (4, 8, 32)), (2, 3, (8,)), (2, 4, (8, 32)), (4, 2, (16,)), (3, 3, (4, 8, 16, 32)), (3, 4, (8, 32)))
NARROW += ((4, 4, (4, 8, 32)), (3, 5, (8,)), (2, 6, (8,)), (6, 2, (24,)), (5, 3, (16,)))
"""Bits of a feature and of a weight whose product LUTs make, and lanes of PEs that multiply them."""
DIRECTED: dict[str, tuple[dict[str, Any], ...]] = {
    "pe_integer_dsp": ({}, {"kfp": 8}),
    "pe_integer_lut": (
        *(
            {"kfp": lanes, "feature_bits": feature, "weight_bits": weight}
            for feature, weight, widths in NARROW
            for lanes in widths
        ),
        {"kfp": 8, "feature_bits": 3, "weight_bits": 3, "acc_bits": 18},
        {"kfp": 16, "feature_bits": 4, "weight_bits": 4, "acc_bits": 30},
        {"kfp": 16, "feature_bits": 2, "weight_bits": 2, "accumulators": 16},
        {"kfp": 8, "feature_bits": 4, "weight_bits": 4, "accumulators": 16},
    ),
    "pe_planes": tuple({**PLANES, "kfp": lanes} for lanes in (18, 36, 48, 90, 112)),
    "results_integer": (
        {},
        {"multiplier_bits": 0},
        {"half_even": 1},
        {"round_twice": 1},
        {"multiplier_bits": 24},
        {"multiplier_bits": 31},
        {"bias_fraction_bits": 16},
        {"multiplier_bits": 31, "bias_fraction_bits": 16},
    ),
}
"""Kind of block -> fields of the NPU that differ."""


def directed() -> list[tuple[str, Design]]:
    """Kinds of blocks, and for each a design that has one."""
    return [
        (kind, Design(name=f"{kind}_{k}", npus=(USUAL.changed(**fields),)))
        for kind, differences in DIRECTED.items()
        for k, fields in enumerate(differences)
    ]


def samples(count: int, seed: int) -> list[Design]:
    """So many random designs; the same seed gives the same ones."""
    rng = random.Random(seed)
    return [_design(rng, f"sample_{seed}_{k}", (0, FEATURES[k // 2 % len(FEATURES)])[k % 2]) for k in range(count)]


def _design(rng: random.Random, name: str, bits: int) -> Design:
    """A random chain, with the integer engine for features of so many bits, or 0: with the binary one."""
    chain = rng.choice([pipeline, pipeline, pipeline, cascade, ring])
    npus = chain([(_integer(rng, bits) if bits else _binary(rng, k == 0)) for k in range(rng.randint(1, 3))])
    closed = "ring" in npus[0].ports.inlets
    return Design(
        name=name, stream_bits=rng.choice([32, 64, 64]), npus=npus, spill_words=rng.choice([32, 256]) * closed
    )


def _binary(rng: random.Random, first: bool) -> Npu:
    """A random NPU of the binary engine; only the first of a chain reads bit planes."""
    planes = rng.choice([0, 8, 8, 4]) if first else 0
    kfp = (planes + 1) * rng.randint(1, 3) if planes else rng.choice([2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128])
    accumulate = rng.choice(["popcount"] * 8 + ["or", "both"]) if not planes else "popcount"
    shift_bits = 3 if first and not planes and accumulate != "or" and rng.random() < 0.3 else 0
    several = rng.random() < 0.3
    npu = {"kfp": kfp, "planes": planes, "shift_bits": shift_bits, "accumulate": accumulate}
    if not planes and kfp >= 8 and rng.random() < 0.25:  # maps of several bits, each weight stored once
        npu |= {"lanes_per_weight": rng.choice([2, 3]), "lane_step": rng.choice([1, 2])}
    return _common(rng, npu | {"accumulators": rng.choice([2, 16, 64, 128]) if several else 1})


def _integer(rng: random.Random, bits: int) -> Npu:
    """A random NPU of the integer engine, for features of so many bits."""
    npu = {"engine": "integer", "feature_bits": bits, "weight_bits": rng.choice([8, 8, 4, 3, 2]), "shift_bits": 0}
    npu["multiplier_bits"], npu["bias_fraction_bits"] = rng.choice([(0, 0), (0, 8), (4, 0), (16, 0), (31, 16)])
    npu |= rng.choice([{}, {}, {"half_even": 1}, {"round_twice": 1}])
    return _common(rng, npu | {"kfp": rng.choice([1, 2, 3, 4, 8, 16]), "accumulators": rng.choice([1, 1, 16])})


def _common(rng: random.Random, given: dict) -> Npu:
    """An NPU with what is ``given``; the rest is random."""
    integer = given.get("engine") == "integer"
    kgp = rng.randint(1, max(1, min(24, (INTEGER_LANES if integer else MOST_LANES) // given["kfp"])))
    ol = rng.choice([n for n in ((1, 1, 2) if integer else (1, 1, 2, 3, 4, 8)) if n <= kgp])  # lanes of its are large
    pool = rng.random() < 0.4
    power = lambda low, high: 1 << rng.randint(low, high)  # noqa: E731
    values = given | dict(
        kgp=kgp,
        ol=ol,
        pfp=rng.choice([1, 2, 4, 8, 16]),
        acc_bits=32,
        pool=pool,
        raster=rng.random() < 0.25,
        layers=rng.choice([2, 2, 2, 5, 9]),
        tuple_words=power(2, 10),
        pool_words=power(1, 8),
        pool_tuple_words=rng.choice([1, 2, 8, 64]),
        buffer_words=power(1, 5),
        **{name: rng.choice([2, 2, 60, 300, 1000]) for name in ("taps", "olds", "jumps", "pool_taps", "pool_olds")},
        kernel_rows=rng.choice([9, 30, 60, 100, 300, 1000]),
        threshold_rows=rng.choice([4, 16, 40, 100, 300]),
        map_words=rng.choice([16, 100, 300]),
        windows=rng.choice([2, 30, 900]),
        window_taps=rng.choice([2, 9]),
        groups=rng.choice([2, 4, 64]),
        levels=rng.choice([2, 2, 3]),
        input_words=rng.choice([8, 200, 2000]),
        kernel_ram=rng.choice(["auto", "auto", "block"]),
    )
    if not pool:
        values = {name: value for name, value in values.items() if name != "pfp" and not name.startswith("pool_")}
    npu = Npu.of(**values)
    least = rng.randint(18, 30) if integer else max(npu.array.least_acc_bits, 8) + rng.randint(1, 5)
    return npu.changed(acc_bits=max(least, npu.array.least_acc_bits))
