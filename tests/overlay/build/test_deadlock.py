"""A ring whose spill store is too small stops for good, in the model and in hardware, and says who waits for whom; with
the least store that the model finds it doesn't (spec D8)."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bitloom.driver.accelerator import Accelerator
from bitloom.golden.kernels import packed
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.flow import Deadlock, least_spill, simulate
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import Sizing, size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import ring
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.virtual.board import activate
from bitloom.overlay.virtual.sim import SimulationTimeout
from bitloom.overlay.virtual.simulation_overlay import write_simulation_overlay
from tests.cases import random_images, random_model
from tests.errors import value_error
from tests.graph_text import network_of

CIRCLE = "NPU 0 waits for room at NPU 1, NPU 1 waits for room at NPU 0"


def model() -> Model:
    """Three convolutions with the same map between them, and a dense layer: layers 0 and 2 on NPU 0, 1 and 3 on 1."""
    convolutions = (f"conv_{k} 8 3x3 padding=1, act_{k}" for k in range(3))
    network = network_of("12x12x8", *convolutions, "dense 4", name="deep")
    return random_model(network, np.random.default_rng(0))


DEEP = model()
RASTER = CompileChoices(map_order="raster")


def design(spill_words: int) -> Design:
    """Two NPUs with tuple memories that hold less than half of a map, and short buffers."""
    npu = Npu.of(kfp=8, kgp=8, ol=2, pool=False, shift_bits=0, buffer_words=4)
    deep_design = size_memories("deep", [DEEP], ring([npu, npu]), RASTER, sizing=Sizing(spill_words=200))
    npus = tuple(n.changed(tuple_words=64) for n in deep_design.npus)
    return replace(deep_design, npus=npus, spill_words=spill_words)


def least() -> int:
    deep_design = design(200)
    parameters = deep_design.npus
    return least_spill(system(plan(DEEP, parameters, RASTER), parameters), frames=4)


def run(spill_words: int, folder: Path) -> np.ndarray:
    """Outputs of 4 frames; the program is compiled for a store that is large enough, which changes nothing in it."""
    roomy = Manifest.from_dict(generate(design(200)).manifest, "roomy")
    verilog = generate(design(spill_words))
    program = replace(compile_model(DEEP, roomy, RASTER), design_digest=verilog.manifest["digest"])
    bit = write_simulation_overlay(folder, verilog.manifest, verilog.text)
    board = activate()
    board.stall()
    try:
        with Accelerator(bit, timeout=600) as accelerator:  # the simulation has a limit of its own, in cycles
            accelerator.load(program)
            return accelerator.predict(images())
    finally:
        board.close()


def images() -> np.ndarray:
    return random_images(DEEP, 4, np.random.default_rng(1))


def test_the_compiler_refuses_it_with_the_numbers():
    for words in (0, least() - 1):
        manifest = Manifest.from_dict(generate(design(words)).manifest, "deep")
        with value_error(
            f"deep: spill_words must be >= {least()}, design deep has {words}: flow: deadlock: NPU 0 waits for room "
            "towards NPU 1, NPU 1 for room towards NPU 0"
        ):
            compile_model(DEEP, manifest, RASTER)


@pytest.mark.slow
@pytest.mark.parametrize("missing", [None, pytest.param(1, marks=pytest.mark.slow)])
def test_hardware_stops_and_names_the_circle(missing, tmp_path):
    """Without a store, and with one that is a word too small."""
    words = 0 if missing is None else least() - missing
    parameters = design(200).npus
    with pytest.raises(Deadlock):
        simulate(system(plan(DEEP, parameters, RASTER), parameters, spill_words=words), frames=4)
    with pytest.raises(SimulationTimeout) as stuck:
        run(words, tmp_path)
    assert CIRCLE in str(stuck.value).splitlines()[0]
    assert stuck.value.state["registers"]["FRAMES"] < 4


def test_the_least_store_is_enough(tmp_path):
    np.testing.assert_array_equal(run(least(), tmp_path), packed.forward(DEEP, images()))


def test_fit_gives_a_store_in_which_nobody_waits():
    """Also where tuple memories are as size_memories makes them."""
    npu = Npu.of(kfp=8, kgp=8, ol=2, pool=False, shift_bits=0, buffer_words=4)
    deep_design = size_memories("deep", [DEEP], ring([npu, npu]), RASTER)
    parameters = deep_design.npus
    whole = system(plan(DEEP, parameters, RASTER), parameters)
    best = simulate(replace(whole, spill_words=None)).cycles_per_frame
    assert simulate(replace(whole, spill_words=deep_design.spill_words)).cycles_per_frame == best
