"""The project's main property: for every legal folding, the hardware equals the golden model.

A few designs with large memories run every network that is drawn, through the pynq driver on the virtual board, one
after another on the same bitstream, under random stalls.
"""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from bitloom.golden.kernels import packed
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.plan import plan
from bitloom.overlay.fuzz.designs import SINGLE as DESIGNS
from bitloom.overlay.fuzz.random_networks import most_planes
from tests.networks import IntegerChoices, integer_networks, networks, random_images, random_integer_model, random_model
from tests.simulated import outputs, overlay

DATAFLOWS = st.sampled_from(["output_stationary", "auto"])

QUICK = ("k3_g5", "k8_g8_planes", "int_k3_g5", "int_k8_g8_w4_f5", "int_wide", "raster")
"""Designs of the default tier."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("random_networks")


def check(design: str, folder: Path, data: st.DataObject) -> None:
    bit, manifest = overlay(DESIGNS[design], folder)
    npu = DESIGNS[design].npus[0]
    integer = npu.engine == "integer"
    if integer:
        network = data.draw(integer_networks(IntegerChoices.of(npu)))
    else:
        network = data.draw(networks(input_bits=most_planes(npu)))
    seed = data.draw(st.integers(0, 2**32 - 1))
    if integer:
        model = random_integer_model(network, seed, npu.array.acc_bits, npu.results.multiplier_bits)
    else:
        model = random_model(network, seed)
    images = random_images(network, 3, seed)
    order = "raster" if npu.sequencer.raster else data.draw(st.sampled_from(["pull", "raster"]))
    dataflow = data.draw(DATAFLOWS) if npu.array.accumulators > 1 else "output_stationary"
    need = plan(model, [npu], CompileChoices(map_order=order, dataflow=dataflow)).needs[0].capacities
    assume(all(need[name] <= npu.value(name) for name in need))
    program = compile_model(model, manifest, CompileChoices(map_order=order, dataflow=dataflow))
    stalls = {key: data.draw(st.sampled_from([0.0, 0.4])) for key in ("source", "sink")}
    found, counters = outputs(bit, program, images, **stalls, seed=seed)
    np.testing.assert_array_equal(found, packed.forward(model, images))
    assert counters["npu0_beats"] == program.ideal_cycles * len(images)


def per_design(count: int) -> settings:
    return settings(
        max_examples=count, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), print_blob=True
    )


def check_many(count: int, design: str, folder: Path) -> None:
    """``check`` so many random networks on a design."""

    @per_design(count)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        check(design, folder, data)

    run()


@pytest.mark.parametrize("design", QUICK)
def test_random_networks(design: str, folder: Path) -> None:
    check_many(10 if design == "int_wide" else 5, design, folder)


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_many_random_networks(design: str, folder: Path) -> None:
    check_many(200 if design == "int_wide" else 30, design, folder)
