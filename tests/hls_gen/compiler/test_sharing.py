"""Lanes that share a weight: which designs store each weight once, and that programs for them equal the definition."""

import numpy as np
import pytest

from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.lanes import weight_of_lanes
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import cascade
from tests.cases import random_images, random_model
from tests.errors import value_error
from tests.graph_text import network_of

from .foldings import design_manifest
from .interpreter import Device


def several_bits(source: str = "s3", levels: int = 2, weight: str = "ternary") -> Model:
    """Two convolutions with a pool, and a dense layer, on maps whose values have ``levels`` bits."""
    network = network_of(
        f"4x6x2 {source}",
        f"conv_1 7 2x3 {weight} padding=1/0/0/1, act_1 levels={levels}, conv_2 6 2x2 {weight} stride=1x2",
        f"act_2 levels={levels}, max_pool 2x1 2x1, dense 3 {weight}",
    )
    return random_model(network, np.random.default_rng(levels))


def check(model: Model, npus: Npu | tuple[Npu, ...]) -> list[tuple[int, int]]:
    """Run a network by the interpreter of its packets; which lanes share a weight in each NPU of its design."""
    design = size_memories("shared", [model], npus)
    program = compile_model(model, design_manifest(design))
    images = random_images(model, 2, np.random.default_rng(3))
    device = Device(design_manifest(design), program.parameters)
    words = device.run(program.pack_images(images))
    np.testing.assert_array_equal(program.unpack_results(words), model.forward(images))
    single = [npu.changed(lanes_per_weight=1, lane_step=1) for npu in design.npus]
    network_plan = plan(model, single)
    assert device.beats == 2 * sum(beats for _, beats in network_plan.ideal)
    for npu, own in zip(design.npus, network_plan.needs):
        assert npu.array.kernel_rows == max(2, own.needs.sizes["kernel_rows"])
        assert memory_of(npu, "kernels").width == npu.array.kgp * npu.array.row_weights + npu.code_bits
    return [(npu.array.lanes_per_weight, npu.array.lane_step) for npu in design.npus]


@pytest.mark.parametrize(
    ("lanes", "several", "apart", "expected"),
    [
        (4, 1, 1, [0, 1, 2, 3]),
        (6, 2, 1, [0, 0, 1, 1, 2, 2]),
        (8, 2, 2, [0, 1, 0, 1, 2, 3, 2, 3]),
        (7, 3, 2, [0, 1, 0, 1, 0, 1, 2]),
        (7, 2, 2, [0, 1, 0, 1, 2, 3, 2]),
    ],
)
def test_lanes_share_weights_in_blocks(lanes, several, apart, expected):
    assert weight_of_lanes(lanes, several, apart) == expected
    npu = Npu.of(kfp=lanes, lanes_per_weight=several, lane_step=apart)
    assert (npu.array.weight_of_lanes, npu.array.row_weights) == (expected, max(expected) + 1)


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("source", "levels", "npu", "expected"),
    [
        ("s3", 2, Npu.of(kfp=8, kgp=8, pfp=8, ol=1), (2, 1)),
        ("s3", 2, Npu.of(kfp=16, kgp=6, pfp=8, ol=2), (2, 2)),
        ("s3", 2, Npu.of(kfp=18, kgp=5, pfp=8, ol=4), (2, 4)),  # two lanes of a word are of no value
        ("s3", 3, Npu.of(kfp=12, kgp=4, pfp=6, ol=2), (3, 2)),
        ("b2", 2, Npu.of(kfp=4, kgp=3, pfp=4, ol=2), (2, 2)),
        ("s3", 2, Npu.of(kfp=16, kgp=4, pfp=8, ol=2, accumulators=4), (2, 2)),
        ("s3", 2, Npu.of(kfp=12, kgp=4, pfp=12, ol=4), (1, 1)),  # three steps of results in a word
        ("s3", 2, Npu.of(kfp=8, kgp=4, pfp=6, ol=2), (1, 1)),  # three steps in a word of the pool
        ("s3", 1, Npu.of(kfp=8, kgp=8, pfp=8, ol=1), (1, 1)),
        ("b1", 2, Npu.of(kfp=8, kgp=8, pfp=8, ol=1), (1, 1)),  # values of one bit at first, of two behind
        ("s3", 2, Npu.of(kfp=16, kgp=8, pfp=8, ol=1, planes=3), (1, 1)),
        ("s3", 2, Npu.of(kfp=2, kgp=2, pfp=2, ol=1), (1, 1)),  # the input would take two words
    ],
)
def test_each_weight_is_stored_once(source, levels, npu, expected):
    assert check(several_bits(source, levels), npu) == [expected]


def test_bipolar_weights_are_stored_once():
    assert check(several_bits(weight="bipolar"), Npu.of(kfp=16, kgp=6, pfp=8, ol=2)) == [(2, 2)]


def test_layers_are_mapped_anew_where_lanes_share_weights():
    """Lanes share weights, and the former forms nothing: layer 1 belongs to NPU 1, which it did not before."""
    layers = (f"conv_{n} {channels} 3x3 padding=1, threshold_{n} levels=2" for n, channels in enumerate((8, 16, 4)))
    network = network_of("6x6x2 b2", *layers)
    model = random_model(network, np.random.default_rng(10))
    first = Npu.of(kfp=8, kgp=8, pfp=4, ol=4, window_former=True)
    choices = CompileChoices(map_order="raster")
    design = size_memories("shared", [model], cascade([first, Npu.of(kfp=32, kgp=4, pfp=4, ol=4)]), choices)
    assert [npu.array.lanes_per_weight for npu in design.npus] == [2, 2]
    assert plan(model, design.npus, choices).mapping == [0, 1, 1]
    compile_model(model, design_manifest(design), choices)


def test_other_networks_are_refused():
    npu = Npu.of(kfp=12, kgp=8, pfp=12, ol=1)
    two = design_manifest(size_memories("two", [several_bits()], npu))
    message = (
        "conv_2: the lanes that share a weight must be the bits of one value, lanes_per_weight = 2 of them, 1 apart, "
        "got other ones"
    )
    with value_error(message):
        compile_model(several_bits(levels=3), two, CompileChoices())
