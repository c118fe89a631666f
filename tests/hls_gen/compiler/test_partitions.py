"""Networks in partitions: golden's models of the parts, one after the other, give what the network gives."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from bitloom.golden import zoo
from bitloom.golden.encoding import signed
from bitloom.golden.graph import INPUT
from bitloom.golden.kernels import packed
from bitloom.golden.layers.conv import Conv, Weighted
from bitloom.golden.network import Model, Network
from bitloom.golden.zoo.mlperf_tiny import seeded
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_network
from bitloom.hls_gen.compiler.partitions import ProgramModel, partitions
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import Sizing, size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.partitioned_program import read_program
from bitloom.hls_gen.design.topology import ring
from bitloom.overlay.fuzz.pick import Pick
from bitloom.overlay.fuzz.random_networks import binary_network, depthwise_network, grouped_network
from tests.errors import value_error
from tests.graph_text import network_of
from tests.networks import BYTES, few_and_many, random_images, random_model
from tests.random_networks.blocks import residual_network
from tests.random_networks.graphs import graph_network
from tests.simulated import compare, outputs, overlay, tally

NPU = Npu.of(engine="integer", kfp=4, kgp=4, ol=2, pfp=2, feature_bits=9, weight_bits=8, acc_bits=32)


def forward(program_models: tuple[ProgramModel, ...], images: np.ndarray) -> np.ndarray:
    """The map of the last part, by golden; each part finds the maps that it reads whole."""
    maps = {INPUT: images}
    ends = {INPUT: images.shape[3]}
    for program_model in program_models:
        assert all(each.end <= ends[each.map] for each in program_model.reads)
        read = np.concatenate([maps[each.map][..., each.begin : each.end] for each in program_model.reads], axis=3)
        results = program_model.model.forward(read)
        before = maps.get(program_model.gives.map, results[..., :0])
        assert before.shape[3] == program_model.gives.begin
        maps[program_model.gives.map] = np.concatenate([before, results], axis=3)
        ends[program_model.gives.map] = program_model.gives.end
    return maps[program_models[-1].gives.map]


def cut(network: Network, names: list[str], count: int) -> dict[str, int]:
    """Some of the layers, each in so many slices."""
    return {name: count for name in names if name in {layer.name for layer in network.layers}}


one_block = partial(residual_network, kinds=("identity",), most=1)
"""A residual block whose maps have one size: a partition may read two of them."""


@few_and_many(40, 400)
def test_parts_give_what_the_network_gives(count):
    """Of many of them, additions in slices read channels of two maps, of which none is always the same."""

    def of_integers(pick: Pick) -> list[str]:
        maker = pick.of((one_block, residual_network, graph_network, depthwise_network, grouped_network))
        return check_cuts(random_model(maker(pick, BYTES), pick.seed(), 32, 31), pick)

    seen = tally(of_integers, count)
    assert seen["cut"] >= count // 4
    assert seen["joined"] >= count // 20
    assert seen["sliced and joined"] >= max(2, count // 80)


def test_parts_of_networks_of_bits():
    def of_bits(pick: Pick) -> list[str]:
        return check_cuts(random_model(binary_network(pick), pick.seed()), pick)

    assert tally(of_bits, 20)["cut"] >= 5


def check_cuts(model: Model, pick: Pick) -> list[str]:
    """Some cuts give what the network gives, or are refused by a rule of partitions. Words for what was cut."""
    images = random_images(model.network, 2, pick.seed())
    outputs = packed.forward(model, images)
    words: list[str] = []
    for slices in random_slices(model.network, pick):
        program_models = partitions_or_rule(model, slices)
        if program_models is not None:
            np.testing.assert_array_equal(forward(program_models, images), outputs)
            words += kinds_of_cut(program_models) if len(np.unique(outputs)) > 2 else []
    return words


def random_slices(network: Network, pick: Pick) -> Iterator[dict[str, int]]:
    """Layers that begin a partition, one of them in slices: each one once, alone or among others."""
    names = [layer.name for layer in network.layers if isinstance(layer, Weighted) or pick.integer(0, 9) == 0]
    for sliced in names:
        others = pick.of([[], names, [name for name in names if pick.integer(0, 3) == 0]])
        yield {name: pick.integer(2, 3) if name == sliced else 1 for name in names if name in (sliced, *others)}


def kinds_of_cut(program_models: tuple[ProgramModel, ...]) -> list[str]:
    sliced = any(program_model.gives.begin for program_model in program_models)
    joined = any(len(program_model.reads) > 1 for program_model in program_models)
    both = any(program_model.gives.begin and len(program_model.reads) > 1 for program_model in program_models)
    return ["cut", *["sliced"] * sliced, *["joined"] * joined, *["sliced and joined"] * both]


RULES = (
    "in front of a cut one map alone",
    "slices must be 1..",
    "slices are of one",
    "maps that a partition reads must",
    "must be bipolar",  # maps of bits and integers
    "must be <",  # sums of more channels, which a requantisation may not take
)
"""Rules of partitions that a random cut may break."""


def partitions_or_rule(model: Model, slices: dict[str, int]) -> tuple[ProgramModel, ...] | None:
    """The partitions; None where one of RULES is broken, and no other."""
    try:
        return partitions(model, slices, [NPU])
    except ValueError as error:
        if not any(rule in str(error) for rule in RULES):
            raise
        return None


def test_a_residual_block_is_cut_in_its_middle():
    """The second convolution's slices read all of the map before, and their own channels of the block's input."""
    model = residual()
    program_models = partitions(model, {"conv_2": 1, "conv_3": 2}, [NPU])
    assert [[(each.map, each.begin, each.end) for each in program_model.reads] for program_model in program_models] == [
        [(INPUT, 0, 3)],
        [("requantise_1", 0, 8)],
        [("requantise_2", 0, 8), ("requantise_1", 0, 4)],
        [("requantise_2", 0, 8), ("requantise_1", 4, 8)],
    ]
    assert [
        (program_model.gives.map, program_model.gives.begin, program_model.gives.end)
        for program_model in program_models[2:]
    ] == [
        ("add_4", 0, 4),
        ("add_4", 4, 8),
    ]
    images = random_images(model.network, 3, 1)
    np.testing.assert_array_equal(forward(program_models, images), model.forward(images))


def test_copies_of_channels_need_no_wider_weights_than_the_network():
    """An NPU of 2-bit weights takes a network of 2-bit weights in slices, too."""
    model = residual()
    layers = (replace(layer, weight=signed(2)) if isinstance(layer, Conv) else layer for layer in model.network.layers)
    arrays = {
        name: {key: array >> 6 if key == "weight" else array for key, array in held.items()}
        for name, held in model.arrays.items()
    }
    small = Model(replace(model.network, layers=tuple(layers)), arrays)
    choices = CompileChoices(partitions={"conv_2": 1, "conv_3": 2})
    size_memories("block", [small], NPU.changed(weight_bits=2), choices)


def residual() -> Model:
    """A convolution, and a residual block of two."""
    encodings = ("u8", "u8", "s9")
    blocks = (f"conv_{n} 8 3x3 s8 padding=1, requantise_{n} {kind}" for n, kind in enumerate(encodings, 1))
    return seeded(network_of("6x5x3 u8", *blocks, "add_4 requantise_1 requantise_3 u8", name="block"))


ONE = "slices are of one convolution or dense layer, and of what computes each channel by itself"

LAST = "in front of a cut one map alone may be made for layers behind it, that of the layer before"


@pytest.mark.parametrize(
    ("slices", "message"),
    [
        ({"conv_2": 2}, f"block: conv_2: {ONE}, got conv_3"),
        ({"conv_2": 1, "conv_3": 9}, "block: conv_3: slices must be 1..8, its channels, got 9"),
        ({"conv_3": 1}, f"block: conv_3: {LAST}, requantise_2, got requantise_1, requantise_2"),
        ({"requantise_3": 1}, f"block: requantise_3: {LAST}, conv_3, got conv_3, requantise_1"),
    ],
)
def test_refused(slices, message):
    with value_error(message):
        partitions(residual(), slices, [NPU])


def test_what_is_no_partitions():
    """A message is no longer than others where a file has a long value there."""
    for wrong in ({"a": 0}, {"a": True}, {"a": "1"}, ["a"] * 1000, None, {"a" * 1000: -1}):
        with pytest.raises(ValueError, match=r"^partitions must be numbers of programs >= 1 by layer, got ") as caught:
            CompileChoices(partitions=wrong)
        assert len(str(caught.value)) < 200


def test_a_design_for_partitions_is_smaller():
    model = residual()
    whole = size_memories("block", [model], NPU)
    choices = CompileChoices(partitions={"conv_2": 1, "conv_3": 1})
    cut = size_memories("block", [model], NPU, choices)
    assert cut.npus[0].array.kernel_rows < whole.npus[0].array.kernel_rows
    with value_error("block: a partition must begin with a layer of a network, got 'conv_9'"):
        size_memories("block", [model], NPU, CompileChoices(partitions={"conv_9": 1}))
    with value_error("block: partitions are planned one by one, got the network with cuts at conv_2, conv_3"):
        plan(model, whole.npus, choices)


def test_weights_are_streamed_where_a_partition_leaves_an_npu_idle():
    """The first partition has one layer, and the ring two NPUs, each with kernels for two layers of the second one."""
    digits = zoo.load("digits-cnn")
    choices = CompileChoices(partitions={"conv_2": 1})
    sizing = Sizing(stream_weights=True)
    design = size_memories("digits", [digits], ring([Npu.of(kfp=32, kgp=16)] * 2), choices, sizing=sizing)
    network = compile_network(digits, Manifest.of(design, "0" * 64), choices)
    assert all(npu.loader.stream_weights for npu in design.npus)
    assert len(network.programs) == 2


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_on_the_virtual_board(stall):
    """A block cut in its middle, and digits-cnn on a design that holds all of it."""
    model = residual()
    choices = CompileChoices(partitions={"conv_2": 1, "conv_3": 2})
    check_board(model, size_memories("block", [model], NPU, choices), choices, stall)
    digits = zoo.load("digits-cnn")
    design = size_memories("digits", [digits], Npu.of(kfp=32, kgp=16, pfp=16, ol=4, planes=6))
    check_board(digits, design, CompileChoices(partitions={"conv_2": 1, "dense_4": 2}), stall)


def begins() -> tuple[Model, CompileChoices, Design]:
    """A network that begins with a depthwise convolution, in slices of which none reads the whole image."""
    layers = "depthwise_1 10 3x3 s8 padding=1, requantise_1 u8, conv_2 6 3x3 s8 padding=1, requantise_2 u8"
    model = seeded(network_of("5x4x10 u8", layers, name="begins"))
    choices = CompileChoices(partitions={"depthwise_1": 3, "conv_2": 1})
    return model, choices, size_memories("begins", [model], NPU.changed(depthwise=True), choices)


def test_slices_may_read_channels_of_the_image(tmp_path):
    model, choices, design = begins()
    compiled = check_board(model, design, choices, 0.4)
    assert [[str(read) for read in turn.reads] for turn in compiled.turns[:3]] == [
        [f"channels {channels} of {INPUT}"] for channels in ("0..3", "4..7", "8..9")
    ]
    assert compiled.input == model.network.input
    compiled.save(tmp_path / "begins.npz")
    assert read_program(tmp_path / "begins.npz").input == model.network.input
    with value_error(f"begins: {INPUT} has 4 channels, got channels 8..9 of {INPUT}"):
        replace(compiled, programs_in_turn=(compiled.turns[0], *compiled.turns[2:]))


def check_board(model, design, choices, stall):
    bit, manifest = overlay(design)
    network = compile_network(model, Manifest.of(design, manifest.digest), choices)
    assert len(network.programs) == 4
    images = random_images(model.network, 3, 2)
    got, _ = outputs(bit, network, images, source=stall, sink=stall, seed=1)
    np.testing.assert_array_equal(got, model.forward(images))
    return network


def test_an_input_that_is_sent_twice() -> None:
    """Where two layers read a partition's input, nothing copies it: the frame has its words twice. Every cycle is the
    flow model's."""
    model = partitions(residual(), {"conv_2": 1, "conv_3": 2}, [NPU])[2].model
    choices = CompileChoices(map_order="raster", repeat_input=True)
    design = size_memories("twice", [model], NPU, choices)
    compared = compare(design, model, choices, batches=(1, 2, 4))
    assert [planned.layer.reads for planned in compared.plan.layers] == [INPUT, f"{INPUT}.1"]
    copied = plan(model, size_memories("copied", [model], NPU).npus)
    assert compared.plan.frame.frame_layout.words == 2 * copied.frame.frame_layout.words
    assert len(copied.layers) == 3
