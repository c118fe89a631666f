"""The flow model's main property: cycles, beats and waits of random networks are those of the hardware, to the cycle.

Foldings are chosen so that nothing is ideal: results that leave slowly, narrow pools, words cut and put together, small
tuple memories, buffers and spill stores.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from bitloom.driver.accelerator import Accelerator
from bitloom.golden.kernels import packed
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Network
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.flow import Waits, simulate
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.plan import Plan, plan
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.virtual.board import activate
from tests.cases import case_map
from tests.networks import IntegerChoices, integer_networks, networks, random_images, random_integer_model, random_model
from tests.simulated import overlay

DATAFLOWS = st.sampled_from(["output_stationary", "auto"])

BINARY = Npu.of(
    acc_bits=24, layers=4, tuple_words=128, pool_words=256, taps=8192, olds=8192, jumps=4096, pool_taps=2048,
    pool_olds=2048, kernel_rows=1 << 15, threshold_rows=2048, map_words=512,
)  # fmt: skip
INTEGER = BINARY.changed(engine="integer", feature_bits=8, weight_bits=8, shift_bits=0, acc_bits=32, tuple_words=256,
    pool_taps=1 << 14, pool_olds=1 << 14,
)  # fmt: skip
FORMER = {
    "window_former": True, "former_channels": 3, "former_column": 12, "former_columns": 5, "former_line": 15,
}  # fmt: skip
"""A window former; tests/hls_gen/compiler/test_joined_taps.py has networks for it, others pass it by."""
FIRST = {"inlets": ("host", "ring"), "outlets": ("ring", "host")}
NEXT = {"inlets": ("ring",), "outlets": ("ring", "host")}


def ring(first: Npu, *others: Npu) -> tuple[Npu, ...]:
    return (first.changed(**FIRST), *(npu.changed(**NEXT) for npu in others))


DESIGNS = {
    "integer": Design(name="integer", npus=(INTEGER.changed(kfp=3, kgp=8, pfp=2, ol=5, **FORMER),)),
    "ring": Design(
        name="ring", spill_words=4,
        npus=ring(
            BINARY.changed(kfp=4, kgp=5, pfp=4, ol=2), BINARY.changed(kfp=6, kgp=3, pfp=3, ol=3, buffer_words=8)
        ),
    ),
    "binary": Design(name="binary", npus=(BINARY.changed(kfp=20, kgp=8, pfp=8, ol=3, planes=8, tuple_words=1024),)),
    "raster": Design(name="raster", npus=(BINARY.changed(kfp=5, kgp=6, pfp=3, ol=2, raster=True, tuple_words=1024),)),
    "accumulators": Design(
        name="accumulators", npus=(INTEGER.changed(kfp=4, kgp=6, pfp=3, ol=2, accumulators=16, tuple_words=1024),)
    ),
    "wide": Design(name="wide", stream_bits=64, npus=(INTEGER.changed(kfp=16, kgp=12, pfp=5, ol=12),)),
    "integer_ring": Design(
        name="integer_ring", spill_words=2,
        npus=ring(
            INTEGER.changed(kfp=4, kgp=6, pfp=2, ol=1), INTEGER.changed(kfp=3, kgp=8, pfp=3, ol=4, buffer_words=32)
        ),
    ),
    "without_pool": Design(
        name="without_pool", spill_words=4,
        npus=ring(
            INTEGER.changed(kfp=4, kgp=5, ol=2, pool=False),
            INTEGER.changed(kfp=6, kgp=3, ol=3, pool=False, buffer_words=8),
        ),
    ),
    "one_memory": Design(
        name="one_memory", spill_words=4,
        npus=ring(
            BINARY.changed(kfp=4, kgp=5, pfp=4, ol=2, one_memory=True),
            BINARY.changed(kfp=9, kgp=1, pfp=3, buffer_words=8, kernel_binariser=True, one_memory=True),
        ),
    ),
    "one_memory_groups": Design(
        name="one_memory_groups",
        npus=(INTEGER.changed(kfp=9, kgp=3, weight_bits=2, pfp=3, ol=2, accumulators=16, tuple_words=1024,
                      one_memory=True),),
    ),
    "ring_of_3": Design(
        name="ring_of_3", spill_words=2,
        npus=ring(
            BINARY.changed(kfp=8, kgp=8, pfp=8, ol=8, buffer_words=4), BINARY.changed(kfp=8, kgp=8, pfp=8, ol=8),
            BINARY.changed(kfp=5, kgp=7, pfp=3, ol=1, buffer_words=32),
        ),
    ),
}  # fmt: skip
DESIGNS["planes_former"] = Design(
    name="planes_former", stream_bits=64, npus=(DESIGNS["binary"].npus[0].changed(kfp=37, raster=True, **FORMER),)
)
DESIGNS["ring_former"] = Design(
    name="ring_former",
    spill_words=4,
    npus=ring(
        BINARY.changed(kfp=18, kgp=5, pfp=4, ol=2, accumulators=16, **FORMER), BINARY.changed(kfp=6, kgp=3, pfp=3)
    ),
)
DESIGNS["wide_former"] = Design(
    name="wide_former",
    stream_bits=64,
    npus=(INTEGER.changed(kfp=16, kgp=12, pfp=5, ol=12, **{**FORMER, "former_channels": 4}),),
)
QUICK = ("integer", "ring")
"""Designs of the default tier."""
BATCHES = (1, 2, 4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("flow_hardware")


def compare(design: str, folder: Path, data: st.DataObject) -> bool:
    """Whether the network that is drawn fits the design and was compared."""
    bit, manifest = overlay(DESIGNS[design], folder)
    npus = manifest.npus
    integer = npus[0].engine == "integer"
    binary = networks(input_bits=npus[0].array.planes or 8)
    network = data.draw(integer_networks(IntegerChoices()) if integer else binary)
    seed = data.draw(st.integers(0, 2**32 - 1))
    order = "raster" if npus[0].sequencer.raster else data.draw(st.sampled_from(["pull", "raster", "columns"]))
    dataflow = data.draw(DATAFLOWS) if npus[0].array.accumulators > 1 else "output_stationary"
    chunk = data.draw(st.sampled_from([1, 2, 1000, "lines"]))
    model = random_integer_model(network, seed, npus[0].array.acc_bits) if integer else random_model(network, seed)
    choices = CompileChoices(map_order=order, dataflow=dataflow)
    if chunk == "lines":
        choices, chunk = replace(choices, chunk={"pull": "", "raster": "rows", "columns": "columns:1"}[order]), None
    try:
        program = compile_model(model, manifest, choices, chunk=chunk)
    except ValueError:  # does not fit this design
        return False
    made = plan(model, npus, choices, chunk=chunk)
    check(made, manifest, bit, program, random_images(network, max(BATCHES), seed))
    return True


TIGHT = Design(name="tight", npus=(BINARY.changed(kfp=8, kgp=8, pfp=8, ol=8, tuple_words=2),))


def test_a_tuple_memory_of_two_words(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How soon a word that was given back is written again decides the rate: a cycle more or less is 359 cycles more or
    less in four frames (`hls_gen.compiler.flow.streams.GIVE_BACK`)."""
    layers = (
        Conv(name="conv_1", out_channels=8, kernel=(2, 2), stride=(2, 2)),
        Threshold(name="act_1"),
        Dense(name="dense_2", out_channels=8),
    )
    model = random_model(Network(name="tight", input=case_map(12, 12, 8), layers=layers), 0)
    monkeypatch.setitem(DESIGNS, "tight", TIGHT)
    bit, manifest = overlay(TIGHT, folder)
    choices = CompileChoices(map_order="pull")
    program, made = compile_model(model, manifest, choices), plan(model, manifest.npus, choices)
    check(made, manifest, bit, program, random_images(model.network, max(BATCHES), 1))


def check(made: Plan, manifest: Manifest, bit: Path, program: Program, images: np.ndarray) -> None:
    """Cycles of every batch, and where the cycles of every NPU go; and the results of the largest."""
    npus = manifest.npus
    spill_words = DESIGNS[manifest.name].spill_words
    found = simulate(system(made, npus, stream_bits=manifest.stream_bits, spill_words=spill_words), max(BATCHES))
    board = activate()
    board.stall()
    counters = {}
    try:
        with Accelerator(bit) as accelerator:
            accelerator.load(program)
            for frames in BATCHES:
                accelerator.clear_counters()
                results = accelerator.predict(images[:frames], frames)
                counters[frames] = accelerator.counters()
    finally:
        board.close()
    wanted = packed.forward(made.lowered.model, images)
    np.testing.assert_array_equal(results, program.tail.forward(wanted) if program.tail else wanted)
    assert {n: c["cycles"] for n, c in counters.items()} == {n: found.left[n - 1] + 1 for n in BATCHES}
    assert found.latency == counters[1]["cycles"]
    for n, waits in found.npus.items():
        parts = ("beats", "wait_input", "wait_room", "wait_table", *("wait_memory",) * npus[n].array.one_memory)
        each = {name: (counters[4][f"npu{n}_{name}"] - counters[2][f"npu{n}_{name}"]) / 2 for name in parts}
        assert Waits(**each) == waits


def per_design(count: int) -> settings:
    return settings(
        max_examples=count, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck), print_blob=True,
    )  # fmt: skip


def compare_many(design: str, folder: Path, count: int) -> int:
    """How many of ``count`` networks were compared."""
    compared = []

    @per_design(count)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        compared.append(compare(design, folder, data))

    run()
    return sum(compared)


@pytest.mark.parametrize("design", QUICK)
def test_random_networks(design: str, folder: Path) -> None:
    assert compare_many(design, folder, 12) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_many_random_networks(design: str, folder: Path) -> None:
    assert compare_many(design, folder, 40) >= 5
