"""Random networks on chains and rings of NPUs, with any mapping, chunk and order, under random stalls: what the flow
model lets through is bit-exact and comes to its end; what it calls a deadlock stops in hardware too, and the NPUs that
are named to wait for each other are those that the model names.

A few designs run every network that is drawn; tests/overlay/build/test_random_networks.py does the same for one NPU.
"""

import re
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from bitloom.golden.kernels import packed
from bitloom.golden.layers.conv import Weighted
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.flow import Deadlock, System, simulate
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.fuzz.designs import CHAINS as DESIGNS
from bitloom.overlay.virtual.sim import SimulationTimeout
from tests.networks import (
    IntegerChoices,
    deep_networks,
    integer_networks,
    mappings,
    networks,
    random_images,
    random_integer_model,
    random_model,
)
from tests.simulated import outputs, overlay, tally

QUICK = {"ring_of_2": 12, "integer_cascade": 5}
"""Designs of the default tier, and how many combinations are drawn for each."""
MANY = 40
"""Combinations for each design of the slow tier; some don't fit."""
STOPS = ("ring_of_2", "integer_ring")
"""Designs that many of these networks are too large for."""
ROOMY = 1 << 12
"""Words of a spill store that is never full: programs are compiled for it where the compiler refuses the real one."""
FRAMES = 4
REFUSED = re.compile(r"random: spill_words must be >= (\d+), design \w+ has (\d+): flow: deadlock: .*")


@cache
def roomy_manifest(name: str) -> Manifest:
    """The manifest of a design with a roomy spill store, if it has one at all."""
    design = DESIGNS[name]
    return Manifest.from_dict(generate(replace(design, spill_words=design.spill_words and ROOMY)).manifest, "roomy")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("random_chains")


def check(name: str, folder: Path, data: st.DataObject) -> str:
    """``unfit`` where the network that is drawn doesn't fit the design's memories, else ``exact`` or ``stuck``."""
    design, (bit, manifest) = DESIGNS[name], overlay(DESIGNS[name], folder)
    kind = design.npus[0].engine
    binary = networks(input_bits=design.npus[0].array.planes or 8)
    wide = integer_networks(IntegerChoices()) if kind == "integer" else binary
    deep = deep_networks(kind, 6 if design.closed or "loop" in design.npus[0].ports.outlets else len(design.npus))
    network = data.draw(st.one_of(deep, deep, wide))
    mapping = data.draw(mappings(design, sum(isinstance(layer, Weighted) for layer in network.layers)))
    if mapping is None:
        return "unfit"
    seed = data.draw(st.integers(0, 2**32 - 1))
    order = data.draw(st.sampled_from(["raster", "raster", "pull"]))
    dataflow = data.draw(st.sampled_from(["output_stationary", "auto"]))
    chunk = data.draw(st.sampled_from([1, 2, 5, 1000]))
    model = random_integer_model(network, seed, 32) if kind == "integer" else random_model(network, seed)
    choices = CompileChoices(map_order=order, dataflow=dataflow, mapping=mapping)
    try:
        program = compile_model(model, roomy_manifest(name), choices, chunk=chunk)
    except ValueError:
        return "unfit"
    npus = manifest.npus
    made = plan(model, npus, choices, chunk=chunk)
    modelled = system(made, npus, stream_bits=design.stream_bits, spill_words=design.spill_words)
    stalls = {key: data.draw(st.sampled_from([0.0, 0.4])) for key in ("source", "sink")}
    images = random_images(network, FRAMES, seed)
    circle = stuck_npus(modelled)
    if circle:
        with pytest.raises(ValueError, match=REFUSED) as refused:
            compile_model(model, manifest, choices, chunk=chunk)
        check_least(modelled, str(refused.value))
        with pytest.raises(SimulationTimeout) as stuck:
            outputs(bit, replace(program, design_digest=manifest.digest), images, **stalls, seed=seed)
        first = str(stuck.value).splitlines()[0]
        assert "a circle of waits: " in first
        assert {int(n) for n in re.findall(r"NPU (\d+) waits for", first)} == circle
        return "stuck"
    program = compile_model(model, manifest, choices, chunk=chunk)
    found, _ = outputs(bit, program, images, **stalls, seed=seed)
    np.testing.assert_array_equal(found, packed.forward(model, images))
    return "exact"


def stuck_npus(modelled: System) -> set[int]:
    """NPUs that wait for each other in the flow model, none where frames come out."""
    try:
        simulate(modelled, FRAMES)
    except Deadlock as deadlock:
        return set(deadlock.npus)
    return set()


def check_least(modelled: System, message: str) -> None:
    """The refusal names the least store with which the network runs, and the one that there is."""
    refused = REFUSED.fullmatch(message)
    assert refused is not None
    least, given = (int(words) for words in refused.groups())
    assert given == modelled.spill_words
    simulate(replace(modelled, spill_words=least), FRAMES)
    with pytest.raises(Deadlock):
        simulate(replace(modelled, spill_words=least - 1), FRAMES)


@pytest.mark.parametrize("name", QUICK)
def test_random_chains(name: str, folder: Path) -> None:
    found = tally(partial(check, name, folder), QUICK[name])
    assert found["exact"] + found["stuck"] >= 3


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_many_random_chains(name: str, folder: Path) -> None:
    """More than 100 combinations in all."""
    found = tally(partial(check, name, folder), 4 * MANY if name in STOPS else MANY)
    assert found["exact"] + found["stuck"] >= 15
    if name in STOPS:
        assert min(found["exact"], found["stuck"]) >= 3
