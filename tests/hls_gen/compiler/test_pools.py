"""Pools that a network writes in other ways than the engines have them: rewritten exactly, or refused in one line."""

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, TERNARY, Encoding, signed
from bitloom.golden.layer import Layer
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import AvgPool, MaxPool, MinPool, Pool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
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

from .agreement import agree

INT8 = signed(8)


def conv(weight: Encoding = BIPOLAR, number: int = 1) -> Conv:
    return Conv(name=f"conv_{number}", out_channels=6, kernel=(3, 2), padding=(1, 0, 1, 1), weight=weight)


def pool(kind: type[Pool], number: int = 1, stride: int = 2) -> Pool:
    return kind(name=f"pool_{number}", kernel=(2, 3), stride=(stride, 1), padding=(1, 0, 0, 2))


def network(source: Encoding, *layers: Layer) -> Network:
    return Network(name="net", input=case_map(7, 8, 3, source), layers=layers)


@pytest.mark.sample(12)
@pytest.mark.parametrize("weight", [BIPOLAR, TERNARY], ids=str)
@pytest.mark.parametrize("source", [BIPOLAR, signed(5)], ids=str)
@pytest.mark.parametrize("levels", [1, 3])
@pytest.mark.parametrize("pool_first", [False, True], ids=["threshold_pool", "pool_threshold"])
@pytest.mark.parametrize("kind", [MaxPool, MinPool])
def test_max_and_min_pools_around_a_threshold(kind, pool_first, levels, source, weight):
    """In both directions, thresholds in reach and far out of it."""
    tail = [Threshold(name="act_1", levels=levels), pool(kind)]
    net = network(source, conv(weight), *(tail[::-1] if pool_first else tail), Dense(name="dense", out_channels=4))
    arrays = dict(random_model(net, np.random.default_rng(levels)).arrays)
    low, high = net.layers[0].accumulator_range(net.input)
    threshold = np.random.default_rng(1).integers(low // 8, high // 8, (6, levels))
    threshold[:4, 0] = [low - 1, high + 1, -(2**31), 2**31 - 1]
    arrays["act_1"] = {"threshold": threshold, "direction": np.array([1, -1, 1, -1, 1, -1])}
    agree(Model(net, arrays), lower_alone(Model(net, arrays)))


@pytest.mark.parametrize("kind", [MaxPool, MinPool])
def test_pools_in_a_row_become_one(kind):
    layers = [conv(), Threshold(name="act_1"), pool(kind), pool(kind, 2, 1), Dense(name="dense", out_channels=4)]
    model = random_model(network(BIPOLAR, *layers), np.random.default_rng(2))
    lowered = lower_alone(model)
    assert lowered.layers[0].pool.window == Window(kernel=(4, 5), stride=(2, 1), padding=(3, 0, 0, 4))
    agree(model, lowered)


@pytest.mark.parametrize("rounding", ["once", "even"])
@pytest.mark.parametrize("pools", [1, 2])
def test_a_max_pool_in_front_of_a_requantisation(pools, rounding):
    """The largest of the sums makes the largest of the results, whatever the rounding."""
    tail = [pool(MaxPool), pool(MaxPool, 2, 1)][:pools]
    for first in range(pools + 1):
        act = Requantise(name="act_1", encoding=signed(6), rounding=rounding)
        layers = [conv(INT8), *tail[:first], act, *tail[first:], Dense(name="dense", out_channels=4, weight=INT8)]
        rng = np.random.default_rng(first)
        net = network(INT8, *layers)
        weights = {}
        for layer, source in net.chain("this test"):
            if isinstance(layer, Conv | Dense):
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
    return layer.forward(x, {}, case_map(*x.shape[1:], INT8))


LEFT_OUT = [MaxPool(name="pool_1", kernel=(1, 1), stride=(2, 2)), MaxPool(name="pool_2", kernel=(2, 2), stride=(1, 1))]
"""The second reads every other row of the first one's map: no window does."""


ACT = Threshold(name="act_1")
TAIL = "conv_1: what follows must be nothing, threshold, or threshold and a max_pool or min_pool in either order, got"


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (
            [conv(), ACT, pool(MinPool)],
            "pool_1: a min pool gives complements, which only the weights of a next layer take back, got one in the "
            "last layer",
        ),
        ([conv(), ACT, *LEFT_OUT], f"{TAIL} threshold, max_pool, max_pool"),
        ([conv(), ACT, pool(MaxPool), pool(MinPool, 2)], f"{TAIL} threshold, max_pool, min_pool"),
    ],
)
def test_what_is_not_exact_is_refused(layers, message):
    with value_error(message):
        lower_alone(random_model(network(BIPOLAR, *layers), np.random.default_rng(1)))


REQUANTISED = Requantise(name="act_1", encoding=INT8)


@pytest.mark.parametrize(
    ("tail", "message"),
    [
        ([REQUANTISED, pool(MinPool)], "pool_1: a min pool needs the binary engine, got the integer one"),
        (
            [pool(AvgPool), REQUANTISED, Dense(name="dense", out_channels=2, weight=INT8)],
            "conv_1: what follows, where no binary engine reads it, must be nothing, or requantise, perhaps lookup, "
            "and perhaps a pool, got avg_pool, requantise",
        ),
    ],
)
def test_what_the_integer_engine_has_not_is_refused(tail, message):
    with value_error(message):
        lower_alone(drawn.random_model(network(INT8, conv(INT8), *tail), 1, 32), engines=Engine("integer", 8, 8))


def test_the_average_of_windows_side_by_side_costs_no_beat() -> None:
    """Windows that neither overlap nor stick out: as many beats as the convolution has without the pool."""
    first = Conv(name="conv_1", out_channels=7, kernel=(3, 3), padding=(1, 1, 1, 1))
    beats = []
    for pools in ((), (AvgPool(name="mean", kernel=(3, 2), stride=(3, 2)),)):
        layers = (first, *pools, Threshold(name="act"), Conv(name="last", out_channels=3, kernel=(1, 1)))
        model = random_model(Network(name="side", input=case_map(6, 6, 5), layers=layers), np.random.default_rng(1))
        beats.append(dict(plan(model, [Npu.of(kfp=5, kgp=4, pfp=2, ol=3)]).ideal)["conv_1"])
    assert beats[0] == beats[1] > 0
