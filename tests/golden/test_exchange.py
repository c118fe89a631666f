import numpy as np
import pytest

from bitloom.golden.encoding import bipolar, signed
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.pool import AvgPool, MaxPool
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from tests.cases import case_map, cases, random_images
from tests.errors import value_error

from .exchange import ascending, exchange, exchangeable, never_falls

CASES = dict(cases())
POOL = MaxPool(name="pool_1", kernel=(2, 3), stride=(2, 1), padding=(1, 0, 0, 2))


def model_of(pool_first: bool, direction: list[int], levels: int = 2, pool: MaxPool = POOL) -> Model:
    """Thresholds and a max pool on 5 x 4 x len(direction) values of -8..7, thresholds from -3 up."""
    threshold = Threshold(name="threshold_1", levels=levels)
    layers = (pool, threshold) if pool_first else (threshold, pool)
    values = np.arange(len(direction))[:, None] + 3 * np.arange(levels) - 3
    arrays = {"threshold_1": {"threshold": values, "direction": np.array(direction)}}
    return Model(Network(name="pair", input=case_map(5, 4, len(direction), signed(4)), layers=layers), arrays)


@pytest.mark.parametrize("pool_first", [True, False])
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_the_exchange_changes_no_output(pool_first, levels):
    model = model_of(pool_first, [1, 1, 1], levels)
    assert exchangeable(model, 0)
    other = exchange(model, 0)
    assert [layer.kind for layer in other.network.layers] == [layer.kind for layer in model.network.layers][::-1]
    x = random_images(model, 50, np.random.default_rng(levels))
    np.testing.assert_array_equal(other.forward(x), model.forward(x))
    assert other.network.output == model.network.output


@pytest.mark.parametrize("pool_first", [True, False])
def test_a_falling_channel_forbids_the_exchange_and_it_would_be_wrong(pool_first):
    model = model_of(pool_first, [1, -1, 1])
    assert never_falls(model, 1 if pool_first else 0).tolist() == [True, False, True]
    assert not exchangeable(model, 0)
    layers = model.network.layers[::-1]
    swapped = Model(Network(name="pair", input=model.network.input, layers=layers), model.arrays)
    x = random_images(model, 50, np.random.default_rng(1))
    same = (swapped.forward(x) == model.forward(x)).all(axis=(0, 1, 2))
    assert same.tolist() == [True, False, True]
    order = ["pool_1 (max_pool)", "threshold_1 (threshold)"][:: 1 if pool_first else -1]
    with value_error(f"pair: only a max pool and rising thresholds may be exchanged, got {' and '.join(order)}"):
        exchange(model, 0)


@pytest.mark.parametrize(("threshold", "constant"), [(-9, True), (-8, False), (6, False), (7, True)])
def test_a_constant_has_no_direction(threshold, constant):
    """Channel values are -8..7: x <= -9 never, x <= 7 always."""
    arrays = {"threshold_1": {"threshold": np.array([[threshold]]), "direction": np.array([-1])}}
    layers = (POOL, Threshold(name="threshold_1"))
    model = Model(Network(name="pair", input=case_map(5, 4, 1, signed(4)), layers=layers), arrays)
    assert exchangeable(model, 0) is constant


def test_a_window_of_one_tap_may_always_be_exchanged():
    model = model_of(True, [-1], pool=MaxPool(name="pool_1", kernel=(1, 1), stride=(2, 3)))
    x = random_images(model, 5, np.random.default_rng(1))
    np.testing.assert_array_equal(exchange(model, 0).forward(x), model.forward(x))


def test_other_layers_are_not_exchangeable():
    model = CASES["small_cnn"]
    kinds = [layer.kind for layer in model.network.layers]
    assert kinds[:4] == ["conv", "threshold", "max_pool", "conv"]
    assert not exchangeable(model, 0)
    assert not exchangeable(model, 2)
    assert not exchangeable(model, len(kinds) - 1)
    assert not exchangeable(CASES["int8"], 0)
    average = AvgPool(name="pool_1", kernel=(2, 2), stride=(1, 1))
    arrays = {"threshold_1": {"threshold": np.array([[0]]), "direction": np.array([1])}}
    layers = (average, Threshold(name="threshold_1"))
    assert not exchangeable(Model(Network(name="a", input=case_map(3, 3, 1, signed(4)), layers=layers), arrays), 0)


@pytest.mark.parametrize("name", [n for n, m in CASES.items() if m.network.layers[0].kind == "conv"])
def test_ascending_changes_no_bit(name):
    model = CASES[name]
    turned = model
    for index, (layer, before) in enumerate(zip(model.network.layers[1:], model.network.layers), start=1):
        if isinstance(layer, Threshold) and before.kind in ("conv", "dense"):
            assert (turned.arrays[layer.name]["direction"] == -1).any()
            turned = ascending(turned, index)
            assert (turned.arrays[layer.name]["direction"] == 1).all()
    x = random_images(model, 5, np.random.default_rng(1))
    for layer, a, b in zip(model.network.layers, turned.trace(x), model.trace(x)):
        if layer.kind not in ("conv", "dense"):
            np.testing.assert_array_equal(a, b, err_msg=layer.name)


def test_ascending_makes_a_network_exchangeable():
    model = CASES["max_pool_of_bits"]
    assert not exchangeable(model, 1)
    other = exchange(ascending(model, 1), 1)
    assert [layer.kind for layer in other.network.layers] == ["conv", "max_pool", "threshold"]
    x = random_images(model, 20, np.random.default_rng(1))
    np.testing.assert_array_equal(other.forward(x), model.forward(x))


def test_ascending_leaves_a_rising_model_alone():
    model = model_of(False, [1, 1])
    assert ascending(model, 0) is model


def test_what_cannot_be_turned_is_refused():
    with value_error("threshold_1: direction -1 can only be turned after a layer with weights, got the input"):
        ascending(model_of(False, [-1]), 0)
    with value_error("threshold_1: direction -1 can only be turned after a layer with weights, got max_pool"):
        ascending(model_of(True, [-1]), 1)
    layers = (Conv(name="conv_1", out_channels=1, kernel=(1, 1), accumulate="or"), Threshold(name="threshold_1"))
    arrays = {
        "conv_1": {"weight": np.ones((1, 1, 1, 2), int)},
        "threshold_1": {"threshold": np.array([[0]]), "direction": np.array([-1])},
    }
    with value_error("threshold_1: direction -1 can only be turned after popcount, got or"):
        ascending(Model(Network(name="n", input=case_map(1, 1, 2), layers=layers), arrays), 1)
    with value_error("pool_1: must be a threshold layer, got max_pool"):
        ascending(model_of(True, [-1]), 0)
    with value_error("pool_1: must be a threshold layer, got max_pool"):
        never_falls(model_of(True, [-1]), 0)
    layers = (Conv(name="conv_1", out_channels=1, kernel=(1, 1), weight=signed(4)), Threshold(name="threshold_1"))
    network = Network(name="n", input=case_map(1, 1, 2, bipolar(1)), layers=layers)
    arrays = {
        "conv_1": {"weight": np.array([-8, 7]).reshape(1, 1, 1, 2)},
        "threshold_1": {"threshold": np.array([[0]]), "direction": np.array([-1])},
    }
    with value_error("conv_1.weight, negated: values must be signed 4 bit (-8..7), got 8"):
        ascending(Model(network, arrays), 1)
