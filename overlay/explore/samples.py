"""Designs that the area model is fitted to, and others that it is tried on: small, random, the same for every seed.

Each is a chain of up to three NPUs that differ, so that one synthesis tells of each kind of block several times.
"""

import random

from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import cascade, pipeline, ring

MOST_LANES = 400
"""Lanes of an NPU at most, so that a synthesis takes less than half a minute."""


def samples(count: int, seed: int) -> list[Design]:
    """So many random designs; the same seed gives the same ones."""
    rng = random.Random(seed)
    return [_design(rng, f"sample_{seed}_{k}", integer=k % 2 == 1) for k in range(count)]


def _design(rng: random.Random, name: str, integer: bool) -> Design:
    """A random chain, with the integer engine or with the binary one."""
    chain = rng.choice([pipeline, pipeline, pipeline, cascade, ring])
    features = rng.choice([8, 8, 4, 3, 2])
    npus = chain([(_integer(rng, features) if integer else _binary(rng, k == 0)) for k in range(rng.randint(1, 3))])
    closed = "ring" in npus[0].inlets
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
    return _common(rng, npu | {"accumulators": rng.choice([2, 16, 64, 128]) if several else 1})


def _integer(rng: random.Random, bits: int) -> Npu:
    """A random NPU of the integer engine, for features of so many bits."""
    npu = {"engine": "integer", "feature_bits": bits, "weight_bits": rng.choice([2, 3, 4, 8]), "shift_bits": 0}
    npu["multiplier_bits"], npu["bias_fraction_bits"] = rng.choice([(0, 0), (0, 8), (4, 0), (16, 0), (31, 16)])
    return _common(rng, npu | {"kfp": rng.choice([1, 2, 3, 4, 8, 16]), "accumulators": rng.choice([1, 1, 16])})


def _common(rng: random.Random, given: dict) -> Npu:
    """An NPU with what is ``given``; the rest is random."""
    integer = given.get("engine") == "integer"
    kgp = rng.randint(1, max(1, min(24, (48 if integer else MOST_LANES) // given["kfp"])))
    ol = rng.choice([n for n in (1, 1, 2, 3, 4, 8) if n <= kgp])
    pool = rng.random() < 0.4
    power = lambda low, high: 1 << rng.randint(low, high)  # noqa: E731
    made = Npu(
        **given,
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
    least = 24 if integer else max(made.least_acc_bits, 8) + rng.randint(1, 5)
    return Npu(**{**made.__dict__, "acc_bits": max(least, made.least_acc_bits)})
