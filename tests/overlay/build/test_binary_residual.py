"""Residual networks of bits on the simulated board: every result is golden's, under random stalls, and without them
every cycle is the flow model's."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from bitloom.golden import zoo
from bitloom.golden.zoo.digits import load_digits
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.flow import simulate
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.build.small_npu import small_npu
from tests.networks import binary_residual_networks, random_images, random_integer_model
from tests.simulated import outputs, overlay, tally

NPU = Npu.of(
    acc_bits=25, multiplier_bits=31, half_even=1, bias_fraction_bits=2, skip_bits=9, layers=24, tuple_words=512,
    pool_words=512, pool_tuple_words=64, taps=8192, olds=8192, jumps=4096, pool_taps=4096, pool_olds=4096,
    kernel_rows=1 << 14, threshold_rows=2048, map_words=1024, skip_words=1024,
)  # fmt: skip
DESIGNS = {
    "k4": Design(name="k4", npus=(NPU.changed(kfp=4, kgp=4, pfp=4, ol=2, aheads=512),)),
    "planes": Design(name="planes", stream_bits=64, npus=(
        NPU.changed(kfp=9, kgp=6, pfp=4, ol=3, accumulators=16, planes=4, shift_bits=0),)),
    "raster": Design(name="raster", npus=(NPU.changed(kfp=2, kgp=4, pfp=2, ol=4, raster=True, aheads=512),)),
    "without_pool": Design(name="without_pool", npus=(
        NPU.changed(kfp=8, kgp=8, ol=1, pool=False, skip_words=63, aheads=256),)),
}  # fmt: skip
"""Foldings with tables, with and without tuples that are claimed ahead, and counters; one and several accumulators;
block RAM and LUT RAM; bit planes side by side and one after another; with and without a pool unit."""
RULES = ("must be >= ", "a pool needs an NPU with a pool unit")
"""Why a network may be refused."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("binary_residual")


def equals(made: Design, folder: Path, model, images, choices: CompileChoices, stalls: dict[str, float]) -> None:
    """The board's results are golden's, as fast as the flow model says, and golden's with stalls."""
    bit, manifest = overlay(made, folder)
    program, golden = compile_model(model, manifest, choices), model.forward(images)
    found, counters = outputs(bit, program, images)
    np.testing.assert_array_equal(found, golden)
    chain = system(plan(model, manifest.npus, choices), manifest.npus, stream_bits=manifest.stream_bits)
    assert counters["cycles"] == simulate(chain, len(images)).left[-1] + 1
    np.testing.assert_array_equal(outputs(bit, program, images, **stalls, seed=3)[0], golden)


def check(name: str, folder: Path, data: st.DataObject) -> str:
    """ "compared", or why the network that is drawn doesn't fit the design."""
    npu = DESIGNS[name].npus[0]
    network, seed = data.draw(binary_residual_networks(9, npu.results.ol)), data.draw(st.integers(0, 2**32 - 1))
    order = "raster" if npu.sequencer.raster else data.draw(st.sampled_from(["pull", "raster"]))
    choices = CompileChoices(map_order=order, dataflow=data.draw(st.sampled_from(["output_stationary", "auto"])))
    stalls = {key: data.draw(st.sampled_from([0.0, 0.4])) for key in ("source", "sink")}
    model, images = random_integer_model(network, seed, 24), random_images(network, 4, seed)
    try:
        compile_model(model, overlay(DESIGNS[name], folder)[1], choices)
    except ValueError as e:
        return next(rule for rule in RULES if rule in str(e))
    equals(DESIGNS[name], folder, model, images, choices, stalls)
    return "compared"


def test_random_binary_residual_networks(folder: Path) -> None:
    assert tally(lambda data: check("k4", folder, data), 4) == {"compared": 4}


def test_the_engine_that_a_network_gets_by_itself() -> None:
    npu = small_npu(zoo.load("digits-residual"))
    assert (npu.engine, npu.array.shift_bits) == ("binary", 3)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [("k4", 48), ("planes", 45), ("raster", 45), ("without_pool", 10)])
def test_many_random_binary_residual_networks(name: str, least: int, folder: Path) -> None:
    assert tally(lambda data: check(name, folder, data), 50)["compared"] >= least


@pytest.mark.slow
def test_digits_on_a_design_of_their_own(folder: Path) -> None:
    """The trained network with a skip store as the flow model sizes it, and one with thresholds alone beside it."""
    pytest.importorskip("sklearn")
    models, folding = (
        [zoo.load(name) for name in ("digits-residual", "digits-cnn")],
        Npu.of(kfp=32, kgp=16, pfp=8, ol=4),
    )
    made = size_memories("digits", models, folding.changed(planes=6, shift_bits=0))
    assert made.npus[0].has_skip
    assert Manifest.of(made, "0" * 64).npus == made.npus
    for model in models:
        equals(made, folder, model, load_digits().test_images[:40], CompileChoices(), {"source": 0.3, "sink": 0.3})
