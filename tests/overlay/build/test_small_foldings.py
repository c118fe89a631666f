"""Networks with as few as one product a sum, on foldings with as few as one lane: every combination of KFP 1, 2, 3 and
8, KGP 1 to 3 and fan-ins of 1 to 4 and 8 is built for its network alone, silent in lint, simulated, and bit-exact, with
both engines.

KFP is below the fan-in, equal to it and above it, a divisor and none. Memories and accumulators get the least sizes
that there are, so that shifts of bit planes that the network has no use for are wider than the accumulator.
"""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.memories.memory_map import memory_map
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.run import run
from bitloom.overlay.virtual.sim import lint
from tests.cases import random_images, random_model
from tests.graph_text import network_of

KFPS = (1, 2, 3, 8)
KGPS = (1, 2, 3)
FAN_INS = (1, 2, 3, 4, 8)
ALL = [(engine, *sizes) for engine in ("binary", "integer") for sizes in product(KFPS, KGPS, FAN_INS)]
QUICK = [("binary", 1, 1, 1), ("binary", 2, 3, 3), ("integer", 1, 1, 1), ("integer", 3, 2, 1)]
"""Engine, KFP, KGP and fan-in of the default tier's."""
FRAMES = 6


def folding(engine: str, kfp: int, kgp: int) -> Npu:
    if engine == "binary":
        return Npu.of(kfp=kfp, kgp=kgp, pfp=kfp, ol=kgp)
    return Npu.of(
        engine="integer", feature_bits=2, weight_bits=2, shift_bits=0, acc_bits=32, kfp=kfp, kgp=kgp, pfp=kfp, ol=1
    )


def network(engine: str, fan_in: int) -> Model:
    """Two dense layers of that fan-in."""
    values, act = ("b1", "act") if engine == "binary" else ("s2", "act s2")
    layers = f"dense_1 {fan_in} {values}, {act}, dense_2 2 {values}"
    net = network_of(f"1x1x{fan_in} {values}", layers, name=f"{engine}_{fan_in}")
    return random_model(net, np.random.default_rng(fan_in))


def check(folder: Path, engine: str, kfp: int, kgp: int, fan_in: int) -> None:
    model = network(engine, fan_in)
    design = size_memories("small", [model], folding(engine, kfp, kgp))
    assert lint(generate(design).text) == []
    build = builds.build(folder, design, [model])
    images = random_images(model, FRAMES, np.random.default_rng(0))
    assert run(build, model, images).bit_exact_frames == FRAMES


def test_parts_of_tuples_behind_claims_ahead_are_silent_in_lint() -> None:
    design = size_memories("small", [network("integer", 8)], folding("integer", 2, 1))
    (npu,) = design.npus
    assert npu.sequencer.tuple_parts
    assert "aheads" in {memory.name for memory in memory_map(npu)}
    assert lint(generate(design).text) == []


@pytest.mark.sample(1)
@pytest.mark.parametrize(("engine", "kfp", "kgp", "fan_in"), QUICK)
def test_small_foldings(engine: str, kfp: int, kgp: int, fan_in: int, tmp_path: Path) -> None:
    check(tmp_path, engine, kfp, kgp, fan_in)


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "kfp", "kgp", "fan_in"), [one for one in ALL if one not in QUICK])
def test_all_small_foldings(engine: str, kfp: int, kgp: int, fan_in: int, tmp_path: Path) -> None:
    check(tmp_path, engine, kfp, kgp, fan_in)
