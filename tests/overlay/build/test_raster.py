"""A layer of 224 x 224 without a table (spec B7): through the driver, bit-exact, and in the cycles that it takes."""

import pytest

from bitloom.golden.encoding import BIPOLAR, Encoding, signed
from bitloom.golden.layer import Map
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.build.build import build
from bitloom.overlay.build.run import run
from bitloom.overlay.virtual.sim import lint
from tests.graph_text import network_of
from tests.networks import random_images, random_model
from tests.rows import memory_rows

FOLDING = Npu.of(kfp=32, kgp=4, pfp=4, ol=4, planes=8, raster=True)
"""A tuple of 3 channels of 8 bits is one word: 3 lanes in each of the 8 plane groups and the constant one."""
START = 22
"""Cycles beyond the beats and a row: until the first window's last tuple is there, and latencies at start and end."""


def model(encoding: Encoding, side: int) -> Model:
    network = network_of(
        Map(height=side, width=side, channels=3, encoding=encoding),
        "conv_1 4 3x3 stride=2x2 padding=1, act_1, max_pool pool_1 3x3 2x2 padding=1/1/0/0, "
        "conv_2 2 3x2 stride=3x2 padding=0/0/1/0",
        name="large",
    )
    return random_model(network, 7)


@pytest.mark.parametrize(
    ("encoding", "side", "tuples"),
    [
        pytest.param(BIPOLAR, 56, 256, id="1_bit_56"),
        pytest.param(BIPOLAR, 224, 1024, id="1_bit_224", marks=pytest.mark.slow),
        pytest.param(signed(8), 224, 1024, id="8_bit_224", marks=pytest.mark.slow),
    ],
)
def test_a_large_layer_without_a_table(encoding, side, tuples, tmp_path):
    large = model(encoding, side)
    folding = FOLDING if encoding != BIPOLAR else FOLDING.changed(kfp=3, planes=0)
    rows = memory_rows(plan(large, [folding], CompileChoices(map_order="raster")))
    assert [row["by_counters"] for row in rows["layers"]] == [1, 1]
    assert [row["by_counters"] for row in rows["pool_layers"]] == [1]
    design = size_memories("large", [large], folding)  # auto: raster, since it needs no tables
    (npu,) = design.npus
    assert (
        npu.sequencer.flags,
        npu.sequencer.olds,
        npu.sequencer.jumps,
        present(npu.pool_unit).flags,
        present(npu.pool_unit).olds,
    ) == (2, 2, 2, 2, 2)
    assert npu.sequencer.tuple_words == tuples  # 2 rows and 3 tuples behind the newest, a row and 2 before it
    done = run(build(tmp_path, design, [large]), large, random_images(large.network, 2, 3))
    assert done.bit_exact_frames == done.frames == 2
    # Windows of 3 x 3, stride 2, one row and column of padding: side / 2 times 3 places in each direction, one cut.
    assert done.program.layers[0] == ("conv_1", (3 * side // 2 - 1) ** 2)
    assert done.counters["npu0_beats"] == 2 * done.program.ideal_cycles
    assert done.counters["cycles"] <= done.counters["npu0_beats"] + side + START
    assert lint(generate(design).text) == []
