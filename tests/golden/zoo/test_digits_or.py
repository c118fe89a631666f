from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from bitloom.golden import zoo as networks
from bitloom.golden.encoding import BIPOLAR, unsigned
from bitloom.golden.kernels import packed
from bitloom.golden.layer import Layer
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.golden.zoo.digits import digits_cnn, load_digits
from bitloom.golden.zoo.digits_or import digits_or, with_or
from tests.cases import case_map, random_images, random_model
from tests.errors import value_error


class OrReport(NamedTuple):
    """Share of the test images (0 .. 1) whose class is right."""

    popcount: float
    """The network that was trained for popcount."""
    replaced: float
    """The same weights `with_or`."""
    trained: float
    """The network that was trained for OR."""


def or_report(popcount: Model, trained: Model) -> OrReport:
    """Accuracy on the 360 test images of digits-cnn, of digits-cnn `with_or`, and of digits-or (A12)."""
    data = load_digits()

    def accuracy(model: Model) -> float:
        return right(model, data.test_images, data.test_labels)

    return OrReport(popcount=accuracy(popcount), replaced=accuracy(with_or(popcount)), trained=accuracy(trained))


def right(model: Model, images: np.ndarray, labels: np.ndarray) -> float:
    """Share of (N, H, W, C) images whose largest output is that of the (N,) label."""
    scores = packed.forward(model, images).reshape(len(images), -1)
    return float(np.mean(scores.argmax(axis=1) == labels))


def test_accuracies_on_the_test_images(digits):
    """The figures of A12, which the documents repeat."""
    report = or_report(networks.load("digits-cnn"), networks.load("digits-or"))
    assert {key: round(360 * share) for key, share in report._asdict().items()} == RIGHT


RIGHT = {"popcount": 354, "replaced": 36, "trained": 331}
"""Test images of 360 whose class is right."""


def test_fast_pass_equals_the_plain_pass(digits):
    for model in (networks.load("digits-or"), with_or(networks.load("digits-cnn"))):
        images = digits.test_images[:40]
        for plain, fast in zip(model.trace(images), packed.trace(model, images)):
            np.testing.assert_array_equal(plain, fast)


def test_or_layers_of_the_shipped_network_say_something(digits):
    """Every kernel gives both bits. Put in place of popcount, OR gives nothing but +1: its windows are too wide."""

    def values(model: Model, name: str) -> list[set[int]]:
        trace = packed.trace(model, digits.test_images)
        out = dict(zip((layer.name for layer in model.network.layers), trace))[name]
        return [set(np.unique(channel)) for channel in np.moveaxis(out, 3, 0)]

    assert values(networks.load("digits-or"), "conv_2") == [{-1, 1}] * 64
    assert values(with_or(networks.load("digits-cnn")), "conv_2") == [{1}] * 32


# Replacement.


def model_of(*layers: Layer, encoding=BIPOLAR) -> Model:
    network = Network(name="n", input=case_map(4, 5, 2, encoding), layers=layers)
    return random_model(network, np.random.default_rng(1))


def test_replacing_popcount_in_digits_cnn():
    """conv_1 reads grey values and dense_4 gives the scores."""
    model = networks.load("digits-cnn")
    changed = with_or(model)
    assert [layer.name for layer in changed.network.layers] == [
        "conv_1",
        "threshold_1",
        "conv_2",
        "pool_2",
        "conv_3",
        "dense_4",
    ]
    assert [getattr(layer, "accumulate", "") for layer in changed.network.layers] == [
        "popcount",
        "",
        "or",
        "",
        "or",
        "popcount",
    ]
    assert [changed.network.maps[name].encoding for name in ("conv_2", "pool_2", "conv_3")] == [BIPOLAR] * 3
    for name, arrays in changed.arrays.items():
        assert arrays is model.arrays[name]


def test_replacing_drops_the_thresholds_of_what_were_sums():
    conv, pool = Conv(name="conv_1", out_channels=3, kernel=(2, 2)), MaxPool(name="p", kernel=(2, 1), stride=(1, 1))
    last = Dense(name="dense_2", out_channels=4)
    first = Threshold(name="first")
    model = model_of(first, conv, pool, Threshold(name="t"), last, Threshold(name="u"), encoding=unsigned(3))
    changed = with_or(model)
    assert [layer.name for layer in changed.network.layers] == ["first", "conv_1", "p", "dense_2", "u"]
    images = random_images(model, 9, np.random.default_rng(2))
    expected = replace(conv, accumulate="or").forward(
        model.trace(images)[0], model.arrays["conv_1"], model.network.maps["first"]
    )
    np.testing.assert_array_equal(changed.trace(images)[1], expected)


@pytest.mark.parametrize(
    "model",
    [
        model_of(Dense(name="only", out_channels=3)),
        model_of(
            Conv(name="grey", out_channels=3, kernel=(2, 2)),
            Threshold(name="t"),
            Dense(name="d", out_channels=2),
            encoding=unsigned(2),
        ),
    ],
)
def test_nothing_to_replace(model):
    with value_error("n: no layer can accumulate by or: it takes a bipolar map and bipolar weights"):
        with_or(model)


def test_a_report_is_of_shares():
    assert OrReport._fields == ("popcount", "replaced", "trained")
    model = model_of(Dense(name="d", out_channels=2))
    images = random_images(model, 8, np.random.default_rng(1))
    best = model.forward(images).reshape(8, 2).argmax(axis=1)
    assert right(model, images, best) == 1
    assert right(model, images, np.append(1 - best[:2], best[2:])) == 0.75


def test_the_trained_network_is_of_the_same_data():
    assert (digits_or().input, digits_or().classes) == (digits_cnn().input, digits_cnn().classes)
