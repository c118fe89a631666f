"""Residual networks of bits on rings and pipelines (docs/decisions/0022): integers wait in the skip store of the NPU
that adds them; every result is golden's, under random stalls, and without them every cycle is the flow model's."""

from functools import partial
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
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import cascade, pipeline, ring
from bitloom.overlay.fuzz.designs import chain, looped
from tests.networks import binary_residual_networks, random_images, random_integer_model
from tests.overlay.build.test_binary_residual import NPU
from tests.simulated import outputs, overlay, tally

OWN = NPU.changed(kfp=4, kgp=4, pfp=4, ol=2, aheads=512, buffer_words=4)
"""What it keeps waits in its own skip store."""
ONWARD = OWN.changed(skips_onward=1, outlets=("ring", "loop", "host"))
WIDE = ONWARD.changed(kfp=8, aheads=256, accumulators=16, skip_words=63, buffer_words=8)
DESIGNS = {
    "ring_of_2": Design(name="ring_of_2", spill_words=512, npus=ring([ONWARD, WIDE])),
    "looped_ring": Design(name="looped_ring", spill_words=512, npus=looped(ring([ONWARD, ONWARD.changed(pool=False)]))),
    "chain": Design(name="chain", npus=chain([*[ONWARD, WIDE] * 4, ONWARD.changed(skips_onward=0)])),
    "cascade": Design(name="cascade", npus=cascade([OWN, OWN.changed(kfp=8)])),
}
"""Rings and chains whose NPUs keep integers for the next one, and a cascade in which each NPU keeps them for itself."""
QUICK = {"ring_of_2": 4, "cascade": 2}
"""Designs of the default tier, and how many networks are drawn for each."""
RULES = (
    "must be >= ", "a pool needs an NPU with a pool unit", "must have room for all", "must have skips_onward",
    "must wait in one skip store", "must come from one NPU", "must have an outlet to NPU", "must be of bits",
)  # fmt: skip
"""Why a network may be refused: by memories, or where the integers of its shortcuts wait."""
STALLS = {"source": 0.3, "sink": 0.3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("binary_residual_chains")


def equals(made: Design, folder: Path, model, images, choices: CompileChoices, stalls: dict[str, float]) -> None:
    """The board's results are golden's, as fast as the flow model says, and golden's with stalls."""
    bit, manifest = overlay(made, folder)
    program, golden = compile_model(model, manifest, choices), model.forward(images)
    found, counters = outputs(bit, program, images)
    np.testing.assert_array_equal(found, golden)
    planned, spill = plan(model, manifest.npus, choices), manifest.design.spill_words
    flow = simulate(system(planned, manifest.npus, stream_bits=manifest.stream_bits, spill_words=spill), len(images))
    assert counters["cycles"] == flow.left[-1] + 1
    np.testing.assert_array_equal(outputs(bit, program, images, **stalls, seed=3)[0], golden)


def check(name: str, folder: Path, data: st.DataObject) -> str:
    """``unfit`` where the network that is drawn is refused, else ``exact``, and whether integers went ``onward``."""
    network, seed = data.draw(binary_residual_networks(8, 2)), data.draw(st.integers(0, 2**32 - 1))
    choices = CompileChoices(map_order=data.draw(st.sampled_from(["pull", "raster"])))
    stalls = {key: data.draw(st.sampled_from([0.0, 0.4])) for key in ("source", "sink")}
    model, images = random_integer_model(network, seed, 24), random_images(network, 4, seed)
    manifest = overlay(DESIGNS[name], folder)[1]
    try:
        compile_model(model, manifest, choices)
    except ValueError as e:
        if not any(rule in str(e) for rule in RULES):
            raise
        return "unfit"
    equals(DESIGNS[name], folder, model, images, choices, stalls)
    ways = plan(model, manifest.npus, choices).ways.values()
    return "exact onward" if any(way.skip_npu is not None for way in ways) else "exact"


@pytest.mark.parametrize("name", QUICK)
def test_random_graphs(name: str, folder: Path) -> None:
    found = tally(partial(check, name, folder), QUICK[name])
    assert found["exact onward" if name == "ring_of_2" else "exact"]


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_many_random_graphs(name: str, folder: Path) -> None:
    found = tally(partial(check, name, folder), 40)
    assert found["exact"] + found["exact onward"] >= 10
    assert (found["exact onward"] > 0) == (name != "cascade")


@pytest.mark.slow
@pytest.mark.parametrize(("join", "count", "mapping"), [
    (ring, 2, None), (ring, 3, None), (pipeline, 7, None), (cascade, 2, None), (cascade, 3, [0, 0, 0, 2, 2, 2, 2]),
])  # fmt: skip
def test_digits(join, count: int, mapping: list[int] | None, folder: Path) -> None:
    """The trained network; stores are as the flow model sizes them. In the last one NPU 1 hands bits on by a copy."""
    pytest.importorskip("sklearn")
    model, npu = zoo.load("digits-residual"), Npu.of(kfp=32, kgp=16, pfp=8, ol=4)
    npus = join([npu.changed(planes=6, shift_bits=0), *[npu] * (count - 1)])
    choices = CompileChoices(mapping=mapping)
    made = size_memories(f"digits_{join.__name__}_{count}", [model], npus, choices)
    equals(made, folder, model, load_digits().test_images[:20], choices, STALLS)
