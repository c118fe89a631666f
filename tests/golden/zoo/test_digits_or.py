from typing import NamedTuple

import numpy as np
import pytest

from bitloom.golden import zoo as networks
from bitloom.golden.encoding import BIPOLAR, unsigned
from bitloom.golden.kernels import packed
from bitloom.golden.layer import Layer
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.golden.zoo.digits import digits_cnn, load_digits
from bitloom.golden.zoo.digits_or import digits_or, with_or
from tests.cases import case_map, random_model
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


def test_the_trained_network_is_of_the_same_data():
    assert (digits_or().input, digits_or().classes) == (digits_cnn().input, digits_cnn().classes)
