"""Networks with activations of several bits, on hardware whose lanes share weights: each weight is stored once, lint is
silent, and outputs and cycles are exact."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from bitloom.golden import zoo
from bitloom.golden.file import save
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.lowering import lowered_for
from bitloom.hls_gen.compiler.sharing import weight_copies
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import pipeline
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.area_model.estimate import estimate
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.chosen_design import chosen_design
from bitloom.overlay.build.run import run
from bitloom.overlay.platform.boards import board
from bitloom.overlay.virtual.sim import lint
from tests.cases import random_images, random_model
from tests.commands import call
from tests.graph_text import network_of

FRAMES = 4


def small() -> Model:
    """Integers at first, then maps of 2 bits a value, with a pool between."""
    network = network_of(
        "5x4x2 s3",
        "conv_1 7 2x3 ternary padding=1/0/0/1, act_1 levels=2, max_pool pool_1 2x1 2x1, "
        "conv_2 6 2x2 ternary, act_2 levels=2, dense 3 ternary",
        name="small",
    )
    return random_model(network, np.random.default_rng(1))


def test_a_small_network_of_two_bits(tmp_path: Path) -> None:
    """Lanes 4 apart share a weight, and two lanes of a word are left over."""
    model = small()
    design = size_memories("small", [model], Npu.of(kfp=18, kgp=5, pfp=8, ol=4))
    assert (design.npus[0].array.lanes_per_weight, design.npus[0].array.lane_step) == (2, 4)
    assert memory_of(design.npus[0], "kernels").width == 5 * 10 + 4
    assert lint(generate(design).text) == []
    build = builds.build(tmp_path, design, [model])
    images = random_images(model, FRAMES, np.random.default_rng(0))
    assert run(build, model, images).bit_exact_frames == FRAMES


def mixed() -> Model:
    """Maps of 1, 3 and 2 bits a value."""
    network = network_of("6x5x4", "conv_1 8 3x3, act_1 levels=3, conv_2 8 2x2, act_2 levels=2, dense 3", name="mixed")
    return random_model(network, np.random.default_rng(1))


ONCE = 9 * 4 * 8 + 4 * 8 * 8 + 3 * 2 * 8 * 3
COPIED = 9 * 4 * 8 + 4 * 8 * 8 * 3 + 3 * 2 * 8 * 3 * 2
TOLD = (
    f"NPU 0 stores {COPIED:,} weight bits, each weight once for each bit of a value: the values that it reads have 1, "
    f"2 and 3 bits; NPUs that read one width store {ONCE}"
)


def told(model: Model, npus: Sequence[Npu]) -> list[str]:
    return [str(copies) for copies in weight_copies(lowered_for(model, npus), npus)]


def test_weights_that_are_stored_several_times_are_told() -> None:
    """One NPU reads all three maps; each NPU of a pipeline reads one of them, and stores its weights once."""
    model = mixed()
    folding = Npu.of(kfp=12, kgp=4, pfp=4, ol=4, shift_bits=0)
    alone = size_memories("mixed", [model], folding).npus
    assert told(model, alone) == [TOLD]
    several = size_memories("mixed", [model], pipeline([folding] * 3)).npus
    assert [npu.array.lanes_per_weight for npu in several] == [1, 3, 1]
    assert told(model, several) == [
        f"NPU 2 stores {2 * 3 * 2 * 8 * 3} weight bits, each weight once for each bit of a value: lanes share a weight "
        f"only where a word holds all 2 bits of its values; then it would store {3 * 2 * 8 * 3}"
    ]
    shared = small()
    assert told(shared, size_memories("small", [shared], Npu.of(kfp=18, kgp=5, pfp=8, ol=4)).npus) == []


@pytest.mark.usefixtures("no_plots")
def test_build_and_report_tell_it(tmp_path: Path) -> None:
    model = mixed()
    save(model, tmp_path / "mixed.npz")
    built = call("build", tmp_path / "mixed.npz", "--out", tmp_path / "built")
    assert f"mixed: {TOLD}\n" in built.stderr
    folder = str(tmp_path / "built")
    page = tmp_path / "report.html"
    result = call("report", folder, "--frames", "2", "--out", page, "--json")
    assert result.exit_code == 0, result.output
    assert f'<p class="note">{TOLD}.</p>' in page.read_text(encoding="utf-8")
    assert json.loads(result.stdout)["weight_copies"] == [TOLD]


@pytest.mark.slow
def test_cnv_w2a2_on_a_pynq_z1(tmp_path: Path) -> None:
    """By default, within the board's block RAM and LUTs."""
    model = zoo.load("cnv-w2a2")
    limit = board("Pynq-Z1")
    design = chosen_design(model).design("cnv-w2a2", [model])
    area = estimate(design)
    assert design.npus[0].array.lanes_per_weight == 2
    assert area.bram36 == 130.5 <= limit.bram36
    assert limit.holds(area)
    build = builds.build(tmp_path, design, [model])
    images = random_images(model, 2, np.random.default_rng(0))
    assert run(build, model, images).bit_exact_frames == 2
