"""The trained networks CNV and LFC, and all reference designs of several NPUs, on simulated hardware: outputs are those
that a board recorded, and cycles those that the flow model predicts.

Where recorded data are absent the networks have seeded weights, and golden is what they are held against.
"""

from dataclasses import asdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from bitloom.driver.accelerator import Accelerator
from bitloom.golden import zoo as networks
from bitloom.golden.kernels import packed
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.flow import Result, simulate
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.build.build import Build
from bitloom.overlay.build.images import random_images
from bitloom.overlay.build.reference_designs import REFERENCE_DESIGNS
from bitloom.overlay.build.run import Conditions, run
from bitloom.overlay.study.design_figures import FigureTable, measure_design
from bitloom.overlay.study.lane_counts import lanes
from bitloom.overlay.virtual.board import activate
from tests import board_data

FIGURES = {
    "digits-cnn": (1, 512, 1_358, 1_378),
    "digits-cnn-pipeline": (4, 592, 648, 1_078),
    "cifar-quick-int8": (1, 64, 220_538, 220_561),
    "cifar-quick-int8-former": (1, 64, 166_818, 166_983),
    "cifar-quick-int8-cascade3": (3, 192, 94_864, 130_731),
    "cifar-quick-int8-ring2": (2, 128, 132_837, 132_860),
    "bnn-int8-ends": (3, 576, 24_366, 25_337),
    "bnn-int8-ends-ring2": (2, 560, 25_265, 25_286),
    "cnv-w1a1": (9, 2_164, 28_800, 57_788),
    "cnv-w1a1-max": (3, 4_608, 13_248, 23_678),
    "cnv-w1a1-z020": (5, 15_504, 4_418, 8_137),
    "cnv-w1a1-zcu104": (5, 64_192, 1_324, 2_572),
    "cnv-w1a1-ring3": (3, 3_456, 47_809, 48_124),
    "cnv-w1a1-shared": (1, 1_024, 89_059, 89_081),
    "lfc-w1a1": (4, 5_684, 512, 1_601),
}
"""Reference design -> NPUs, lanes, cycles a frame, latency of a frame alone in cycles."""
GOALS: dict[str, dict[str, int]] = {
    "cifar-quick-int8": {"lanes": 64, "cycles_per_frame": 224_922},  # spec B20: 220,512 beats, and 2 %
    "cifar-quick-int8-former": {"lanes": 64, "cycles_per_frame": 168_000},
    "cnv-w1a1": {"lanes": 2_272, "cycles_per_frame": 28_999, "latency_cycles": 69_999},
    "cnv-w1a1-max": {"cycles_per_frame": 14_199},
    "cnv-w1a1-z020": {"cycles_per_frame": 4_560, "latency_cycles": 10_000},
    "cnv-w1a1-zcu104": {"cycles_per_frame": 1_500},
    "lfc-w1a1": {"lanes": 6_272, "cycles_per_frame": 512},
}
"""Reference design -> the most that it may take."""
FRAMES = 4
"""Of the longer batch that is measured."""
PARTS = ("beats", "wait_input", "wait_room", "wait_table")
STALL = 0.4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("real_networks")


@cache
def measured(name: str, folder: Path) -> tuple[FigureTable, Build]:
    """Figures of a reference design, which is built once."""
    return measure_design(name, REFERENCE_DESIGNS[name], FRAMES, folder)


@cache
def predicted(name: str, frames: int) -> tuple[Result, Design]:
    """Figures of a reference design by the flow model."""
    reference = REFERENCE_DESIGNS[name]
    models = reference.models()
    design = reference.design(name, models)
    npus = design.npus
    network_plan = plan(models[0], npus, reference.choices)
    return simulate(
        system(network_plan, npus, stream_bits=design.stream_bits, spill_words=design.spill_words), frames
    ), design


def test_the_table_names_every_reference_design() -> None:
    assert set(FIGURES) == set(REFERENCE_DESIGNS) >= set(GOALS)


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", FIGURES)
def test_figures_by_the_flow_model(name: str) -> None:
    """Of all reference designs; that hardware takes as many cycles is tested below and in test_bench.py."""
    flow, design = predicted(name, 2)
    figures = {**lanes(design), "cycles_per_frame": flow.cycles_per_frame, "latency_cycles": flow.latency}
    kept = ("npus", "lanes", "cycles_per_frame", "latency_cycles")
    assert {key: figures[key] for key in kept} == dict(zip(kept, FIGURES[name]))
    assert {key: most for key, most in GOALS.get(name, {}).items() if figures[key] > most} == {}


def check_figures(name: str, folder: Path) -> None:
    """Bit-exact; cycles as in the table, and all waits of all NPUs as the flow model says; every cycle is counted."""
    figures, _ = measured(name, folder)
    model, _ = predicted(name, FRAMES)
    assert figures["mismatches"] == 0
    assert (figures["npus"], figures["lanes"]) == FIGURES[name][:2]
    assert (figures["cycles_per_frame"], figures["latency_cycles"]) == FIGURES[name][2:]
    assert (figures["cycles_per_frame"], figures["latency_cycles"]) == (model.cycles_per_frame, model.latency)
    waits = [asdict(model.npus[n]) for n in range(figures["npus"])]
    for part in ("wait_weights", "wait_memory"):  # no counter, where a design has no such waits
        assert [one.pop(part) for one in waits] == [0] * len(waits)
    per_npu = figures.get("per_npu") or [{part: figures[f"{part}_per_frame"] for part in PARTS}]
    assert per_npu == waits
    assert figures["beats_per_frame"] == figures["ideal_cycles_per_frame"]
    for npu in per_npu:
        assert sum(npu[part] for part in PARTS) == figures["cycles_per_frame"]


def check_outputs(
    build: Build, model: Model, images: np.ndarray, expected: np.ndarray, *, stall: float, batch: int | None = None
) -> None:
    """Outputs are the expected ones, and golden's; every cycle of every NPU is counted, also what stalls cost."""
    result = run(build, model, images, batch=batch, conditions=Conditions(stall=stall, seed=7))
    np.testing.assert_array_equal(result.outputs, expected)
    np.testing.assert_array_equal(result.golden, expected)
    for n in range(len(build.design.npus)):
        assert sum(result.counters[f"npu{n}_{part}"] for part in PARTS) == result.counters["cycles"]
        ideal = sum(beats for (_, beats), m in zip(result.program.layers, result.program.mapping) if m == n)
        assert result.counters[f"npu{n}_beats"] == ideal * len(images)


def on_device(build: Build, programs: list[Program], images: np.ndarray) -> list[np.ndarray]:
    """Outputs of programs that run one after another on a design, under random stalls."""
    board = activate()
    board.stall(source=STALL, sink=STALL, seed=3)
    results = []
    try:
        with Accelerator(build.bit) as accelerator:
            for program in programs:
                accelerator.load(program)
                results.append(accelerator.predict(images))
    finally:
        board.close()
    return results


# --- CNV, a pipeline of 9 NPUs ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_cnv_takes_as_many_cycles_as_the_model_says(folder: Path) -> None:
    check_figures("cnv-w1a1", folder)


@pytest.mark.slow
@pytest.mark.parametrize("stall", [0.0, STALL])
def test_cnv_gives_the_scores_of_the_board(stall: float, folder: Path) -> None:
    model = board_data.trained("cnv-w1a1")
    recorded = board_data.photographs()
    check_outputs(measured("cnv-w1a1", folder)[1], model, recorded.images, recorded.outputs, stall=stall)


@pytest.mark.slow
@pytest.mark.parametrize("stall", [0.0, STALL])
def test_cnv_gives_the_recorded_scores_of_16_images(stall: float, folder: Path) -> None:
    model = board_data.trained("cnv-w1a1")
    recorded = board_data.cifar()
    assert len(recorded.images) == 16
    check_outputs(measured("cnv-w1a1", folder)[1], model, recorded.images, recorded.outputs, stall=stall)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cnv-w1a1-max", "cnv-w1a1-z020", "cnv-w1a1-zcu104"])
def test_faster_cnv(name: str, folder: Path) -> None:
    check_figures(name, folder)
    model = board_data.trained("cnv-w1a1")
    recorded = board_data.cifar()
    check_outputs(measured(name, folder)[1], model, recorded.images, recorded.outputs, stall=STALL)


# --- CNV, a ring of 3 NPUs whose result may leave after any layer -------------------------------------------------

CUTS = ("threshold_0", "pool_1", "threshold_2", "pool_3", "threshold_4", "threshold_5", "threshold_6", "threshold_7")
"""Layers after which each weighted layer of CNV is done."""


def until(model: Model, last: str) -> Model:
    """The network's layers up to that one."""
    network = model.network
    layers = network.layers[: [layer.name for layer in network.layers].index(last) + 1]
    names = {layer.name for layer in layers}
    beginning = Network(name=f"cnv_{last}", input=network.input, layers=layers)
    return Model(beginning, {name: arrays for name, arrays in model.arrays.items() if name in names})


@pytest.mark.slow
def test_ring_of_3(folder: Path) -> None:
    """Also digits-cnn, on the same bitstream."""
    check_figures("cnv-w1a1-ring3", folder)
    (also,) = measured("cnv-w1a1-ring3", folder)[0]["also"]
    assert (also["network"], also["frames"], also["mismatches"]) == ("digits-cnn", FRAMES, 0)


@pytest.mark.slow
def test_every_layer_of_cnv_gives_what_the_board_recorded(folder: Path) -> None:
    """Networks that end after each layer, one after another on the bitstream made for the whole one."""
    model = board_data.trained("cnv-w1a1")
    recorded = board_data.cifar()
    build = measured("cnv-w1a1-ring3", folder)[1]
    manifest = Manifest.load(build.bit.with_suffix(".manifest.json"))
    assert [*CUTS, "dense_8"] == list(recorded.maps)
    choices = REFERENCE_DESIGNS["cnv-w1a1-ring3"].choices
    programs = [compile_model(until(model, name), manifest, choices) for name in recorded.maps]
    for name, result in zip(recorded.maps, on_device(build, programs, recorded.images)):
        np.testing.assert_array_equal(result, recorded.maps[name], err_msg=name)


# --- LFC, a pipeline of 4 NPUs ------------------------------------------------------------------------------------


def test_lfc_takes_512_cycles_a_frame(folder: Path) -> None:
    check_figures("lfc-w1a1", folder)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("stall", "count"), [(0.0, 256), (STALL, 64)])
def test_lfc_gives_what_the_board_recorded(stall: float, count: int, folder: Path) -> None:
    model = board_data.trained("lfc-w1a1")
    recorded = board_data.mnist()
    assert len(recorded.images) == 256
    build = measured("lfc-w1a1", folder)[1]
    check_outputs(build, model, recorded.images[:count], recorded.outputs[:count], stall=stall)


# --- The 8-bit network with a window former; it and that with 8-bit ends on a cascade of 3 and a ring of 2 ---------


def store_bits(design: Design) -> int:
    """Bits of all memories that hold maps, or parts of them."""
    total = design.spill_words * design.npus[0].array.word_bits
    for npu in design.npus:
        words = npu.sequencer.tuple_words + (npu.stores.map_words if "loop" in npu.ports.outlets else 0)
        words += 2 * npu.ports.buffer_words if "ring" in npu.ports.inlets else 0
        total += words * npu.array.word_bits
        if npu.pool_unit:
            total += npu.pool_unit.words * npu.pool_word_bits
    return total


INTEGERS = [
    "cifar-quick-int8-former",
    "cifar-quick-int8-cascade3",
    "cifar-quick-int8-ring2",
    "bnn-int8-ends",
    "bnn-int8-ends-ring2",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", INTEGERS)
class TestDesignsWithIntegers:
    def test_cycles_are_those_that_the_model_says(self, name: str, folder: Path) -> None:
        check_figures(name, folder)

    @pytest.mark.parametrize("stall", [0.0, STALL])
    def test_a_batch_larger_than_all_memories_streams_through(self, name: str, stall: float, folder: Path) -> None:
        build = measured(name, folder)[1]
        model = networks.load(REFERENCE_DESIGNS[name].network)
        frame = model.network.input.size * model.network.input.encoding.bits
        count = max(timing.FRAMES_IN_FLIGHT, store_bits(build.design) // frame) + 1
        images = random_images(model.network, count, 11)
        check_outputs(build, model, images, packed.forward(model, images), stall=stall, batch=count)


# --- Networks that accumulate by OR ------------------------------------------------------------------------------
