"""The project's main property: for every legal folding, the hardware equals the golden model.

A few designs with large memories run every network that is drawn, through the pynq driver on the virtual board, one
after another on the same bitstream, under random stalls.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from bitloom.golden.kernels import packed
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu
from tests.networks import integer_networks, networks, random_images, random_integer_model, random_model
from tests.simulated import outputs, overlay

DATAFLOWS = st.sampled_from(["output_stationary", "auto"])

ROOMY = Npu(
    acc_bits=24, layers=4, tuple_words=8192, pool_words=8192, taps=8192, olds=8192, jumps=4096, pool_taps=2048,
    pool_olds=2048, kernel_rows=1 << 18, threshold_rows=2048, map_words=8192,
)  # fmt: skip
INTEGER = replace(
    ROOMY, engine="integer", feature_bits=8, weight_bits=8, shift_bits=0, acc_bits=32, taps=1 << 14, olds=1 << 14,
    pool_taps=1 << 14, pool_olds=1 << 14, pool_words=1 << 14,
)  # fmt: skip
DESIGNS = {
    "one_lane": Design(name="one_lane", npus=(replace(ROOMY, kfp=1, kgp=1, pfp=1),)),
    "k3_g5": Design(name="k3_g5", npus=(replace(ROOMY, kfp=3, kgp=5, pfp=4, ol=2),)),
    "k8_g8_planes": Design(name="k8_g8_planes", npus=(replace(ROOMY, kfp=20, kgp=8, pfp=8, ol=3, planes=8),)),
    "k64_g64": Design(
        name="k64_g64", stream_bits=64, npus=(replace(ROOMY, kfp=64, kgp=64, pfp=32, ol=16, kernel_rows=4096),)
    ),
    "k48_g17": Design(name="k48_g17", stream_bits=64, npus=(replace(ROOMY, kfp=48, kgp=17, pfp=7, ol=17, planes=7),)),
    "int_one_lane": Design(name="int_one_lane", npus=(replace(INTEGER, kfp=1, kgp=1, pfp=1),)),
    "int_k3_g5": Design(name="int_k3_g5", npus=(replace(INTEGER, kfp=3, kgp=5, pfp=2, ol=2),)),
    "int_k8_g8_w4_f5": Design(
        name="int_k8_g8_w4_f5",
        npus=(replace(INTEGER, kfp=8, kgp=8, pfp=1, weight_bits=4, feature_bits=5, acc_bits=24),),
    ),
    "int_k16_g12": Design(
        name="int_k16_g12", stream_bits=64, npus=(replace(INTEGER, kfp=16, kgp=12, pfp=5, ol=12, kernel_rows=1 << 14),)
    ),
}
RASTER = {"tuple_words": 1024, "pool_words": 1024, "taps": 2, "olds": 2, "jumps": 2, "pool_taps": 2, "pool_olds": 2}
DESIGNS["raster"] = Design(name="raster", npus=(replace(ROOMY, kfp=5, kgp=6, pfp=3, ol=2, raster=True, **RASTER),))
DESIGNS["int_raster"] = Design(
    name="int_raster", npus=(replace(INTEGER, kfp=4, kgp=6, pfp=3, ol=2, accumulators=16, raster=True, **RASTER),)
)
"""No table has room for a layer of several taps: all by counters. Networks that need a table are left out."""
QUICK = ("k3_g5", "k8_g8_planes", "int_k3_g5", "int_k8_g8_w4_f5", "raster")
"""Designs of the default tier."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("random_networks")


def check(design: str, folder: Path, data: st.DataObject) -> None:
    bit, manifest = overlay(DESIGNS[design], folder)
    npu = DESIGNS[design].npus[0]
    integer = npu.engine == "integer"
    if integer:
        network = data.draw(integer_networks(npu.feature_bits, npu.weight_bits))
    else:
        network = data.draw(networks(input_bits=npu.planes or 8))
    seed = data.draw(st.integers(0, 2**32 - 1))
    model = random_integer_model(network, seed, npu.acc_bits) if integer else random_model(network, seed)
    images = random_images(network, 3, seed)
    if npu.raster:
        need = plan(model, [npu], CompileChoices(map_order="raster")).npus[0].depths()
        assume(all(need[name] <= getattr(npu, name) for name in need))
    order = "raster" if npu.raster else data.draw(st.sampled_from(["pull", "raster"]))
    dataflow = data.draw(DATAFLOWS) if npu.accumulators > 1 else "output_stationary"
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
    check_many(5, design, folder)


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_many_random_networks(design: str, folder: Path) -> None:
    check_many(30, design, folder)
