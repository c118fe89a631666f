"""The project's main property: for every legal folding, the hardware equals the golden model.

A few designs with large memories run every network that is drawn, through the pynq driver on the virtual board, one
after another on the same bitstream, under random stalls.
"""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from driver.accelerator import Accelerator
from driver.compile import compile_model
from driver.manifest import Manifest
from golden import packed
from hls_gen.design import Design, Npu
from hls_gen.verilog import generate
from overlay.bitstream import write_simulation_overlay
from overlay.board import activate
from tests.networks import networks, random_images, random_model

ROOMY = Npu(
    acc_bits=24, layers=4, tuple_words=8192, pool_words=8192, taps=8192, olds=8192, jumps=4096, pool_taps=2048,
    pool_olds=2048, kernel_rows=1 << 18, threshold_rows=2048, map_words=8192,
)  # fmt: skip
DESIGNS = {
    "one_lane": Design(name="one_lane", npus=(replace(ROOMY, kfp=1, kgp=1, pfp=1),)),
    "k3_g5": Design(name="k3_g5", npus=(replace(ROOMY, kfp=3, kgp=5, pfp=4, ol=2),)),
    "k8_g8_planes": Design(name="k8_g8_planes", npus=(replace(ROOMY, kfp=20, kgp=8, pfp=8, ol=3, planes=8),)),
    "k64_g64": Design(
        name="k64_g64", stream_bits=64, npus=(replace(ROOMY, kfp=64, kgp=64, pfp=32, ol=16, kernel_rows=4096),)
    ),
    "k48_g17": Design(name="k48_g17", stream_bits=64, npus=(replace(ROOMY, kfp=48, kgp=17, pfp=7, ol=17, planes=7),)),
}
QUICK = ("k3_g5", "k8_g8_planes")
"""Designs of the default tier."""


@cache
def overlay(name: str, folder: Path) -> tuple[Path, Manifest]:
    """The simulation overlay of a design, made once."""
    made = generate(DESIGNS[name])
    return write_simulation_overlay(folder, made.manifest, made.text), Manifest.from_dict(made.manifest, name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("random_networks")


def check(design: str, folder: Path, data: st.DataObject) -> None:
    bit, manifest = overlay(design, folder)
    npu = DESIGNS[design].npus[0]
    network = data.draw(networks(input_bits=npu.planes or 8))
    seed = data.draw(st.integers(0, 2**32 - 1))
    model, images = random_model(network, seed), random_images(network, 3, seed)
    program = compile_model(model, manifest, data.draw(st.sampled_from(["pull", "raster"])))
    board = activate()
    board.stall(source=data.draw(st.sampled_from([0.0, 0.4])), sink=data.draw(st.sampled_from([0.0, 0.4])), seed=seed)
    try:
        with Accelerator(bit) as accelerator:
            accelerator.load(program)
            outputs = accelerator.predict(images)
            beats = accelerator.counters()["npu0_beats"]
    finally:
        board.close()
    np.testing.assert_array_equal(outputs, packed.forward(model, images))
    assert beats == program.ideal_cycles * len(images)


def per_design(count: int) -> settings:
    return settings(
        max_examples=count, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), print_blob=True
    )


@pytest.mark.parametrize("design", QUICK)
def test_random_networks(design: str, folder: Path) -> None:
    @per_design(10)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        check(design, folder, data)

    run()


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_many_random_networks(design: str, folder: Path) -> None:
    @per_design(50)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        check(design, folder, data)

    run()
