"""Graphs of layers on chains and rings of NPUs (docs/decisions/0024): wherever graphs are cut, every result is
golden's, under random stalls of the host, and without them every cycle is the flow model's."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.depthwise import joined
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.engine_form import engine_form_of
from bitloom.hls_gen.compiler.flow import simulate
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.segments import segments
from bitloom.hls_gen.design.copies import is_copy
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.topology import cascade, ring
from bitloom.overlay.fuzz.designs import chain, looped
from tests.networks import IntegerChoices, depthwise_networks, random_images, random_integer_model
from tests.overlay.build.test_residual import JOINED, NPU, RESIDUAL, RULES
from tests.simulated import outputs, overlay, tally

FORMER = {"window_former": True, "former_channels": 4, "former_column": 20, "former_columns": 10, "former_line": 20}
SMALL = NPU.changed(kfp=4, kgp=4, pfp=4, ol=2, aheads=512, buffer_words=8)
DEPTHWISE = {"depthwise": True, "pool_kernel_rows": 1024, "pool_scale_rows": 256, "pool_jumps": 1024}
WIDE = SMALL.changed(kgp=6, accumulators=16, buffer_words=4, aheads=0)
BARE = SMALL.changed(kgp=8, ol=4, pool=False, skip_words=63, buffer_words=2)
DESIGNS = {
    "looped_ring": Design(name="looped_ring", spill_words=512, npus=looped(ring([SMALL, WIDE]))),
    "depthwise": Design(
        name="depthwise",
        spill_words=512,
        npus=looped(ring([SMALL.changed(**DEPTHWISE | FORMER), WIDE.changed(**DEPTHWISE)])),
    ),
    "depthwise_ring": Design(
        name="depthwise_ring",
        spill_words=512,
        npus=ring([SMALL.changed(**DEPTHWISE), WIDE.changed(**DEPTHWISE)]),
    ),
    "depthwise_chain": Design(
        name="depthwise_chain",
        npus=chain([SMALL.changed(**DEPTHWISE), WIDE.changed(**DEPTHWISE)] * 3),
    ),
    "depthwise_cascade": Design(
        name="depthwise_cascade",
        npus=cascade([WIDE.changed(**DEPTHWISE), SMALL.changed(**DEPTHWISE)]),
    ),
    "cascade": Design(name="cascade", stream_bits=64, npus=cascade([WIDE.changed(**FORMER), SMALL, WIDE])),
    "ring_of_2": Design(name="ring_of_2", spill_words=63, npus=ring([SMALL, WIDE])),
    "ring_of_3": Design(name="ring_of_3", spill_words=512, npus=ring([BARE, SMALL, WIDE])),
    "pipeline": Design(name="pipeline", npus=chain([SMALL, WIDE, SMALL.changed(raster=True), SMALL, WIDE, BARE])),
}
"""Chains and rings with stores of block RAM and LUT RAM, chunks of 2 words to 8; a window former, and pool units with
weights in all NPUs. Of a pipeline results may leave anywhere. NPUs that are looped may compute layers in turn: they are
chains as well as rings, by the mapping."""
QUICK = {"looped_ring": 6}
"""Designs of the default tier, and how many networks are drawn for each."""
OWN = depthwise_networks(IntegerChoices(feature_bits=9, roundings=NPU.results.roundings))
MANY = 50
"""Networks for each design of the slow tier."""
FRAMES = 4
REFUSED = (
    *RULES, "must hand maps on in the order in which they come",
    "one must come from each store in order", "must have an outlet to NPU", "must have room for all",
    "needs an NPU with outlet host", "needs an NPU with a pool unit",
)  # fmt: skip
"""Why a network may be refused; also for a memory that is too small."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("residual_chains")


def mapped(design: Design, layers: int, data: st.DataObject) -> list[int] | None:
    """The NPUs of layers, or None for those that the compiler chooses."""
    if "loop" not in design.npus[0].ports.outlets or data.draw(st.booleans()):
        return None
    steps = data.draw(st.lists(st.integers(0, 1), min_size=layers - 1, max_size=layers - 1))
    found = [sum(steps[:i]) for i in range(layers)]
    return [n % len(design.npus) if design.closed else min(n, len(design.npus) - 1) for n in found]


def check(name: str, folder: Path, data: st.DataObject) -> str:
    """``unfit`` where the network that is drawn is refused; else ``exact``, and what there was of ``copies``, of
    ``depthwise`` convolutions in pool units, and of windows that a ``former`` made."""
    bit, manifest = overlay(DESIGNS[name], folder)
    network, seed = data.draw(st.one_of(RESIDUAL, JOINED, OWN)), data.draw(st.integers(0, 2**32 - 1))
    raster = any(npu.sequencer.raster for npu in manifest.npus)
    order = "raster" if raster else data.draw(st.sampled_from(["pull", "raster"]))
    stalls = {key: data.draw(st.sampled_from([0.0, 0.4])) for key in ("source", "sink")}
    model, images = random_integer_model(network, seed, 32, 31), random_images(network, FRAMES, seed)
    cut = segments(engine_form_of(network))
    if manifest.npus[0].depthwise:
        cut = joined(cut, model)
    choices = CompileChoices(map_order=order, mapping=mapped(DESIGNS[name], len(cut), data))
    chunk = data.draw(st.sampled_from([1, 2, 1000]))
    try:
        program = compile_model(model, manifest, choices, chunk=chunk)
    except ValueError as e:
        if not any(rule in str(e) for rule in REFUSED):
            raise
        return "unfit"
    golden = model.forward(images)
    found, counters = outputs(bit, program, images)
    np.testing.assert_array_equal(found, golden)
    made, spill = plan(model, manifest.npus, choices, chunk=chunk), manifest.design.spill_words
    flow = simulate(system(made, manifest.npus, stream_bits=manifest.stream_bits, spill_words=spill), FRAMES)
    assert counters["cycles"] == flow.left[-1] + 1
    np.testing.assert_array_equal(outputs(bit, program, images, **stalls, seed=seed)[0], golden)
    layers = made.lowered.layers
    used = {"copies": any(is_copy(p.name) for p in layers), "depthwise": any(p.depthwise is not None for p in layers),
            "former": made.formed is not None}  # fmt: skip
    return " ".join(["exact", *(what for what, there in used.items() if there)])


@pytest.mark.parametrize("name", QUICK)
def test_random_graphs(name: str, folder: Path) -> None:
    found = tally(partial(check, name, folder), QUICK[name])
    assert found["exact"]
    assert found["exact copies"]


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_many_random_graphs(name: str, folder: Path) -> None:
    found = tally(partial(check, name, folder), MANY)
    expected = ("copies", "depthwise") if name == "depthwise" else ("depthwise",) if "depthwise" in name else ()
    for what in expected:  # few of these first layers have windows formed
        assert any(what in key for key in found)
    assert found.total() - found["unfit"] >= 5  # most have too many layers for a pipeline
