"""Depthwise convolutions on the simulated board: every result is golden's, under random stalls, and without them every
cycle is the flow model's."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.flow import simulate
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.design.design import Design
from tests.networks import depthwise_networks, random_images, random_integer_model
from tests.simulated import outputs, overlay, tally

from .test_residual import DESIGNS as RESIDUAL

ROOMY = replace(
    RESIDUAL["k4"].npus[0], skip_words=0, pool_kernel_rows=1024, pool_scale_rows=256, pool_jumps=1024, half_even=1,
    round_twice=1, bias_fraction_bits=6,
)  # fmt: skip
DESIGNS = {
    "k4": RESIDUAL["k4"],  # compiled once for both
    "k8": Design(name="k8", stream_bits=64, npus=(replace(ROOMY, kfp=8, kgp=6, pfp=6, ol=2, accumulators=16),)),
    "raster": Design(name="raster", npus=(replace(ROOMY, kfp=3, kgp=4, pfp=4, ol=4, raster=True),)),
    "narrow": Design(name="narrow", npus=(replace(ROOMY, kfp=2, kgp=3, pfp=1, ol=1),)),
}
"""Tables and counters, one and several accumulators, words of the pool unit that are several steps or one."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("depthwise")


def check(design: str, folder: Path, data: st.DataObject) -> str:
    """How many depthwise convolutions of the network that is drawn joined another layer."""
    bit, manifest = overlay(DESIGNS[design], folder)
    npu = manifest.npus[0]
    network = data.draw(depthwise_networks(9, 8, npu.bias_fraction_bits))
    if not npu.half_even:
        layers = [replace(layer, rounding="once") if hasattr(layer, "rounding") else layer for layer in network.layers]
        network = replace(network, layers=tuple(layers))
    seed = data.draw(st.integers(0, 2**32 - 1))
    stalls = {key: data.draw(st.sampled_from([0.0, 0.4])) for key in ("source", "sink")}
    model, images = random_integer_model(network, seed, 32, 31), random_images(network, 4, seed)
    choices = CompileChoices(map_order="raster" if npu.raster else data.draw(st.sampled_from(["pull", "raster"])))
    program = compile_model(model, manifest, choices)
    golden, made = model.forward(images), plan(model, manifest.npus, choices)
    found, counters = outputs(bit, program, images)
    np.testing.assert_array_equal(found, golden)
    flow = simulate(system(made, manifest.npus, stream_bits=manifest.stream_bits), 4)
    assert counters["cycles"] == flow.left[3] + 1
    np.testing.assert_array_equal(outputs(bit, program, images, **stalls, seed=seed)[0], golden)
    return str(sum(p.depthwise is not None for p in made.lowered.layers))


def test_random_networks(folder: Path) -> None:
    found = tally(lambda data: check("k4", folder, data), 6)
    assert set(found) - {"0"}


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_many_random_networks(design: str, folder: Path) -> None:
    found = tally(lambda data: check(design, folder, data), 60)
    assert {"0", "1", "2"} <= set(found)
