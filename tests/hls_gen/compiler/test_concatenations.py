"""Concatenations (docs/decisions/0023): what they are rewritten to, lowered layers against golden, which store each map
comes from, words and kernels in the order in which they are read, every refusal."""

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, bipolar
from bitloom.golden.graph import INPUT
from bitloom.golden.layer import Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.compiler.engine_form import engine_form, engine_form_of
from bitloom.hls_gen.compiler.engine_rules import Engine
from bitloom.hls_gen.compiler.lowering import lower_alone
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.workloads import engines_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import cascade, ring
from tests.errors import value_error
from tests.networks import random_images, random_model
from tests.rows import npu_rows

from .agreement import agree
from .graph_cases import concat, residual
from .test_residual import NPU, planned

FIRE = "conv_1 @input, conv_2 act_1 3, conv_3 act_1 6 3"
WINDOW = "conv_1 @input, conv_2 act_1 3 3, conv_3 act_1 6 3"
DENSE = "conv_1 @input, conv_2 act_1 5 3"
SUMS = "conv_1 @input, sums conv_2 act_1 3, sums conv_3 act_1"
BESIDE = "concat_4 act_2 act_3"
LAST = "act_9"
CASES = {
    "as it is": (f"{FIRE}, {BESIDE}, conv_9 concat_4", "concat_4 act_2 act_3, conv_9 concat_4"),
    "nested": (
        f"{FIRE}, conv_4 act_3, concat_5 act_2 act_3, concat_6 act_4 concat_5, conv_9 concat_6",
        "concat_6 concat_6_maps act_3, concat_6_maps_maps act_4 act_2, concat_6_maps_copy concat_6_maps_maps, "
        "concat_6_maps concat_6_maps_copy",
    ),
    "one window": (
        f"{WINDOW}, conv_4 act_1 5 3, concat_5 act_3 act_4 act_2, conv_9 concat_5",
        "conv_3 act_1, concat_5 conv_3",
    ),
    "one window of two maps": (
        f"{WINDOW}, conv_4 act_2 5 3, concat_5 act_4 act_3, conv_9 concat_5",
        "concat_5 act_4 act_3",
    ),
    "a map beside itself and one of its window": (
        f"{WINDOW}, concat_4 act_2 act_2 act_3, conv_9 concat_4",
        "concat_4 concat_4_maps act_3, concat_4_maps_maps act_2 concat_4_maps_maps_of",
    ),
    "a pool": (
        f"{FIRE}, {BESIDE}, pool_5 concat_4, conv_9 pool_5",
        "pool_5_of act_2, pool_5_of_2 act_3, pool_5 pool_5_of pool_5_of_2",
    ),
    "a pool of a map with two readers": (
        f"{DENSE}, concat_4 act_1 act_2, pool_5 concat_4, conv_9 pool_5",
        "concat_4_maps act_1 act_2, concat_4_copy concat_4_maps, concat_4 concat_4_copy, pool_5 concat_4",
    ),
    "sums": (
        f"{SUMS}, concat_4 conv_2 conv_3, act_5 concat_4, pool_6 act_5, conv_9 pool_6",
        "act_5_of conv_2, act_5_of_2 conv_3, pool_6_of act_5_of, pool_6 pool_6_of pool_6_of_2",
    ),
    "pooled sums": (
        f"{SUMS}, pool_4 conv_2, pool_5 conv_3, concat_6 pool_4 pool_5, act_7 concat_6, conv_9 act_7",
        "act_7 act_7_of act_7_of_2, act_7_of_2 pool_5",
    ),
    "a second requantisation": (
        f"{FIRE}, {BESIDE}, act_5 concat_4, conv_9 act_5",
        "concat_4_maps act_2 act_3, concat_4 concat_4_maps, act_5 concat_4",
    ),
    "two readers": (
        f"{FIRE}, {BESIDE}, conv_5 concat_4 9, add_6 concat_4 act_5, conv_9 add_6",
        "concat_4_maps act_2 act_3, concat_4 concat_4_copy",
    ),
    "the output": (f"{FIRE}, concat {LAST} act_2 act_3", f"{LAST} act_9_copy, act_9_copy act_9_maps"),
}
"""A network; layers that come in or are changed, with the maps that they read."""


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", CASES)
def test_rewriting(name):
    """Layers that come in, by what they read; the output stays what it is, and a second rewriting changes nothing."""
    text, rewritten = CASES[name]
    network = residual(text)
    expected = {layer: tuple(reads) for layer, *reads in map(str.split, rewritten.split(","))}
    model = random_model(network, 5, 32)
    images = random_images(network, 3, 5)
    engine_model = engine_form(model)
    assert {layer: engine_model.network.reads[layer] for layer in expected} == expected
    np.testing.assert_array_equal(engine_model.forward(images), model.forward(images))
    assert engine_form(engine_model) is engine_model
    assert engine_form_of(network) == engine_model.network
    assert (engine_model is model) == (name in ("as it is", "one window of two maps"))
    assert engine_model.network.layers[-1].name == LAST
    agree(model, lower_alone(model, engines=Engine("integer", 9, 8)))


def test_names_that_are_taken_or_long():
    long = "c" * 64
    net = residual(f"{FIRE}, concat {long} act_2 act_3, conv_5 {long} 9, add {'c' * 59}_maps {long} act_5")
    assert {"c" * 57 + "_maps_2", "c" * 59 + "_copy"} <= {layer.name for layer in engine_form_of(net).layers}


@pytest.mark.parametrize("levels", [1, 3])
def test_copies_of_bits(levels):
    """In the binary engine: kernels of ternary weights, and thresholds that give each value back."""
    model, images = bits_joined(levels, wide=True)
    assert model.network.maps["concat_4"].encoding == bipolar(levels)
    lowered = lower_alone(model)
    joins = {p.name: (p.reads, p.joins) for p in lowered.layers if p.joins}
    assert joins == {"concat_4_copy": ("conv_3", "conv_2"), "dense_8": ("conv_5", "conv_6")}
    np.testing.assert_array_equal(lowered.forward(images), model.forward(images))
    with value_error("conv_1: one layer must read a map of bits, got conv_3 and conv_2"):
        plan(model, [Npu.of()])


@pytest.mark.parametrize("levels", [1, 3])
def test_bits_of_one_window_need_no_hardware(levels):
    """In a binary NPU, too: kernels of both convolutions are those of one."""
    model, images = bits_joined(levels, wide=False)
    lowered = plan(model, [Npu.of()]).lowered
    layers = [("conv_1", 5, None), ("conv_3", 7, None), ("conv_5", 5, None), ("dense_8", 4, None)]
    assert [(p.name, p.out_channels, p.joins) for p in lowered.layers] == layers
    np.testing.assert_array_equal(lowered.forward(images), model.forward(images))


def bits_joined(levels, wide):
    """Bits of two convolutions of a map side by side, twice; one of them has wider windows if they are ``wide``."""

    def binary(name, reads, channels, wide=False):
        threshold = Threshold(name=name.replace("conv", "act"), levels=levels, inputs=(name,))
        window = {"kernel": (1, 4), "padding": (0, 1, 0, 1)} if wide else {"kernel": (1, 2)}
        return Conv(name=name, out_channels=channels, inputs=(reads,), **window), threshold

    layers = [*binary("conv_1", INPUT, 5), *binary("conv_2", "act_1", 3, wide), *binary("conv_3", "act_1", 4)]
    layers += [concat("concat_4", "act_3", "act_2")]
    layers += [*binary("conv_5", "concat_4", 2), *binary("conv_6", "concat_4", 3, wide)]
    layers += [concat("concat_7", "act_5", "act_6"), Dense(name="dense_8", out_channels=4)]
    network = Network(name="bits", input=Map(height=6, width=6, channels=3, encoding=BIPOLAR), layers=tuple(layers))
    rng = np.random.default_rng(levels)
    arrays = {}
    for layer in network.layers:
        shapes = layer.array_shapes_of(network.sources(layer))
        arrays[layer.name] = {what: rng.choice([-1, 1], shape) for what, shape in shapes.items()}
        if "threshold" in shapes:
            arrays[layer.name]["threshold"] = rng.integers(-4, 5, shapes["threshold"])
    return Model(network, arrays), random_images(network, 4, 1)


def test_words_of_both_maps_in_turn():
    """5 and 4 channels in words of 4: the map store hands on the word of the second map, the skip store the others."""
    model = random_model(residual(f"{DENSE}, concat_3 act_2 act_1, conv_4 concat_3 2"), 1, 32)
    network_plan = plan(model, [NPU])
    layers = [("conv_1", INPUT, None), ("conv_2", "conv_1", None), ("conv_4", "conv_2", "conv_1")]
    assert [(p.name, p.reads, p.joins) for p in network_plan.lowered.layers] == layers
    ways = {name: (one.target, one.reader, one.forks, one.skip_reader) for name, one in network_plan.ways.items()}
    assert ways == {
        "conv_1": ("loop", "conv_4", True, "conv_2"),
        "conv_2": ("skip", None, False, "conv_4"),
        "conv_4": ("host", None, False, None),
    }
    rows = npu_rows(network_plan)
    joined = {"words": 90, "source": 1, "joins": 1, "first_words_minus_1": 0, "second_words_minus_1": 1}
    alone = {"words": 30, "source": 2, "joins": 0, "first_words_minus_1": 0, "second_words_minus_1": 0}
    assert [rows[n].row("inputs") for n in (1, 2)] == [alone, joined]
    assert network_plan.layers[2].read.layout.tolist() == [[5, 6, 7, 8], [0, 1, 2, 3], [4, -1, -1, -1]]
    assert network_plan.needs[0].needs.sizes["joined_words"] == 2


def test_a_chain_of_npus_is_cut_behind_a_concatenation():
    net = residual(f"{FIRE}, {BESIDE}, conv_5 concat_4, conv_6 act_5 8 3")
    assert planned(net, cascade([NPU] * 2)).mapping == [0, 0, 0, 0, 1]
    network_plan = planned(
        net, cascade([NPU] * 2), mapping=[0, 0, 0, 1, 1]
    )  # both maps are copied in front of their reader
    assert [p.name for p in network_plan.lowered.layers[3:]] == ["conv_2@1", "conv_3@1", "conv_5", "conv_6"]
    assert (network_plan.lowered.layers[5].reads, network_plan.lowered.layers[5].joins) == ("conv_2@1", "conv_3@1")
    with value_error("conv_2: NPU 1 must have an outlet to NPU 1, got ring, host"):
        planned(net, ring([NPU] * 2))


def test_engines():
    net = residual(f"{FIRE}, {BESIDE}, pool_5 concat_4, act_6 pool_5, conv_7 act_6")
    assert engines_of(net) == ["integer"] * 5
