"""The flow model of the reference networks, without simulation: figures that hardware was measured to have."""

from dataclasses import asdict, replace
from functools import cache

import pytest

from bitloom.golden import zoo as networks
from bitloom.hls_gen.compiler.flow import Result, System, simulate
from bitloom.hls_gen.compiler.flow.host import FRAMES_IN_FLIGHT, HEADER_BITS, HELD_WORDS, JUDGING
from bitloom.hls_gen.compiler.flow.of_plan import pe_latency, system, unit
from bitloom.hls_gen.compiler.flow.streams import LUT_RAM_WORDS
from bitloom.hls_gen.compiler.flow.system import CREDITS
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.array.convolver import LATENCY, processing_element
from bitloom.hls_gen.rtl.pool import pool, pool_integer
from bitloom.hls_gen.rtl.pool.divide import LATENCY as DIVIDE_LATENCY
from bitloom.hls_gen.rtl.primitives import fifo
from bitloom.hls_gen.rtl.results import requantise
from bitloom.hls_gen.rtl.results import results as results_unit
from bitloom.hls_gen.rtl.shell import loader, top
from bitloom.overlay.build.reference_designs import DIGITS, INTEGER

FOLDINGS = {"digits-cnn": DIGITS, "cifar-quick-int8": INTEGER}


@cache
def of_reference(name: str, order: str) -> System:
    """A reference network on one NPU whose memories are as large as it needs."""
    model = networks.load(name)
    design = size_memories(name, [model], FOLDINGS[name], map_order=order)
    npus = [asdict(npu) for npu in design.npus]
    return system(plan(model, npus, order), npus, stream_bits=design.stream_bits)


@cache
def figures(name: str, order: str) -> Result:
    return simulate(of_reference(name, order), 2)


@pytest.mark.parametrize(("name", "order", "cycles", "latency"), [
    ("digits-cnn", "auto", 1_358, 1_378),
    ("cifar-quick-int8", "pull", 220_537, 220_560),
    ("cifar-quick-int8", "raster", 221_011, 221_034),
])  # fmt: skip
def test_figures_of_the_reference_designs(name: str, order: str, cycles: int, latency: int) -> None:
    """As tests/overlay/study/test_bench.py measures them."""
    found = figures(name, order)
    assert (found.cycles_per_frame, found.latency) == (cycles, latency)


def test_waits_of_the_reference_design() -> None:
    """Raster order by tables: taps that only take in a tuple cost a cycle each."""
    found = figures("cifar-quick-int8", "raster").npus[0]
    assert (found.beats, found.wait_input, found.wait_room, found.wait_table) == (220_512, 83, 0, 416)


def test_stores_are_as_full_as_the_compiler_says() -> None:
    """The map store never holds more than the largest map; a tuple memory is filled to the last word."""
    made, stores = of_reference("cifar-quick-int8", "pull"), figures("cifar-quick-int8", "pull").stores
    assert stores["npu0.tuple_words"] == made.units[0].tuple_words == 512
    assert 0 < stores["npu0.map_words"] <= made.units[0].map_words == 1024
    assert 0 < stores["npu0.pool_words"] <= made.units[0].pool_words


PES = [
    Npu(kfp=kfp, planes=planes, collect=collect, accumulate=accumulate, shift_bits=0, acc_bits=24)
    for accumulate in ("popcount", "or", "both")
    for kfp, planes, collect in (
        (1, 0, 0), (64, 0, 0), (65, 0, 0), (200, 2, 0), (96, 2, 0), (99, 2, 0), (130, 8, 0), (640, 8, 0), (32, 0, 64),
        (32, 0, 96), (96, 0, 96),
    )
    if accumulate != "or" or not planes
] + [replace(INTEGER, kfp=kfp) for kfp in (1, 4, 5, 16, 17, 64, 65)]  # fmt: skip


@pytest.mark.parametrize("npu", PES, ids=lambda n: f"{n.engine}-{n.accumulate}-{n.kfp}-{n.planes}-{n.collect}")
def test_latency_of_the_array(npu: Npu) -> None:
    assert pe_latency(asdict(npu)) == processing_element(npu)[1]
    assert unit(asdict(npu)).array_latency == LATENCY + processing_element(npu)[1]


def test_latencies_and_depths_are_those_of_the_hardware() -> None:
    binary, integer = unit(asdict(Npu())), unit(asdict(INTEGER))
    assert (binary.activation_latency, integer.activation_latency) == (1, len(requantise.STAGES))
    assert (binary.pool_latency, integer.pool_latency) == (1, 1 + DIVIDE_LATENCY)
    assert binary.pool_room == pool.FIFO_WORDS - 4 - 1  # hls_gen/rtl/primitives/fifo.py: margin 4 by default
    assert integer.pool_room == pool_integer.FIFO_WORDS - pool_integer.MARGIN - 1
    assert (LUT_RAM_WORDS, CREDITS) == (fifo.LUT_RAM_DEPTH, results_unit.CREDITS)
    assert (FRAMES_IN_FLIGHT, HELD_WORDS, HEADER_BITS) == (loader.FRAMES_IN_FLIGHT, top.MAP_HELD, 4 * 32)
    assert loader.STATES.index("FRAME") - loader.STATES.index("HEADER") > JUDGING == 2  # RANGE, JUDGE


def test_stores_of_an_npu_without_pool_and_ring() -> None:
    assert unit(asdict(replace(INTEGER, pool=False))).pfp == 0
    assert unit(asdict(INTEGER)).buffer_words == 0
    ringed = replace(INTEGER, inlets=("host", "ring"), outlets=("ring", "host"), buffer_words=32)
    assert unit(asdict(ringed)).buffer_words == 32
    assert unit(asdict(replace(Npu(), binariser_bits=5))).host_word_bits == 5 * Npu().kfp
