import json

import numpy as np
import pytest

from bitloom.golden.encoding import signed
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from tests.cases import case_map, cases, integer_cases, random_images
from tests.errors import value_error

CASES = dict(cases() + integer_cases())
LAYERS = (Conv(name="conv_1", out_channels=2, kernel=(2, 2)), Threshold(name="threshold_1"))
NETWORK = Network(name="small", input=case_map(3, 4, 1), layers=LAYERS)
ARRAYS = {
    "conv_1": {"weight": np.ones((2, 2, 2, 1), np.int8)},
    "threshold_1": {"threshold": np.zeros((2, 1), np.int8), "direction": np.ones(2, np.int8)},
}


@pytest.mark.parametrize("name", CASES)
def test_a_description_is_json_and_comes_back(name):
    network = CASES[name].network
    data = json.loads(json.dumps(network.to_dict()))
    assert Network.from_dict(data) == network
    assert data == network.to_dict()


@pytest.mark.parametrize("name", CASES)
def test_every_output_is_of_the_map_that_the_layer_promises(name):
    model = CASES[name]
    x = random_images(model, 3, np.random.default_rng(1))
    outputs = model.trace(x)
    for layer, output in zip(model.network.layers, outputs, strict=True):
        m = model.network.maps[layer.name]
        assert output.shape == (3, *m.shape)
        assert output.dtype == np.int64
        m.encoding.check("output", output)
    np.testing.assert_array_equal(model.forward(x), outputs[-1])
    assert model.network.output == list(model.network.maps.values())[-1]


def description(**changes: object) -> dict:
    return {**json.loads(json.dumps(NETWORK.to_dict())), **changes}


def without(key: str) -> dict:
    return {k: v for k, v in description().items() if k != key}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: Network(name="n", input=case_map(1, 1, 1), layers=()),
            "n: a network must have at least one layer, got none",
        ),
        (
            lambda: Network(name="n", input=case_map(1, 1, 1), layers=(LAYERS[1], LAYERS[1])),
            "n: layer names must be unique, got 'threshold_1' twice",
        ),
        (
            lambda: Network(name="n", input=case_map(1, 1, 1), layers=LAYERS),
            "conv_1: the window must fit the padded map, got kernel (2, 2) on 1 x 1",
        ),
        (
            lambda: Network.from_dict(without("layers")),
            "network description: a field is missing or unknown: 'layers'",
        ),
        (
            lambda: Network.from_dict(description(layers=[{"kind": "dense", "name": "d", "outputs": 3}])),
            "network description: a field is missing or unknown: "
            "Dense.__init__() got an unexpected keyword argument 'outputs'",
        ),
        (
            lambda: Network.from_dict(description(layers=["conv"])),
            "network description: a field is missing or unknown: 'str' object has no attribute 'items'",
        ),
        (
            lambda: Network.from_dict(description(layers=[{"kind": "softmax", "name": "s"}])),
            "network description: layer kind must be one of conv, depthwise_conv, grouped_conv, dense, max_pool, "
            "min_pool, avg_pool, sum_pool, threshold, requantise, lookup, add, multiply, concat, outputs, affine, "
            "got 'softmax'",
        ),
        (
            lambda: Network.from_dict(description(layers=[{"name": "s"}])),
            "network description: a field is missing or unknown: 'kind'",
        ),
        (
            lambda: Model(NETWORK, {**ARRAYS, "conv_2": {}}),
            "small: arrays must belong to a layer, got 'conv_2'",
        ),
        (
            lambda: Model(NETWORK, {"conv_1": ARRAYS["conv_1"]}),
            "threshold_1: arrays must be ['direction', 'threshold'], got []",
        ),
        (
            lambda: Model(NETWORK, ARRAYS).forward(np.ones((1, 4, 3, 1), int)),
            "small: images must have shape (N, 3, 4, 1), got (1, 4, 3, 1)",
        ),
        (
            lambda: Model(NETWORK, ARRAYS).forward([[1]]),
            "small: images must have shape (N, 3, 4, 1), got list",
        ),
        (
            lambda: Model(NETWORK, ARRAYS).forward(np.zeros((1, 3, 4, 1), int)),
            "small: images: values must be bipolar 1 bit (-1..1 in steps of 2), got 0",
        ),
        (
            lambda: Model(NETWORK, ARRAYS).forward(np.ones((1, 3, 4, 1))),
            "small: images: values must be integers, got dtype float64",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with value_error(message):
        call()


def test_encodings_of_layers_survive_the_description():
    layers = (
        Dense(name="dense_1", out_channels=2, weight=signed(5)),
        Requantise(name="requantise_1", encoding=signed(3), relu=True),
    )
    network = Network(name="n", input=case_map(1, 2, 3), layers=layers, classes=("a", "b"))
    assert Network.from_dict(json.loads(json.dumps(network.to_dict()))) == network


def test_what_requantise_got_later_is_written_where_it_is_set():
    layers = Requantise(name="r_1", encoding=signed(3)), Requantise(name="r_2", encoding=signed(3), clip=(-3, 2))
    layers = (*layers, Requantise(name="r_3", encoding=signed(3), fraction=5))
    network = Network(name="n", input=case_map(1, 2, 3), layers=layers)
    data = json.loads(json.dumps(network.to_dict()))
    assert [sorted(entry) for entry in data["layers"]] == [
        ["encoding", "kind", "name", "relu"],
        ["clip", "encoding", "kind", "name", "relu"],
        ["encoding", "fraction", "kind", "name", "relu"],
    ]
    assert Network.from_dict(data) == network


def test_layers_are_counted_before_they_are_sorted():
    layers = tuple(Threshold(name=f"t_{n}") for n in range(1025))
    with value_error("long: a network must have at most 1,024 layers, got 1,025"):
        Network(name="long", input=case_map(1, 1, 1), layers=layers)
