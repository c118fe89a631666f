"""Residual networks (docs/decisions/0014): ways of maps, orders and tables against what readers need, the flow model
without a deadlock, every refusal. That lowered layers compute what golden computes: hardware, in
tests/overlay/build/test_random_networks.py."""

import numpy as np
import pytest
from hypothesis import strategies as st

from bitloom.golden.graph import INPUT
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.fitted import fitted
from bitloom.hls_gen.compiler.flow import Deadlock, enough_skips, simulate, smooth_skips
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.segments import segments
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from tests.errors import value_error
from tests.networks import (
    BYTES,
    SEEDS,
    WIDE,
    check_draws,
    few_and_many,
    graph_networks,
    joined_networks,
    random_model,
    residual_networks,
)
from tests.rows import npu_rows

from .graph_cases import BLOCK, SHORTCUT, add, conv, residual

NPU = Npu.of(engine="integer", feature_bits=9, weight_bits=8, shift_bits=0, kfp=4, kgp=4, pfp=4, ol=2, acc_bits=32)


def flows(network, seed, order):
    """Orders are as readers need them; no deadlock in stores of the sizes that are found, and one in smaller stores."""
    model = random_model(network, seed, 32, 31)
    network_plan = plan(model, [NPU], CompileChoices(map_order=order))
    by_stage = {t.stage.name: t for t in network_plan.schedule.tables}
    for t in by_stage.values():
        assert set(t.input_order) >= set(t.input_order[t.index])
        assert t.advance.sum() == len(t.input_order)
        assert (t.index <= t.newest).all()
        assert (t.index[t.new] == t.newest[t.new]).all()
        maker = by_stage.get(t.stage.reads)
        assert maker is None or np.array_equal(maker.output_order, t.input_order)
        if t.stage.adds:
            assert np.array_equal(by_stage[t.stage.adds].output_order, t.output_order)
    npu = fitted(network_plan.foldings[0] if network_plan.foldings[0].has_skip else NPU, network_plan.needs)
    chain = system(network_plan, [npu])
    (words,) = smooth_skips(chain, 2)
    assert (words > 0) == any(way.skips for way in network_plan.ways.values())
    if not words:
        return  # convolutions whose maps were concatenated became one
    least = enough_skips(chain, {0: 2}, 2)[0]
    assert 2 <= least <= words
    for count in (least, words):
        simulate(system(network_plan, [npu.changed(skip_words=count)]), 4)
    if least > 2:
        with pytest.raises(Deadlock):
            simulate(system(network_plan, [npu.changed(skip_words=least - 1)]), 2)


LANES = (1, 2, 3, 4, 6, 8, 16)
REFUSED = ("which it adds, must have the lanes of its results' steps", "a pool needs an NPU with a pool unit, got one")
"""Why a network may be refused whatever the sizes of memories."""


@st.composite
def foldings(draw):
    """NPUs with a skip store: ol, kfp, kgp and pfp in any order of size."""
    kfp, kgp, pfp = (draw(st.sampled_from(LANES)) for _ in range(3))
    ol = draw(st.sampled_from([ol for ol in LANES if ol <= kgp and not (kfp % ol and ol % kfp)]))
    own = {"accumulators": draw(st.sampled_from([1, 4])), "raster": draw(st.booleans())}
    pool = {"pfp": pfp} if draw(st.sampled_from([True, True, False])) else {"pool": False}
    return NPU.changed(kfp=kfp, kgp=kgp, ol=ol, **pool, **own)


def compiles(network, seed, npu):
    """A design is made, and the network compiled for it, or refused by a rule of the folding."""
    model = random_model(network, seed, 32, 31)
    try:
        design = size_memories("d", [model], npu)
        compile_model(model, Manifest.of(design, "0" * 64))
    except ValueError as e:
        if not any(rule in str(e) for rule in REFUSED):
            raise


@few_and_many(12, 400)
def test_random_foldings(count):
    kinds = st.one_of(residual_networks(BYTES), graph_networks(BYTES), joined_networks(BYTES))
    check_draws(count, compiles, kinds, SEEDS, foldings())


@pytest.mark.parametrize(
    ("networks", "most", "count"),
    [
        (residual_networks, 3, 6),
        pytest.param(residual_networks, 4, 150, marks=pytest.mark.slow),
        pytest.param(joined_networks, 1, 100, marks=pytest.mark.slow),
    ],
)
def test_flow(networks, most, count):
    check_draws(count, flows, networks(WIDE, most=most), SEEDS, st.sampled_from(["pull", "raster"]))


def planned(network, npus=(NPU,), **choices):
    return plan(random_model(network, 1, 32), npus, CompileChoices(map_order="raster", **choices))


def test_the_shorter_way_comes_first_and_waits():
    network_plan = planned(residual(f"{SHORTCUT}, conv_4 act_1 stride=2, add_5 act_4 act_3, conv_6 add_5"))
    assert [(p.name, p.reads, p.adds) for p in network_plan.lowered.layers] == [
        ("conv_1", INPUT, None),
        ("conv_4", "conv_1", None),
        ("conv_2", "conv_1", None),
        ("conv_3", "conv_2", "conv_4"),
        ("conv_6", "conv_3", None),
    ]
    ways = {
        name: (one.target, one.reader, one.forks, one.skip_reader, one.adder) for name, one in network_plan.ways.items()
    }
    assert ways == {
        "conv_1": ("loop", "conv_2", True, "conv_4", None),
        "conv_4": ("skip", None, False, None, "conv_3"),
        "conv_2": ("loop", "conv_3", False, None, None),
        "conv_3": ("loop", "conv_6", False, None, None),
        "conv_6": ("host", None, False, None, None),
    }
    assert npu_rows(network_plan)[1].row("inputs")["source"] == 2
    (reading,) = [t for t in network_plan.schedule.tables if t.stage.name == "conv_4"]
    assert len(reading.input_order) == 30  # all of the map, of which every fourth position is read
    assert reading.index.tolist() == [0, 2, 4, 10, 12, 14, 20, 22, 24]
    assert reading.advance.tolist() == [1, 2, 2, 6, 2, 2, 6, 2, 7]
    assert not reading.new[-1]  # 5 tuples come by behind the last one that it reads


def test_two_layers_on_the_way_that_waits():
    """Their first map must come before the fork's other reader: that one takes the fork's map from the skip store."""
    here = "conv_2 act_1, conv_3 act_2, conv_4 act_3"
    network_plan = planned(residual(f"conv_1 @input, {here}, conv_5 act_1, conv_6 act_5, add_7 act_4 act_6"))
    assert [p.name for p in network_plan.lowered.layers] == ["conv_1", "conv_5", "conv_6", "conv_2", "conv_3", "conv_4"]
    assert (network_plan.ways["conv_1"].reader, network_plan.ways["conv_1"].skip_reader) == ("conv_5", "conv_2")


def test_one_layer_on_either_way():
    """The second one can't read the fork's map from the skip store, where what it adds would come behind it."""
    net = residual("conv_1 @input, conv_2 act_1 kernel=3, conv_3 act_1, add_4 act_3 act_2, conv_5 add_4")
    network_plan = planned(net)
    assert (network_plan.ways["conv_1"].reader, network_plan.ways["conv_1"].skip_reader) == ("conv_3", "conv_2")


def test_lanes_that_differ_are_refused():
    net = residual(f"{BLOCK}, add_4 act_3 act_1")
    with value_error(
        "conv_3: words of the map of conv_1, which it adds, must have the lanes of its results' steps, got 4 channels "
        "with kfp = 4, kgp = 4, ol = 4, pfp = 3"
    ):
        planned(net, [NPU.changed(pfp=3, ol=4)])
    with value_error(
        "net: maps that are added or have two readers need a skip store: npu: ol must divide kfp = 4, or be a multiple "
        "of it, for skip_words = 2, got 3"
    ):
        planned(net, [NPU.changed(ol=3)])


ORDERS = [
    # a block with a shortcut of one layer
    ("1 @input, 2 act_1, 3 act_1, 4 act_3, 5 act_4 act_2", "12345", "13425"),
    # two blocks
    ("1 @input, 2 act_1, 3 act_1, 4 act_3 act_2, 5 add_4, 6 add_4, 7 act_6 act_5", "1234567", "1324657"),
    # nothing is computed on the shorter way
    ("1 @input, 2 act_1, 3 act_2 act_1", "123", "123"),
    # a map waits for its addition on the longer way
    ("1 @input, 2 act_1, 3 act_1, 4 act_3 act_3, 5 add_4 act_2", "12345", "12345"),
    # a map from before the fork is added on the longer way
    ("1 @input, 2 act_1, 3 act_2, 4 act_2, 5 act_4 act_1, 6 add_5 act_3", "123456", "123456"),
    # a third reader of the map
    ("1 @input, 2 act_1, 3 act_1, 4 act_3 act_2, 5 add_4 act_1", "12345", "12345"),
]
"""Layers as number, map, and what is added to their results; their orders, shortcuts first and last."""


def layer(number: str, reads: str, adds: str = "") -> list:
    """A convolution with its requantisation, and an addition behind it."""
    return [*conv(f"conv_{number}", reads), *([add(f"add_{number}", f"act_{number}", adds)] if adds else [])]


@pytest.mark.parametrize(("text", "first", "last"), ORDERS)
def test_shortcuts_come_first_or_last(text: str, first: str, last: str) -> None:
    """Last only where no other map waits on the two ways."""
    network = residual(*(layer(*words.split()) for words in text.split(",")))
    for shortcuts, order in (("first", first), ("last", last)):
        names = [segment.name.removeprefix("conv_") for segment in segments(network, None, shortcuts)]
        assert "".join(names) == order
