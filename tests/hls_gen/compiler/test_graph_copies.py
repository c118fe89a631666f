"""Copies that let an NPU compute any graph of integers: in front of layers without weights, and where its two stores
can't hand maps on in order. Which ones there are, values against golden, the flow model without a deadlock."""

import pytest
from hypothesis import strategies as st

from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.engine_form import engine_form, engine_form_of
from bitloom.hls_gen.compiler.flow import simulate
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.segments import AddedMaps, added_maps
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.compiler.store_copies import with_store_copies
from bitloom.hls_gen.design.copy_names import copied, copy_name, is_copy
from bitloom.hls_gen.design.topology import cascade
from tests.errors import value_error
from tests.networks import SEEDS, WIDE, check_draws, few_and_many, graph_networks, random_images, random_model

from .graph_cases import BLOCK, GRAPHS, residual
from .test_residual import NPU, planned

ADDED = {
    "inception": ["pool_16_copy", "concat_1_copy", "pool_26_copy"],
    "an addition of additions": ["add_7_copy"],
    "an addition of pools": ["add_5_copy"],
    "two pools of a map": ["pool_2_copy", "pool_4_copy"],
    "a pool of a pool": ["pool_3_copy"],
    "the input added": ["input_copy"],
    "the input read twice": ["input_copy"],
    "the input concatenated": ["input_copy"],
    "a pool first": ["input_copy"],
    "a map beside itself": ["concat_2_copy"],
    "a map added to itself": ["add_2_copy"],
    "a map requantised twice": ["act_2_copy"],
}
"""Copies in front of layers without weights, and of concatenations that are read twice."""
STORED = {
    "unet": "conv_1@0 conv_2@0 conv_1@0.2",
    "unet that adds": "conv_1@0 conv_2@0 conv_1@0.2",
    "a long way around two short ones": "conv_1@0 conv_1@0.2",
    "a map added twice": "conv_1@0",
    "the input added": "",
}
"""Copies from store to store."""


def test_an_addition_follows_no_layer_of_two_maps():
    """Both maps are as deep. The later one is of a layer that reads two maps: a third one finds no store. The addition
    follows the other map, and so needs no copy."""
    branches = "conv_2 act_1, conv_3 act_2, concat_4 act_1 act_2, conv_5 concat_4"
    net = residual(f"conv_1 @input, {branches}, add_6 act_5 act_3")
    assert added_maps(net)["add_6"] == AddedMaps("act_3", "act_5")
    assert engine_form_of(net).layers == net.layers


def stored(network_plan):
    """Copies from store to store in a plan."""
    return " ".join(p.name for p in network_plan.lowered.layers if is_copy(p.name))


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", GRAPHS)
def test_graphs(name):
    """Every graph is exact; the flow model finds no deadlock in the stores that sizing makes; rewriting ends."""
    network = GRAPHS[name]
    model = random_model(network, 5, 24)
    images = random_images(network, 2, 5)
    names = {layer.name for layer in network.layers}
    came = [layer.name for layer in engine_form_of(network).layers if layer.name not in names]
    assert [one for one in came if one.endswith("_copy") and "maps" not in one] == ADDED.get(name, [])
    assert engine_form_of(engine_form_of(network)) == engine_form_of(network)
    assert (engine_form(model).forward(images) == model.forward(images)).all()
    for order in ("raster", "pull"):
        choices = CompileChoices(map_order=order)
        design = size_memories("graph", [model], NPU, choices)
        network_plan = plan(model, design.npus, choices)
        assert (network_plan.lowered.forward(images) == model.forward(images)).all()
        assert stored(network_plan) == STORED.get(name, stored(network_plan))
        simulate(system(network_plan, design.npus), 4)


def test_the_fewest_beats():
    """conv_2's map, of 12 channels, is copied by none of the copies: conv_1's, of 4, moves instead."""
    branch = "conv_2 act_1 12, conv_3 act_2 12, add_4 act_3 act_2"
    net = residual(f"conv_1 @input, {branch}, conv_5 add_4, add_6 act_5 act_1")
    network_plan = planned(net)
    assert stored(network_plan) == "conv_1@0"
    assert dict(network_plan.ideal)["conv_1@0"] == 30


def test_an_order_that_needs_no_copy_stays():
    network_plan = planned(residual(f"{BLOCK}, add_4 act_3 act_1"))
    assert stored(network_plan) == ""
    layers, mapping = with_store_copies(network_plan.lowered.workloads, network_plan.mapping, [NPU])
    assert [p.name for p in layers] == ["conv_1", "conv_2", "conv_3"]
    assert mapping == [0, 0, 0]


def test_what_is_not_copied():
    """Bits, and sums."""
    net = residual("sums conv_1 @input, act_2 conv_1, act_3 conv_1, add_4 act_2 act_3")
    with value_error(
        "act_2: a map with several readers must be read by conv and dense layers and additions, got conv_1 read by "
        "act_2 and act_3"
    ):
        planned(net)


def test_lanes_that_differ_are_refused_as_without_copies():
    with value_error(
        "conv_3: words of the map of conv_1, which it adds, must have the lanes of its results' steps, got 4 channels "
        "with kfp = 4, kgp = 4, ol = 4, pfp = 3"
    ):
        planned(GRAPHS["a map added twice"], [NPU.changed(pfp=3, ol=4)])


def test_an_order_that_is_not_found(monkeypatch):
    """Then why there is none without copies is what counts."""
    monkeypatch.setattr("bitloom.hls_gen.compiler.store_copies.MOST", 1)
    with value_error(
        "net: the skip store must hand maps on in the order in which they come, got conv_2 wanted before all of conv_1"
    ):
        planned(GRAPHS["unet that adds"])


@pytest.mark.parametrize("number", [1, 2, 11])
def test_names(number):
    name = copy_name("conv_1", 2, number)
    assert is_copy(name)
    assert copied(name, 2) == "conv_1"
    assert copied(name, 1) == name
    assert copied(f"{name}x", 2) == f"{name}x"
    assert copied("conv_1@2.1", 2) == "conv_1@2.1"


def flows(network, seed, order, npus):
    """Whatever the graph: it compiles, is golden's, and its frames come out."""
    model = random_model(network, seed, 32, 31)
    images = random_images(network, 2, seed)
    choices = CompileChoices(map_order=order)
    design = size_memories("graph", [model], npus, choices)
    network_plan = plan(model, design.npus, choices)
    assert (network_plan.lowered.forward(images) == model.forward(images)).all()
    simulate(system(network_plan, design.npus, spill_words=design.spill_words), 4)


@few_and_many(4, 200)
def test_any_graph(count):
    graphs = graph_networks(WIDE, most=7 if count < 100 else 12)
    chains = st.sampled_from([[NPU], cascade([NPU] * 2)])
    check_draws(count, flows, graphs, SEEDS, st.sampled_from(["pull", "raster"]), chains)
