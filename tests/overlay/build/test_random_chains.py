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

from bitloom.golden.encoding import BIPOLAR, Encoding, signed
from bitloom.golden.kernels import packed
from bitloom.golden.layer import Layer
from bitloom.golden.layers.conv import Conv, Weighted
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Network
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.flow import Deadlock, System, simulate
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import cascade, ring
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.virtual.sim import SimulationTimeout
from tests.cases import case_map
from tests.networks import integer_networks, networks, random_images, random_integer_model, random_model
from tests.simulated import outputs, overlay, tally

BINARY = Npu(
    kfp=8, kgp=8, pfp=8, ol=2, acc_bits=24, layers=8, tuple_words=256, pool_words=256, taps=8192, olds=8192,
    jumps=4096, pool_taps=2048, pool_olds=2048, kernel_rows=1 << 15, threshold_rows=2048, map_words=2048,
)  # fmt: skip
TIGHT = replace(BINARY, tuple_words=64, pool_words=16)
"""Little room for maps, so that rings come to a stop."""
INTEGER = replace(
    BINARY, engine="integer", feature_bits=8, weight_bits=8, shift_bits=0, acc_bits=32, kfp=4, kgp=6, pfp=2,
    pool_taps=1 << 14, pool_olds=1 << 14,
)  # fmt: skip


def looped(npus: tuple[Npu, ...]) -> tuple[Npu, ...]:
    """NPUs of a ring, each of which may also compute several layers in turn."""
    return tuple(replace(n, inlets=(*n.inlets, "loop"), outlets=("ring", "loop", "host")) for n in npus)


def chain(npus: list[Npu]) -> tuple[Npu, ...]:
    """A pipeline that results may leave after any NPU."""
    last = len(npus) - 1
    return tuple(
        replace(n, inlets=("ring" if k else "host",), outlets=("ring", "host") if k < last else ("host",))
        for k, n in enumerate(npus)
    )


DESIGNS = {
    "cascade": Design(
        name="cascade",
        npus=cascade([
            replace(BINARY, kfp=5, kgp=7, pfp=3),
            replace(BINARY, kfp=16, kgp=4, pfp=4, ol=4, buffer_words=2, accumulators=16),
            replace(BINARY, kfp=3, kgp=8, ol=8, buffer_words=32),
        ]),
    ),
    "ring_of_2": Design(
        name="ring_of_2", spill_words=12,
        npus=ring([replace(TIGHT, buffer_words=4), replace(TIGHT, kfp=6, kgp=5, pool=False, buffer_words=2)]),
    ),
    "ring_with_loops": Design(
        name="ring_with_loops", spill_words=4, stream_bits=64,
        npus=looped(ring([
            replace(BINARY, kfp=20, planes=8, shift_bits=0, tuple_words=128, buffer_words=8),
            replace(BINARY, kfp=4, kgp=9, ol=3, pfp=5, buffer_words=2),
            replace(BINARY, pool=False, tuple_words=128, buffer_words=4),
        ])),
    ),
    "ring_of_3": Design(
        name="ring_of_3", spill_words=2,
        npus=ring([
            replace(TIGHT, pool=False, buffer_words=2), replace(TIGHT, kfp=5, buffer_words=4),
            replace(TIGHT, kfp=9, buffer_words=2),
        ]),
    ),
    "chain": Design(
        name="chain", stream_bits=64,
        npus=chain([
            replace(BINARY, kfp=33, ol=8), replace(BINARY, kfp=17, pfp=5, buffer_words=2),
            replace(BINARY, kfp=2, kgp=3, ol=1, pool=False), replace(BINARY, kfp=64, kgp=16, ol=16, pfp=16),
        ]),
    ),
    "integer_cascade": Design(
        name="integer_cascade", npus=cascade([INTEGER, replace(INTEGER, kfp=3, kgp=8, pfp=3, ol=4, buffer_words=32)]),
    ),
    "integer_ring": Design(
        name="integer_ring", spill_words=6,
        npus=ring([
            replace(INTEGER, kfp=8, tuple_words=64, pool_words=16, buffer_words=4),
            replace(INTEGER, kfp=3, kgp=8, pfp=3, ol=4, tuple_words=128, pool=False, buffer_words=2),
        ]),
    ),
}  # fmt: skip
QUICK = {"ring_of_2": 12, "integer_cascade": 8}
"""Designs of the default tier, and how many combinations are drawn for each."""
MANY = 40
"""Combinations for each design of the slow tier; some don't fit."""
STOPS = ("ring_of_2", "integer_ring")
"""Designs that many of these networks are too large for."""
ROOMY = 1 << 12
"""Words of a spill store that is never full: programs are compiled for it where the compiler refuses the real one."""
FRAMES = 4
REFUSED = re.compile(r"random: spill_words must be >= (\d+), design \w+ has (\d+): flow: deadlock: .*")


@st.composite
def deep_networks(draw: st.DrawFn, kind: str, most: int) -> Network:
    """3 layers to ``most``, with tall maps of one size: much goes round a ring, several times, and windows reach over
    little of it."""
    integer = kind == "integer"
    encoding: Encoding = signed(8) if integer else draw(st.sampled_from([BIPOLAR, BIPOLAR, signed(4)]))
    weight: Encoding = signed(8) if integer else BIPOLAR
    height, width, channels = draw(st.sampled_from([8, 20, 30, 40])), draw(st.integers(3, 8)), draw(st.integers(1, 8))
    source = case_map(height, width, channels, encoding)
    layers: list[Layer] = []
    count = draw(st.integers(3, most))
    for i in range(count):
        channels, size = draw(st.integers(1, 8)), draw(st.sampled_from([1, 1, 3]))
        last = i == count - 1
        if last and draw(st.booleans()):
            layers.append(Dense(name=f"layer_{i}", out_channels=channels, weight=weight))
        else:
            padding = (size // 2,) * 4
            kernel = (size, size)
            layers.append(Conv(name=f"layer_{i}", out_channels=channels, kernel=kernel, padding=padding, weight=weight))
        if last and draw(st.booleans()):
            break
        layers.append(Requantise(name=f"act_{i}", encoding=signed(8)) if integer else Threshold(name=f"act_{i}"))
    return Network(name="random", input=source, layers=tuple(layers))


@st.composite
def mappings(draw: st.DrawFn, design: Design, layers: int) -> list[int] | None:
    """An NPU for each layer, each reached from the one before; None where the last NPU has no way on."""
    npus = design.npus
    found = [0]
    while len(found) < layers:
        here = found[-1]
        ways = [here] if "loop" in npus[here].outlets else []
        after = (here + 1) % len(npus)
        if "ring" in npus[here].outlets and "ring" in npus[after].inlets:
            ways.append(after)
        if not ways:
            return None
        found.append(draw(st.sampled_from(ways)))
    return found if "host" in npus[found[-1]].outlets else None


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
    wide = integer_networks(8, 8) if kind == "integer" else networks(input_bits=design.npus[0].planes or 8)
    deep = deep_networks(kind, 6 if design.closed or "loop" in design.npus[0].outlets else len(design.npus))
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
    assert found["exact"] + found["stuck"] >= 5


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_many_random_chains(name: str, folder: Path) -> None:
    """More than 100 combinations in all."""
    found = tally(partial(check, name, folder), MANY)
    assert found["exact"] + found["stuck"] >= 15
    if name in STOPS:
        assert min(found["exact"], found["stuck"]) >= 3
