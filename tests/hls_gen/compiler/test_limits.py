"""Networks and designs that ask for too much are refused before work begins: these tests take no time."""

from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, signed
from bitloom.golden.layer import Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.memories.memory_map import memory_map
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.generate import generate
from tests.cases import cases
from tests.errors import value_error

SMALL = dict(cases())["dense_33_31"]
WAY_OUT = "(environment variable BITLOOM_MAX_{} sets another limit)"
SIDE_BY_SIDE = f"what works side by side must be <= 2,048 {WAY_OUT.format('WIDTH')}"


def large(side: int, encoding=BIPOLAR, kernel=3) -> Model:
    """One layer on a map of side x side, with a handful of weights."""
    layer = Conv(name="conv", out_channels=1, kernel=(kernel, kernel))
    source = Map(height=side, width=side, channels=1, encoding=encoding)
    weight = np.ones((1, kernel, kernel, 1), np.int8)
    return Model(Network(name="large", input=source, layers=(layer,)), {"conv": {"weight": weight}})


def test_maps_that_are_too_large_are_refused():
    rule = f"large: conv: taps of all windows of a layer must be <= 4,194,304 {WAY_OUT.format('TAPS')}"
    for call in (lambda model: plan(model, (Npu.of(),)), lambda model: size_memories("large", [model], (Npu.of(),))):
        with value_error(f"{rule}, got 143,856,036"):
            call(large(4000))
    rule = f"large: input: bits of an image must be <= 16,777,216 {WAY_OUT.format('FRAME_BITS')}"
    with value_error(f"{rule}, got 8,000,000,000,000,000,000"):
        plan(large(10**9, signed(8)), (Npu.of(),))


def test_pools_count_too():
    model = large(40)
    pool = MaxPool(name="pool", kernel=(9, 9), stride=(1, 1))
    with_pool = Model(replace(model.network, layers=(*model.network.layers, pool)), model.arrays)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BITLOOM_MAX_TAPS", "20000")
        with value_error(
            f"large: pool: taps of all windows of a layer must be <= 20,000 {WAY_OUT.format('TAPS')}, got 72,900"
        ):
            plan(with_pool, (Npu.of(),))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kgp": 100_000}, f"kgp: {SIDE_BY_SIDE}, got 100,000"),
        ({"kfp": 65_535}, f"kfp: {SIDE_BY_SIDE}, got 65,535"),
        ({"pfp": 10**9}, f"pfp: {SIDE_BY_SIDE}, got 1,000,000,000"),
        (
            {"kfp": 1024, "kgp": 129},
            f"arrays: lanes of all NPUs must be <= 131,072 {WAY_OUT.format('LANES')}, got 132,096",
        ),
    ],
)
def test_foldings_that_are_too_parallel_are_refused(parameters, message):
    npu = Npu.of(**parameters, acc_bits=32)
    with value_error(f"d: {message}"):
        Design(name="d", npus=(npu,))
    with value_error(f"{SMALL.network.name}: {message}"):
        size_memories("d", [SMALL], (npu,))


def test_whoever_means_it_may(monkeypatch):
    monkeypatch.setenv("BITLOOM_MAX_WIDTH", "100000")
    monkeypatch.setenv("BITLOOM_MAX_LANES", "1000000")
    assert Design(name="d", npus=(Npu.of(kgp=100_000),)).npus[0].array.kgp == 100_000


def test_memories_that_are_too_large_are_refused():
    npu = Npu.of(kfp=32, kgp=32, kernel_rows=1 << 23)
    bits = sum(memory.depth * memory.width for memory in memory_map(npu)) + npu.array.word_bits * (256 + 256 + 2 * 16)
    rule = f"d: memories: bits of all memories must be <= 4,294,967,296 {WAY_OUT.format('MEMORY_BITS')}"
    with value_error(f"{rule}, got {bits:,}"):
        generate(Design(name="d", npus=(npu,)))
