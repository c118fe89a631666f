"""Chains and rings in which binary and integer NPUs take turns: random networks on any mapping, bit-exact under random
stalls, in as many cycles as the flow model says, every one of them counted."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from bitloom.golden.kernels import packed
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.flow import simulate
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import cascade, pipeline, ring
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.virtual.sim import lint
from tests.networks import mixed_networks, random_images, random_integer_model
from tests.simulated import outputs, overlay, tally

DATAFLOWS = st.sampled_from(["output_stationary", "auto"])

BINARY = Npu.of(
    kfp=8, kgp=8, pfp=8, ol=2, acc_bits=24, layers=8, tuple_words=1024, pool_words=256, taps=8192, olds=8192,
    jumps=4096, pool_taps=1 << 14, pool_olds=1 << 14, kernel_rows=1 << 15, threshold_rows=2048, map_words=2048,
)  # fmt: skip
INTEGER = BINARY.changed(
    engine="integer", feature_bits=8, weight_bits=8, shift_bits=0, acc_bits=32, kfp=4, kgp=6, pfp=2
)
LOOPED = {"inlets": ("ring", "loop"), "outlets": ("ring", "loop", "host")}

DESIGNS = {
    "cascade": Design(
        name="cascade",
        npus=cascade([
            INTEGER, BINARY.changed(kfp=32, kgp=7, pfp=3, buffer_words=4),
            INTEGER.changed(kfp=8, ol=4, buffer_words=32, accumulators=16),
        ]),
    ),
    "ring": Design(
        name="ring", spill_words=64,
        npus=ring([
            INTEGER.changed(kfp=3, ol=3, buffer_words=16), BINARY.changed(kfp=20, kgp=9, ol=9, pfp=4, buffer_words=8),
        ]),
    ),
    "looped_ring": Design(
        name="looped_ring", spill_words=64,
        npus=(
            INTEGER.changed(kgp=3, ol=3, buffer_words=16, **LOOPED | {"inlets": ("host", "ring", "loop")}),
            BINARY.changed(kfp=4, kgp=5, ol=1, pfp=3, buffer_words=8, **LOOPED),
        ),
    ),
    "ring_with_loops": Design(
        name="ring_with_loops", spill_words=64, stream_bits=64,
        npus=(
            BINARY.changed(kfp=18, planes=8, shift_bits=0, **LOOPED | {"inlets": ("host", "ring", "loop")}),
            INTEGER.changed(kfp=18, kgp=4, ol=4, pfp=5, **LOOPED),
            BINARY.changed(kfp=5, pool=False, **LOOPED),
            INTEGER.changed(kfp=1, pool=False, buffer_words=64, **LOOPED),
        ),
    ),
    "alternating": Design(
        name="alternating",
        npus=pipeline([
            INTEGER.changed(kfp=17, kgp=5, ol=5), BINARY.changed(kfp=33, pfp=1, pool_words=1024),
            INTEGER.changed(kfp=33, kgp=3, ol=1, pfp=7), BINARY.changed(kfp=1, kgp=3, ol=3),
        ]),
    ),
}  # fmt: skip
QUICK = {"looped_ring": 6}
"""Designs of the default tier, and how many combinations are drawn for each."""
MANY = 40
"""Combinations for each design of the slow tier."""
FRAMES = 4
PARTS = ("beats", "wait_input", "wait_room", "wait_table")


@st.composite
def mappings(draw: st.DrawFn, design: Design) -> list[int]:
    """NPUs of 2 layers to 5, each reached from the one before, the last with outlet host; of a pipeline, all."""
    npus, found, most = design.npus, [0], draw(st.integers(2, 5))
    while True:
        here = found[-1]
        ways = [here] * ("loop" in npus[here].ports.outlets) + [(here + 1) % len(npus)] * (
            "ring" in npus[here].ports.outlets
        )
        if not ways or (len(found) >= most and "host" in npus[here].ports.outlets):
            return found
        found.append(draw(st.sampled_from(ways)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mixed_kinds")


def check(name: str, folder: Path, data: st.DataObject) -> str:
    """``unfit`` where the network that is drawn doesn't fit the design's memories, ``stuck`` where it would block, else
    ``exact`` and on NPUs of how many engines."""
    design, (bit, manifest) = DESIGNS[name], overlay(DESIGNS[name], folder)
    mapping = data.draw(mappings(design))
    kinds, poolable = [design.npus[n].engine for n in mapping], [design.npus[n].pool_unit is not None for n in mapping]
    network, seed = data.draw(mixed_networks(kinds, poolable)), data.draw(st.integers(0, 2**32 - 1))
    order, dataflow = data.draw(st.sampled_from(["raster", "pull"])), data.draw(DATAFLOWS)
    chunk = data.draw(st.sampled_from([1, 2, 1000]))
    model = random_integer_model(network, seed, 32)
    npus = design.npus
    choices = CompileChoices(map_order=order, dataflow=dataflow, mapping=mapping)
    made = plan(model, npus, choices, chunk=chunk)
    try:
        program = compile_model(model, manifest, choices, chunk=chunk)
    except ValueError as e:
        return "stuck" if "spill_words" in str(e) else "unfit"
    images = random_images(network, FRAMES, seed)
    golden = packed.forward(model, images)
    stalled, _ = outputs(bit, program, images, source=0.4, sink=0.4, seed=seed)
    np.testing.assert_array_equal(stalled, golden)
    straight, counters = outputs(bit, program, images)
    np.testing.assert_array_equal(straight, golden)
    modelled = system(made, npus, stream_bits=design.stream_bits, spill_words=design.spill_words)
    flow = simulate(modelled, FRAMES)
    assert counters["cycles"] == flow.left[-1] + 1
    for n in range(len(npus)):
        assert sum(counters[f"npu{n}_{part}"] for part in PARTS) == counters["cycles"]
        assert counters[f"npu{n}_beats"] == FRAMES * sum(beats for (_, beats), m in zip(made.ideal, mapping) if m == n)
    return f"exact {len(set(kinds))}"


@pytest.mark.parametrize("name", QUICK)
def test_random_networks(name: str, folder: Path) -> None:
    assert tally(partial(check, name, folder), QUICK[name])["exact 2"] >= 3


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_many_random_networks(name: str, folder: Path) -> None:
    assert lint(generate(DESIGNS[name]).text) == []
    assert tally(partial(check, name, folder), MANY)["exact 2"] >= 15


def test_equal_npus_between_others() -> None:
    """NPU 1, 2 and 4 are equal, but for what comes and goes; on the way to NPU 3 words are as wide as their own."""
    npu = INTEGER.changed(kfp=2, feature_bits=4, weight_bits=4)
    npus = pipeline([npu, npu, npu, BINARY.changed(kfp=8), npu, npu])
    made = generate(Design(name="equal", npus=npus))
    assert [name for name in made.modules if name.startswith(("npu_", "ping_pong"))] == [
        "npu_0", "npu_1", "ping_pong_npu_1", "npu_1_to_bits", "npu_2_to_2", "ping_pong_npu_2", "npu_1_from_bits",
        "ping_pong_npu_1_of_2", "npu_3", "ping_pong_npu_3",
    ]  # fmt: skip
    assert lint(made.text) == []
