"""Graphs of layers on several NPUs (docs/decisions/0024): copies of maps where the ways from a fork to its addition lie
on several NPUs, in the order in which links carry maps; the flow model without a deadlock; every refusal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitloom.golden.encoding import signed
from bitloom.golden.graph import INPUT
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.zoo import load
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.copies import with_copies
from bitloom.hls_gen.compiler.engine_form import engine_form_of
from bitloom.hls_gen.compiler.engine_rules import Engine
from bitloom.hls_gen.compiler.flow import simulate
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.lowering import lower, lower_alone
from bitloom.hls_gen.compiler.mapping import Placed
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.segments import segments
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.compiler.ways import ways
from bitloom.hls_gen.compiler.workloads import CutTarget, segmented
from bitloom.hls_gen.design.copy_names import copied, is_copy
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import cascade, pipeline, ring
from tests.errors import value_error
from tests.graph_text import network_of
from tests.hls_gen.compiler.graph_cases import BLOCK, SHORTCUT, residual
from tests.hls_gen.compiler.test_residual import NPU, planned
from tests.networks import (
    SEEDS,
    WIDE,
    few_and_many,
    joined_networks,
    random_images,
    random_model,
    residual_networks,
    some,
)

IDENTITY = residual(f"{BLOCK}, add_4 act_3 act_1, conv_5 add_4, conv_6 act_5")
SHORT = residual(f"{SHORTCUT}, conv_4 act_1 stride=2, add_5 act_4 act_3, conv_6 add_5")
LOOPED = {"inlets": ("ring", "loop"), "outlets": ("ring", "loop", "host")}
RING = (NPU.changed(**LOOPED | {"inlets": ("host", "ring", "loop")}), *[NPU.changed(**LOOPED)] * 2)
"""A ring of NPUs each of which may compute several layers in turn."""
CHAINS = {"looped_ring_3": RING, "looped_ring_2": RING[:2], "ring_2": ring([NPU] * 2)}
CHAINS |= {"cascade_2": cascade([NPU] * 2), "cascade_3": cascade([NPU] * 3)}
GRAPHS = st.one_of(residual_networks(WIDE), joined_networks(WIDE))
REFUSED = (
    "store must hand maps on in the order in which they come",
    "one must come from each store in order",
    "must have an outlet to NPU",
)
"""Why a graph may be refused: two maps cross in an NPU's FIFOs, or an NPU without a map store needs a map twice."""


def layers(network_plan):
    """The layers of a plan with their NPUs, as text."""
    return " ".join(f"{p.name}:{n}" for p, n in zip(network_plan.lowered.layers, network_plan.mapping))


# Where copies are made, and how maps go.


@pytest.mark.parametrize(
    ("net", "npus", "mapping", "expected"),
    [
        (IDENTITY, cascade([NPU] * 2), [0, 0, 0, 1, 1], "conv_1:0 conv_2:0 conv_3:0 conv_5:1 conv_6:1"),
        (IDENTITY, cascade([NPU] * 2), [0, 0, 1, 1, 1], "conv_1:0 conv_2:0 conv_1@1:1 conv_3:1 conv_5:1 conv_6:1"),
        (IDENTITY, cascade([NPU] * 2), None, "conv_1:0 conv_2:0 conv_3:0 conv_5:1 conv_6:1"),
        (IDENTITY, cascade([NPU] * 2), [0, 1, 1, 1, 1], "conv_1:0 conv_1@1:1 conv_2:1 conv_3:1 conv_5:1 conv_6:1"),
        (IDENTITY, ring([NPU] * 2), None, "conv_1:0 conv_2:1 conv_3:0 conv_5:1 conv_6:0"),
        (IDENTITY, ring([NPU] * 3), None, "conv_1:0 conv_1@1:1 conv_2:1 conv_1@2:2 conv_3:2 conv_5:0 conv_6:1"),
        (IDENTITY, pipeline([NPU] * 5), None, "conv_1:0 conv_1@1:1 conv_2:1 conv_1@2:2 conv_3:2 conv_5:3 conv_6:4"),
        (SHORT, ring([NPU] * 2), None, "conv_1:0 conv_4:1 conv_2:0 conv_3:1 conv_6:0"),
        (SHORT, cascade([NPU] * 2), [0, 0, 1, 1, 1], "conv_1:0 conv_4:0 conv_2:1 conv_4@1:1 conv_3:1 conv_6:1"),
        (
            SHORT,
            ring([NPU] * 3),
            None,
            "conv_1:0 conv_1@1:1 conv_4:1 conv_1@2:2 conv_4@2:2 conv_2:2 conv_4@0:0 conv_3:0 conv_6:1",
        ),
    ],
)
def test_copies(net, npus, mapping, expected):
    """The last one hands conv_4 on before conv_2, which would wait in front of it in NPU 0's one FIFO."""
    assert layers(planned(net, npus, mapping=mapping)) == expected


def test_ways_over_the_edge():
    """conv_1 goes on to its copy, and waits for conv_2; on NPU 1 the copy waits for the addition."""
    network_plan = planned(IDENTITY, cascade([NPU] * 2), mapping=[0, 0, 1, 1, 1])
    ways = {
        name: (one.target, one.reader, one.forks, one.skip_reader, one.adder) for name, one in network_plan.ways.items()
    }
    assert {name: ways[name] for name in ("conv_1", "conv_2", "conv_1@1", "conv_3")} == {
        "conv_1": ("ring", "conv_1@1", True, "conv_2", None),
        "conv_2": ("ring", "conv_3", False, None, None),
        "conv_1@1": ("skip", None, False, None, "conv_3"),
        "conv_3": ("loop", "conv_5", False, None, None),
    }
    (copy,) = [p for p in network_plan.lowered.layers if is_copy(p.name)]
    assert (copied(copy.name, 1), copied(copy.name, 2), copy.reads) == ("conv_1", "conv_1@1", "conv_1")


def test_a_copy_holds_what_an_addition_makes():
    """Its values go beyond those of the requantisation in front of it."""
    narrow = Requantise(name="act_3", encoding=signed(3), inputs=("conv_3",))
    first, last = "conv_1 @input, conv_2 act_1 kernel=3, sums conv_3 act_2", "conv_6 act_5, add_7 act_6 add_4"
    net = residual(first, narrow, f"add_4 act_3 act_1, conv_5 add_4, {last}")
    model = random_model(net, 1, 32)
    images = random_images(net, 2, 1)
    network_plan = plan(model, cascade([NPU] * 2), CompileChoices(mapping=[0, 0, 0, 0, 1]))
    assert "conv_3@1:1" in layers(network_plan)
    assert (network_plan.lowered.forward(images) == model.forward(images)).all()


def test_a_copy_of_bits():
    """Of two levels a channel, after a pool, in a network with pools before and after thresholds."""
    net = network_of("6x5x4", "conv_1 5 3x3, act_1 levels=2, max_pool pool_1 2x2 2x2, dense_2 3", name="bits")
    model = random_model(net, 1)
    images = random_images(net, 4, 1)
    segmented_model = segmented(model, CutTarget())
    cut = segmented_model.cut([Engine()] * 2)
    workloads, on = with_copies(cut.workloads, [0, 2], cascade([Npu.of()] * 3))
    assert [(p.name, n) for p, n in zip(workloads, on)] == [("conv_1", 0), ("conv_1@1", 1), ("dense_2", 2)]
    assert (lower(Placed(cut, workloads, on, {})).forward(images) == lower_alone(model).forward(images)).all()


def test_a_copy_of_the_signs_of_integers():
    """A binary NPU hands bits on, also where it adds integers of which they are the signs."""
    first = "conv_1 4 1x1, act_1 s5, threshold sign_1"
    second = "conv_2 4 1x1, act_2 s5, add_2 act_2 act_1 s6, threshold sign_2"
    net = network_of("3x2x4", first, second, "dense_3 3", name="signs")
    model = random_model(net, 1)
    images = random_images(net, 4, 1)
    cut = segmented(model, CutTarget()).cut([Engine()] * 3)
    workloads, on = with_copies(cut.workloads, [0, 0, 2], cascade([Npu.of()] * 3))
    assert [(p.name, n) for p, n in zip(workloads, on)] == [
        ("conv_1", 0),
        ("conv_2", 0),
        ("conv_2@1", 1),
        ("dense_3", 2),
    ]
    assert (lower(Placed(cut, workloads, on, {})).forward(images) == model.forward(images)).all()


def test_ways_that_cross():
    """NPU 1 copies both maps, and conv_1's once more behind that of conv_2. On one NPU conv_1 waits in the map store
    until conv_2 is in the skip store."""
    net = residual(f"{BLOCK}, add_4 act_3 act_2, conv_5 add_4, add_6 act_5 act_1")
    expected = "conv_1:0 conv_2:0 conv_1@1:1 conv_2@1:1 conv_1@1.2:1 conv_3:1 conv_5:1"
    assert layers(planned(net, cascade([NPU] * 2), mapping=[0, 0, 1, 1])) == expected
    expected = "conv_1:0 conv_2:0 conv_1@0:0 conv_3:0 conv_5:0"
    assert layers(planned(net)) == expected


# Any graph on any NPUs.


def flows(network, seed, order, draw):
    """Copies change no value; links carry maps in the order in which they are read; frames come out."""
    npus = CHAINS[draw(st.sampled_from(list(CHAINS)))]
    model = random_model(network, seed, 32, 31)
    count = len(segments(engine_form_of(network)))
    mapping = None
    if "loop" in npus[0].ports.outlets:
        cuts = sorted(draw(st.lists(st.integers(1, count), min_size=len(npus) - 1, max_size=len(npus) - 1)))
        mapping = [sum(i >= cut for cut in cuts) for i in range(count)]
        if npus[0].ports.inlets[1] == "ring" and draw(st.booleans()):
            steps = draw(st.lists(st.integers(0, 1), min_size=count - 1, max_size=count - 1))
            mapping = [sum(steps[:i]) % len(npus) for i in range(count)]
    choices = CompileChoices(map_order=order, mapping=mapping)
    try:
        network_plan = plan(model, npus, choices)
    except ValueError as e:
        if not any(rule in str(e) for rule in REFUSED):
            raise
        return False
    images = random_images(network, 2, seed)
    assert (network_plan.lowered.forward(images) == model.forward(images)).all()
    on = {p.name: n for p, n in zip(network_plan.lowered.layers, network_plan.mapping)}
    for n in range(len(npus)):
        came = [p.reads for p in network_plan.lowered.layers if p.reads != INPUT and on[p.name] == n != on[p.reads]]
        left = [name for name, way in network_plan.ways.items() if way.target == "ring" and on[way.reader] == n]
        assert came == left
    design = size_memories("graph", [model], npus, choices)
    network_plan = plan(model, design.npus, choices)
    simulate(system(network_plan, design.npus, spill_words=design.spill_words), 4)
    return True


@few_and_many(6, 150)
def test_flow(count):
    done = []

    @some(count)
    @given(GRAPHS, SEEDS, st.sampled_from(["pull", "raster"]), st.data())
    def run(network, seed, order, data):
        done.append(flows(network, seed, order, data.draw))

    run()
    assert sum(done) >= 2 * count // 3


# Refusals.


def test_lanes_that_differ_between_neighbours():
    """The words that wait in the skip store are those that go on; conv_1 has its one reader on the other NPU here."""
    net = residual("conv_1 @input, conv_2 act_1, conv_3 act_2, add_4 act_3 act_2, conv_5 add_4")
    npus = cascade([NPU, NPU.changed(kfp=8)])
    assert layers(planned(net, npus, mapping=[0, 1, 1, 1])) == "conv_1:0 conv_2:1 conv_3:1 conv_5:1"
    with value_error(
        "conv_2: NPU 1 must have words as NPU 0 has them, where the map is kept for conv_3 as well, kfp = 4 and engine "
        "integer, got kfp = 8 and engine integer"
    ):
        planned(residual(f"{BLOCK}, conv_4 act_3, add_5 act_4 act_2"), npus, mapping=[0, 0, 0, 1])


def test_three_layers_for_one_map():
    """Without the copies that the compiler puts in."""
    branches = "conv_2 act_1, conv_3 act_1, conv_4 act_1"
    net = residual(f"conv_1 @input, {branches}, add_5 act_3 act_2, add_6 act_4 add_5")
    workloads = lower_alone(random_model(net, 1, 32), engines=Engine("integer", 9, 8)).workloads
    with value_error(
        "conv_1: two layers at most must need a map, one of them to add it at most, got conv_2 and conv_3 and conv_4"
    ):
        ways("net", [NPU], workloads, [0] * len(workloads))


def test_bits_are_copied_by_their_own_engine():
    lowered = lower_alone(load("digits-cnn")).workloads
    with value_error(
        "conv_1: engine of NPU 1 must be binary to add a map of bits, to read it twice or to hand it on, got integer"
    ):
        with_copies(lowered, [0, 2, 2, 2], cascade([Npu.of(), NPU, Npu.of()]))
    integers = planned(IDENTITY).lowered.workloads
    with value_error(
        "conv_1: engine of NPU 1 must be integer to add a map of integers, to read it twice or to hand it on, got "
        "binary"
    ):
        with_copies(integers, [0, 2, 2, 2, 2], cascade([NPU, Npu.of(), NPU]))
