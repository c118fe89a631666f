"""Pools that a network writes in other ways than the engines have them: rewritten exactly, or refused in one line."""

import numpy as np
import pytest

from bitloom.golden.encoding import signed
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.network import Model, Network
from bitloom.golden.window import Window
from bitloom.hls_gen.compiler.engine_rules import Engine
from bitloom.hls_gen.compiler.lowering import lower_alone
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.pools import together
from bitloom.hls_gen.design.npu import Npu
from tests import networks as drawn
from tests.cases import case_map, random_model
from tests.errors import value_error
from tests.graph_text import network_of

from .agreement import agree

MAX, MIN, AVG = (f"{kind}_pool pool_1 2x3 2x1 1/0/0/2" for kind in ("max", "min", "avg"))
MAX_2, MIN_2 = (f"{kind}_pool pool_2 2x3 1x1 1/0/0/2" for kind in ("max", "min"))


def network(encoding: str, *layers: str, weight: str = "b1") -> Network:
    """A convolution and these layers."""
    return network_of(f"7x8x3 {encoding}", f"conv_1 6 3x2 {weight} padding=1/0/1/1", *layers)


@pytest.mark.sample(12)
@pytest.mark.parametrize("weight", ["bipolar", "ternary"])
@pytest.mark.parametrize("source", ["b1", "s5"])
@pytest.mark.parametrize("levels", [1, 3])
@pytest.mark.parametrize("pool_first", [False, True], ids=["threshold_pool", "pool_threshold"])
@pytest.mark.parametrize("pool", [MAX, MIN])
def test_max_and_min_pools_around_a_threshold(pool, pool_first, levels, source, weight):
    """In both directions, thresholds in reach and far out of it."""
    tail = [f"act_1 levels={levels}", pool]
    net = network(source, *(tail[::-1] if pool_first else tail), "dense 4", weight=weight)
    arrays = dict(random_model(net, np.random.default_rng(levels)).arrays)
    low, high = net.layers[0].accumulator_range(net.input)
    threshold = np.random.default_rng(1).integers(low // 8, high // 8, (6, levels))
    threshold[:4, 0] = [low - 1, high + 1, -(2**31), 2**31 - 1]
    arrays["act_1"] = {"threshold": threshold, "direction": np.array([1, -1, 1, -1, 1, -1])}
    agree(Model(net, arrays), lower_alone(Model(net, arrays)))


@pytest.mark.parametrize("pools", [(MAX, MAX_2), (MIN, MIN_2)])
def test_pools_in_a_row_become_one(pools):
    model = random_model(network("b1", "act_1", *pools, "dense 4"), np.random.default_rng(2))
    lowered = lower_alone(model)
    assert lowered.layers[0].pool.window == Window(kernel=(4, 5), stride=(2, 1), padding=(3, 0, 0, 4))
    agree(model, lowered)


@pytest.mark.parametrize("rounding", ["once", "even"])
@pytest.mark.parametrize("pools", [1, 2])
def test_a_max_pool_in_front_of_a_requantisation(pools, rounding):
    """The largest of the sums makes the largest of the results, whatever the rounding."""
    tail = [MAX, MAX_2][:pools]
    for first in range(pools + 1):
        rng = np.random.default_rng(first)
        layers = [*tail[:first], f"act_1 s6 rounding={rounding}", *tail[first:], "dense 4 s8"]
        net = network("s8", *layers, weight="s8")
        weights = {}
        for layer, source in net.chain("this test"):
            if isinstance(layer, Weighted):
                weights[layer.name] = {"weight": rng.integers(-128, 128, layer.array_shapes(source)["weight"])}
        scales = {"bias": (-500, 500), "multiplier": (1 << 30, 1 << 31), "shift": (40, 44)}
        scales = {name: rng.integers(*ends, 6) for name, ends in scales.items()}
        model = Model(net, {**weights, "act_1": scales})
        agree(model, lower_alone(model, engines=Engine("integer", 8, 8)))


def test_windows_together_read_what_both_read():
    """For all small windows and lengths: the same rows and columns, or none."""
    some = none = 0
    shapes = [(k, s, p, q) for k in (1, 2, 3) for s in (1, 2) for p in (0, 1) for q in (0, 1) if max(p, q) < k]
    windows = [Window(kernel=(k, 1), stride=(s, 1), padding=(p, 0, q, 0)) for k, s, p, q in shapes]
    for length in (4, 5):
        x = np.random.default_rng(length).permutation(length).reshape(1, length, 1, 1)
        for first in windows:
            for second in windows:
                rows = first.output_size(length, 1)[0]
                if rows < 1 or second.output_size(rows, 1)[0] < 1:
                    continue
                window = together(first, second, (length, 1))
                none += window is None
                if window is None:
                    continue
                some += 1
                assert np.array_equal(largest(window, x), largest(second, largest(first, x)))
    assert (some, none) == (564, 52)  # of all that fit


def largest(window: Window, x: np.ndarray) -> np.ndarray:
    layer = MaxPool.of("pool", window)
    return layer.forward(x, {}, case_map(*x.shape[1:], signed(8)))


LEFT_OUT = "max_pool pool_1 1x1 2x2, max_pool pool_2 2x2 1x1"
"""The second reads every other row of the first one's map: no window does."""
TAIL = "conv_1: what follows must be nothing, threshold, or threshold and a max_pool or min_pool in either order, got"


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (
            ["act_1", MIN],
            "pool_1: a min pool gives complements, which only the weights of a next layer take back, got one in the "
            "last layer",
        ),
        (["act_1", LEFT_OUT], f"{TAIL} threshold, max_pool, max_pool"),
        (["act_1", MAX, MIN_2], f"{TAIL} threshold, max_pool, min_pool"),
    ],
)
def test_what_is_not_exact_is_refused(layers, message):
    with value_error(message):
        lower_alone(random_model(network("b1", *layers), np.random.default_rng(1)))


@pytest.mark.parametrize(
    ("tail", "message"),
    [
        (["act_1 s8", MIN], "pool_1: a min pool needs the binary engine, got the integer one"),
        (
            [AVG, "act_1 s8, dense 2 s8"],
            "conv_1: what follows, where no binary engine reads it, must be nothing, or requantise, perhaps lookup, "
            "and perhaps a pool, got avg_pool, requantise",
        ),
    ],
)
def test_what_the_integer_engine_has_not_is_refused(tail, message):
    with value_error(message):
        lower_alone(drawn.random_model(network("s8", *tail, weight="s8"), 1, 32), engines=Engine("integer", 8, 8))


def test_the_average_of_windows_side_by_side_costs_no_beat() -> None:
    """Windows that neither overlap nor stick out: as many beats as the convolution has without the pool."""
    beats = []
    for pool in ("", "avg_pool 3x2 3x2"):
        network = network_of("6x6x5", "conv_1 7 3x3 padding=1", pool, "act, conv last 3 1x1")
        model = random_model(network, np.random.default_rng(1))
        beats.append(dict(plan(model, [Npu.of(kfp=5, kgp=4, pfp=2, ol=3)]).ideal)["conv_1"])
    assert beats[0] == beats[1] > 0
