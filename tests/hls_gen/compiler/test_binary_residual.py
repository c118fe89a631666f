"""Residual networks of bits (docs/decisions/0022): the flow model without a deadlock,
sizes for several networks, every refusal."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st

from bitloom.golden.encoding import BIPOLAR, TERNARY, signed
from bitloom.golden.layer import Map
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.pool import MaxPool, MinPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.engine_rules import Engine
from bitloom.hls_gen.compiler.flow import Deadlock, enough_skips, simulate, smooth_skips
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.lowering import lower_alone
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.compiler.ways import ways
from bitloom.hls_gen.compiler.workloads import check_engines, engines_of
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import cascade
from tests.errors import value_error
from tests.graph_text import layers_of
from tests.networks import (
    SEEDS,
    binary_residual_networks,
    check_draws,
    few_and_many,
    random_model,
)
from tests.rows import npu_rows

NPU = Npu.of(kfp=4, kgp=4, pfp=4, ol=2)
SOURCE = Map(height=6, width=5, channels=4, encoding=BIPOLAR)


def flows(network, seed, order):
    """No deadlock in stores of the sizes that are found, and one in smaller stores."""
    model = random_model(network, seed, 24)
    design = size_memories("d", [model], NPU, CompileChoices(map_order=order))
    (npu,) = design.npus
    chain = system(plan(model, design.npus, CompileChoices(map_order=order)), design.npus)
    assert [npu.value("skip_words")] == smooth_skips(chain, 4)
    least = enough_skips(chain, {0: 2}, 2)[0]
    assert 2 <= least <= npu.value("skip_words")

    def of(words):
        return replace(chain, npus=(replace(chain.npus[0], skip_words=words),))

    simulate(of(least), 4)
    assert simulate(of(npu.value("skip_words")), 4).left == simulate(of(None), 4).left
    if least > 2:
        with pytest.raises(Deadlock):
            simulate(of(least - 1), 2)


@few_and_many(2, 100)
def test_flow(count):
    check_draws(count, flows, binary_residual_networks(8, 2), SEEDS, st.sampled_from(["pull", "raster"]))


def conv(name, reads, channels=4, weight=BIPOLAR):
    return Conv(name=name, out_channels=channels, kernel=(3, 3), padding=(1,) * 4, weight=weight, inputs=(reads,))


def act(name, reads, **more):
    return Requantise(name=name, **{"encoding": signed(5), "inputs": (reads,), **more})


def sign(name, reads, **more):
    return Threshold(name=name, inputs=(reads,), **more)


def add(name, *reads):
    return Add(name=name, encoding=signed(6), inputs=reads)


FIRST = "conv_1 @input, act_1 conv_1, sign_1 act_1"
SECOND = "conv_2 sign_1, act_2 conv_2, add_2 act_2 act_1"
BLOCK = f"{FIRST}, {SECOND}, sign_2 add_2"


def residual(*parts):
    """A network of layers of bits, as objects or as text."""
    builders = {"conv": conv, "act": act, "sign": sign, "add": add}
    return Network(name="net", input=SOURCE, layers=layers_of(parts, builders))


def test_a_map_is_kept_where_it_is_added():
    """Bits go to the map store, integers to the skip store; of the last layer's nobody needs them."""
    network_plan = plan(random_model(residual(BLOCK), 1, 24), [NPU], CompileChoices(map_order="raster"))
    layers = [("conv_1", "@input", None), ("conv_2", "conv_1", "conv_1")]
    assert [(p.name, p.reads, p.adds) for p in network_plan.lowered.layers] == layers
    rows = npu_rows(network_plan)
    assert [layer.row("results")["keeps"] for layer in rows] == [1, 0]
    assert (network_plan.foldings[0].sources, network_plan.foldings[0].targets) == (("host", "loop"), ("loop", "host"))
    assert [set(layer.row("results")) & {"forks", "low", "double"} for layer in rows] == [{"low", "double"}] * 2


def test_widths_are_those_of_all_networks():
    """A network with thresholds alone runs on the same design: there they are biases."""
    act_1 = Threshold(name="threshold_1", levels=2)
    plain = residual(conv("conv_1", "@input", 3), act_1, conv("conv_2", "threshold_1"))
    models = [random_model(network, 1, 24) for network in (plain, residual(BLOCK))]
    apart = [size_memories("d", [model], NPU).npus[0] for model in models]
    (both,) = size_memories("d", models, NPU).npus
    assert both == size_memories("d", models[::-1], NPU).npus[0]
    assert [one.value("skip_bits") for one in (*apart, both)] == [0, 6, 6]
    assert both.value("skip_words") > 2
    low, high = -54, 54  # of 27 taps and channels, and 54
    limits = models[0].arrays["threshold_1"]["threshold"]
    assert both.array.acc_bits >= apart[0].array.acc_bits
    assert 1 << both.array.acc_bits - 1 > high - max(low, limits.min())
    manifest = Manifest.of(size_memories("d", models, NPU), "0" * 64)
    for model in models:
        compile_model(model, manifest)
    too_small = Manifest.of(size_memories("d", models[:1], NPU), "0" * 64)
    with value_error(
        "net: acc_bits must be >= 24, design d has 7; olds must be >= 359, design d has 356; "
        "skip_words must be >= 56, design d has 0"
    ):
        compile_model(models[1], too_small)


REQUANTISED = "what follows, where the binary engine requantises, must be requantise, perhaps add, threshold, and "
REQUANTISED += "perhaps a max_pool or min_pool, got requantise"
THIRD = "conv_3 sign_2, act_3 conv_3, add_3 act_3 add_2, sign_3 add_3"
FOURTH = "conv_4 sign_3, act_4 conv_4, add_4 act_4 act_1, sign_4 add_4"
OTHER_MAP = "conv_2 sign_1, act_2 conv_2, conv_3 sign_1, act_3 conv_3, add_3 act_3 act_2, sign_3 add_3"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{FIRST}, {SECOND}", f"conv_2: {REQUANTISED}, add"),
        (
            f"{FIRST}, conv_2 sign_1, act_2 conv_2 rounding=twice, add_2 act_2 act_1, sign_2 add_2",
            "act_2: rounding must be once or even on the binary engine, got twice",
        ),
        (
            f"{FIRST}, conv_2 sign_1, act_2 conv_2, add_2 act_2 sign_1, sign_2 add_2",
            "add_2: what is added to a binary layer must be made by requantise or add, got threshold",
        ),
        (
            "conv_1 @input 3, act_1 conv_1, sign_1 act_1, conv_2 sign_1 3, act_2 conv_2, add_2 act_2 act_1, "
            "sign_2 add_2",
            "conv_1: channels of a map that is requantised must fill steps of ol = 2 results of kgp = 4 kernels, got 3",
        ),
        (f"{FIRST}, {OTHER_MAP}", f"conv_2: {REQUANTISED}"),
        (
            f"{BLOCK}, {THIRD}, {FOURTH}",
            "conv_1: two layers at most must need a map, one of them to add it at most, got conv_2 and conv_2 and "
            "conv_4",
        ),
    ],
)
def test_what_cant_be_built(text, message):
    network = residual(text)
    model = random_model(network, 1, 24)
    with value_error(message):
        plan(model, [NPU])


@pytest.mark.parametrize(
    ("limit", "direction", "pool", "message"),
    [
        (1, 1, None, "sign_2: a threshold of integers must be x >= 0 or x <= -1, got x >= 1"),
        (0, -1, None, "sign_2: a threshold of integers must be x >= 0 or x <= -1, got x <= 0"),
        (-1, -1, MaxPool, "sign_2: a threshold of integers must be x >= 0 before a max_pool, got the other one"),
        (0, 1, MinPool, "sign_2: a threshold of integers must be x <= -1 before a min_pool, got the other one"),
    ],
)
def test_other_thresholds_of_integers(limit, direction, pool, message):
    pools = () if pool is None else (pool(name="pool_2", kernel=(2, 2), stride=(2, 2)),)
    network = residual(BLOCK, pools, conv("conv_3", "pool_2" if pools else "sign_2"))
    model = random_model(network, 1, 24)
    own = {"threshold": np.full((4, 1), limit), "direction": np.full(4, direction)}
    with value_error(message):
        lower_alone(Model(network, {**model.arrays, "sign_2": own}))


def test_levels_of_integers():
    network = residual(f"{FIRST}, {SECOND}, sign_2 add_2 levels=2")
    model = random_model(residual(BLOCK), 1, 24)
    own = {"threshold": np.zeros((4, 2), int), "direction": np.ones(4, int)}
    with value_error("sign_2: a threshold of integers must have 1 level, got 2"):
        lower_alone(Model(network, {**model.arrays, "sign_2": own}))


def test_a_map_of_bits_has_one_reader():
    """Two binary layers read it, and an integer NPU adds what comes of both."""
    four, five = (conv(f"conv_{n}", reads, weight=signed(8)) for n, reads in ((4, "bits_2"), (5, "bits_3")))
    left = ("conv_2 bits_1, sign bits_2 conv_2", four, "act_4 conv_4")
    right = ("conv_3 bits_1, sign bits_3 conv_3", five, "act_5 conv_5")
    network = residual("conv_1 @input", Threshold(name="bits_1"), left, right, "add_6 act_4 act_5")
    engines = [Engine(name, 8, 8) if name == "integer" else Engine() for name in engines_of(network)]
    layers = lower_alone(random_model(network, 1, 24), engines=engines).workloads
    integer = Npu.of(engine="integer", feature_bits=8, weight_bits=8, shift_bits=0, acc_bits=32)
    with value_error("conv_1: one layer must read a map of bits, got conv_2 and conv_3"):
        ways("net", cascade([NPU, integer]), layers, [int(not p.binary) for p in layers])


def test_engines():
    check_engines(residual(BLOCK), ["binary"] * 2)
    ternary = residual(conv("conv_1", "@input", weight=TERNARY), "act_1 conv_1, sign_1 act_1", SECOND, "sign_2 add_2")
    assert engines_of(ternary) == ["binary"] * 2
    assert engines_of(residual(FIRST, SECOND)) == ["binary", "integer"]
