"""The compiler for several NPUs: pipelines, cascades and rings, run by the plain interpreter of their packets."""

from itertools import combinations

import numpy as np
import pytest

from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.packets import packets
from bitloom.hls_gen.design.topology import cascade, pipeline, ring
from tests.cases import random_images, random_model
from tests.errors import value_error
from tests.graph_text import network_of
from tests.networks import few_and_many

from .foldings import CASES, ORDERS, changed
from .interpreter import Deadlock, Device

NPUS = (
    Npu.of(kfp=20, kgp=5, pfp=4, ol=2, planes=8, buffer_words=8),
    Npu.of(kfp=3, kgp=4, pfp=7, ol=3, shift_bits=0, buffer_words=16),
    Npu.of(kfp=9, kgp=7, pfp=2, ol=1, shift_bits=0, buffer_words=2),
    Npu.of(kfp=4, kgp=1, pfp=4, ol=1, shift_bits=2, buffer_words=4),
)
"""Different in everything: words must be divided and joined between them."""


def deep_model() -> Model:
    """Six layers, some of which make their maps larger, for rings that are passed several times."""
    network = network_of(
        "6x7x2 s8",
        "conv_1 6 3x3 padding=1, act_1, conv_2 11 3x3 padding=1, act_2 levels=2, max_pool pool_2 2x3 2x1, "
        "conv_3 21 2x1 ternary padding=1/0/1/0, act_3, conv_4 5 2x2 stride=1x2, act_4, dense_5 12, act_5, dense_6 3",
        name="deep",
    )
    return random_model(network, np.random.default_rng(7))


MODELS = CASES | {"deep": deep_model()}
SEVERAL = ("dense_33_31", "signed_8_input", "levels", "small_cnn", "deep")
"""Models of several layers."""


def layers_of(model: Model) -> int:
    return sum(isinstance(layer, Conv | Dense) for layer in model.network.layers)


def npus(count: int) -> list[Npu]:
    return [NPUS[k % len(NPUS)] for k in range(count)]


ROOMY = 1 << 16
"""Words of the spill store: larger than size_memories makes it, since the interpreter has less room between NPUs."""


def check(
    model: Model,
    design: Design,
    frames: int = 3,
    *,
    map_order: str = "auto",
    mapping: list[int] | None = None,
    chunk: str = "",
) -> Device:
    """The program for the design computes what golden does, in as many beats as it says; returns the device."""
    manifest = Manifest.of(design, "0" * 64)
    choices = CompileChoices(map_order=map_order, mapping=mapping, chunk=chunk)
    program = compile_model(model, manifest, choices)
    device = Device(manifest, program.parameters, ROOMY * design.closed)
    images = random_images(model, frames, np.random.default_rng(3))
    words = device.run(program.pack_images(images))
    assert words.shape == (frames, program.result_words)
    np.testing.assert_array_equal(program.unpack_results(words), model.forward(images))
    beats = [0] * len(design.npus)
    for n, (_, count) in zip(plan_of(model, design, map_order, mapping).mapping, program.layers, strict=True):
        beats[n] += count
    assert [unit.beats for unit in device.units] == [frames * count for count in beats]
    assert [unit.idle for unit in device.units] == [count == 0 for count in beats]
    return device


def plan_of(model: Model, design: Design, map_order: str = "auto", mapping: list[int] | None = None):
    return plan(model, design.npus, CompileChoices(map_order=map_order, mapping=mapping))


@pytest.mark.sample(3)
@pytest.mark.parametrize("map_order", ORDERS)
@pytest.mark.parametrize("name", MODELS)
def test_a_pipeline(name, map_order):
    """An NPU for each layer, with a pool unit only where there is a pool; chunks of one tuple and of as many as fit."""
    model = MODELS[name]
    count = layers_of(model)
    layers = plan(model, [NPUS[0]], CompileChoices(map_order=map_order)).lowered.layers
    chain = [npu.changed(pool=p.pool is not None) for npu, p in zip(npus(count), layers, strict=True)]
    if model.network.input.encoding.kind == "bipolar":  # with planes, an NPU that reads frames alone takes integers
        chain[0] = chain[0].changed(planes=0, shift_bits=0)
    design = size_memories("chain", [model], pipeline(chain), CompileChoices(map_order=map_order))
    for chunk in ("", "tuples:3", "tuples:1000") if count > 1 else ("",):
        check(model, design, map_order=map_order, chunk=chunk)


def runs(layers: int, count: int) -> list[list[int]]:
    """Every mapping of the layers to runs on 1 to ``count`` NPUs, without gaps."""
    assignments = []
    for used in range(1, min(count, layers) + 1):
        for cuts in combinations(range(1, layers), used - 1):
            assignments.append([sum(i >= cut for cut in cuts) for i in range(layers)])
    return assignments


@pytest.mark.sample(1)
@pytest.mark.parametrize("stream_bits", [32, 64])
@pytest.mark.parametrize("name", SEVERAL)
def test_a_cascade_with_runs(name, stream_bits):
    """Every way to cut the layers into runs; NPUs behind the last run have nothing to do."""
    model = MODELS[name]
    for mapping in runs(layers_of(model), 3):
        design = size_memories(
            "cascade", [model], cascade(npus(3)), CompileChoices(mapping=mapping), stream_bits=stream_bits
        )
        check(model, design, 2, mapping=mapping, chunk="tuples:2")


@pytest.mark.sample(3)
@pytest.mark.parametrize("map_order", ORDERS)
@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("name", SEVERAL)
def test_a_closed_ring(name, count, map_order):
    """Layer i on NPU i mod N, with the spill store that ``size_memories`` makes; results come from the last NPU."""
    model = MODELS[name]
    design = size_memories("ring", [model], ring(npus(count)), CompileChoices(map_order=map_order))
    for chunk in ("", "tuples:4"):
        check(model, design, map_order=map_order, chunk=chunk)
    assert plan_of(model, design, map_order).mapping == [i % count for i in range(layers_of(model))]


@few_and_many(2, 5)
@pytest.mark.parametrize("npu_count", [2, 3])
def test_rings_of_many_sizes(npu_count, count):
    """Many foldings, so that maps end anywhere in their chunks."""
    model = MODELS["deep"]
    draw = np.random.default_rng(npu_count)
    for _ in range(count):
        chain = []
        for kgp in draw.integers(1, 12, npu_count):
            kfp, pfp, ol = (int(draw.integers(1, most)) for most in (30, 20, kgp + 1))
            words = 1 << int(draw.integers(1, 7))
            chain.append(NPUS[3].changed(kfp=kfp, kgp=int(kgp), pfp=pfp, ol=ol, buffer_words=words, shift_bits=3))
        design = size_memories("ring", [model], ring(chain), stream_bits=int(draw.choice([32, 64])))
        check(model, design, 2, chunk=f"tuples:{draw.integers(1, 9)}")


def bits_model(*layers: str) -> Model:
    return random_model(network_of("4x5x3", *layers), np.random.default_rng(2))


ROWS = (
    "rows:1 16 12, rows:2 32 24, rows:9 64 36, rows 16 12, rows 32 24, columns:1 16 9, columns:3 32 27, columns 32 27"
)
TUPLES = "tuples 8 6, tuples:3 16 9, tuples:1 8 3, tuples:2 8 6, tuples:3 8 6, tuples:1000 8 6, tuples:2 4 3, "
TUPLES += "tuples:1 2 2, tuples:5 2 2, tuples:5 32 15, tuples:1000 64 36, tuples:7 64 21"
CHUNKS = [(text, int(buffer), int(words)) for text, buffer, words in map(str.split, f"{ROWS}, {TUPLES}".split(","))]
"""Chunks of a map of 36 words: as they are asked for, words of a buffer, words of all chunks but perhaps the last."""
LAYERS = "conv_1 5 2x2, act_1, conv_2 4 3x4"


@pytest.mark.sample(10)
@pytest.mark.parametrize(("text", "buffer_words", "words"), [*CHUNKS, ("", 8, 3)])
def test_chunks(text, buffer_words, words):
    """Of a map of 3 x 4 tuples of 3 words, and of one of 1 tuple of 2 words, which goes word by word. Buffers grow to
    hold rows or columns of a number; else a chunk is as many as they hold, of tuples at most the number. A tuple
    that is wider than a buffer is divided."""
    model = bits_model(LAYERS, "act_2, dense 2")
    given = buffer_words if ":" not in text or text.startswith("tuples") else 8
    one = Npu.of(kgp=1, pfp=1, ol=1, buffer_words=given)
    choices = CompileChoices(chunk=text)
    design = size_memories("chain", [model], pipeline([one.changed(kfp=kfp) for kfp in (8, 2, 3)]), choices)
    assert [npu.ports.buffer_words for npu in design.npus] == [given, buffer_words, given]
    units = check(model, design, 2, chunk=text).units
    sizes = [min(words, 36 - at) for at in range(0, 36, words)]
    assert [unit.inlets["ring"].sizes for unit in units[1:]] == [sizes * 2, [1] * 4]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"chunk": "rows:2", "map_order": "pull"}, "net: a chunk of rows needs map_order raster, got pull"),
        ({"chunk": "columns", "map_order": "raster"}, "net: a chunk of columns needs map_order columns, got raster"),
        ({"chunk": "rows"}, "conv_2: a chunk of whole rows needs buffers of 12 words at least, got 8"),
        ({"chunk": "rows:0"}, "chunk must be one of tuples, rows, columns, perhaps with :N, N from 1 on, got 'rows:0'"),
        ({"chunk": "lines"}, "chunk must be one of tuples, rows, columns, perhaps with :N, N from 1 on, got 'lines'"),
    ],
)
def test_chunks_that_are_refused(choices, message):
    model = bits_model(LAYERS)
    one = Npu.of(kgp=1, pfp=1, ol=1, buffer_words=8)
    chain = pipeline([one.changed(kfp=kfp) for kfp in (8, 2)])
    with value_error(message):
        size_memories("chain", [model], chain, CompileChoices(**choices))


def test_a_chunk_needs_neighbours():
    with value_error("small_cnn: a chunk needs NPUs one behind the other, got 'rows:2' for 1"):
        plan(MODELS["small_cnn"], [NPUS[0]], CompileChoices(chunk="rows:2"))


def test_a_design_whose_buffers_are_too_small_for_a_chunk():
    model = bits_model(LAYERS)
    one = Npu.of(kgp=1, pfp=1, ol=1, buffer_words=8)
    choices = CompileChoices(map_order="raster")
    design = size_memories("chain", [model], pipeline([one.changed(kfp=kfp) for kfp in (8, 2)]), choices)
    with value_error("net: buffer_words must be >= 24, NPU 1 of design chain has 8"):
        check(model, design, chunk="rows:2")


def test_a_spill_store_that_is_too_small_blocks():
    """The map of layer 1 can't wait for its reader, NPU 0, while that still makes layer 0's."""
    model = bits_model(*(f"conv_{n} 3 1x1, act_{n}" for n in range(4)))
    design = size_memories("ring", [model], ring([Npu.of(kfp=3, kgp=3, pfp=3, ol=3, buffer_words=2)] * 2))
    check(model, design)
    manifest = Manifest.of(design, "0" * 64)
    program = compile_model(model, manifest)
    images = program.pack_images(random_images(model, 3, np.random.default_rng(3)))
    with pytest.raises(Deadlock):
        Device(manifest, program.parameters, 2).run(images)


def test_packets_go_to_their_npus():
    """NPU after NPU, of each by id with the network row last; one without layers gets rows by which it waits."""
    model = MODELS["dense_33_31"]
    chain = cascade([NPUS[0], NPUS[1], NPUS[2].changed(pool=False)])
    design = size_memories("cascade", [model], chain, CompileChoices(mapping=[0, 1]))
    manifest = Manifest.of(design, "0" * 64)
    program = compile_model(model, manifest, CompileChoices(mapping=[0, 1]))
    sent = [(h.npu, m.name) for h, m, _ in packets(manifest, program.parameters)]
    assert [npu for npu, _ in sent] == sorted(npu for npu, _ in sent)
    first, second, third = ([name for npu, name in sent if npu == n] for n in range(3))
    assert first == ["inputs", "layers", "kernels", "results", "thresholds", "pool_inputs", "pool_layers", "network"]
    assert second == ["inputs", "layers", "kernels", "results", "chunks", "network"]
    assert third == ["inputs", "layers", "network"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("n", [0, 1])
def test_what_does_not_fit_names_the_npu(n):
    model = MODELS["small_cnn"]
    design = size_memories("two", [model], cascade(npus(2)))
    needs = plan_of(model, design).needs[n]
    for name, need in ((name, need) for name, need in needs.capacities.items() if need):
        given = changed(Manifest.of(design, "0" * 64), n, **{name: need})
        compile_model(model, given)
        given = changed(given, n, **{name: need - 1})
        with value_error(f"small_cnn: {name} must be >= {need}, NPU {n} of design two has {need - 1}"):
            compile_model(model, given)


def test_a_pool_needs_a_pool_unit():
    model = MODELS["levels"]
    with value_error("conv_1: a pool needs an NPU with a pool unit, got one without"):
        size_memories("chain", [model], pipeline([NPUS[0].changed(pool=False), NPUS[1]]))
