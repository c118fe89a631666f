"""The demo: handwritten digits of 8 x 8 pixels (scikit-learn's `load_digits`) and the network digits-cnn.

scikit-learn is an optional extra, needed for the images only. The trained network lies in golden/zoo/.
"""

from typing import NamedTuple

import numpy as np

from bitloom.golden.distribution import pip_install
from bitloom.golden.encoding import Array, unsigned
from bitloom.golden.layer import Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Network
from bitloom.golden.training.train import Recipe

IMAGE = Map(height=8, width=8, channels=1, encoding=unsigned(5))
"""One image: grey values 0 (paper) to 16 (ink)."""
CLASSES = tuple(str(digit) for digit in range(10))
"""Names of the outputs."""

RECIPE = Recipe(epochs=60)
"""How the shipped network is trained: about a minute of one core. Network and recipe were chosen on parts of the
training images (98.9 % right there); test images took no part. On those, seeds 0 to 4 give 98.3, 98.1, 98.9, 98.3,
98.1 %; shipped is seed 0."""


class Digits(NamedTuple):
    """(N, 8, 8, 1) uint8 images of 0 .. 16 and (N,) int64 labels 0 .. 9: N = 1437 to train, 360 to test."""

    train_images: Array
    train_labels: Array
    test_images: Array
    test_labels: Array


def load_digits() -> Digits:
    """Load the images, split as for spec C's figures: 360 to test, random_state 0, stratified by label.

    ImportError if scikit-learn is not installed.
    """
    try:
        from sklearn import datasets, model_selection  # type: ignore[import-untyped]
    except ImportError as e:
        raise ImportError(f"digits: needs scikit-learn for its images: {pip_install('cli')}") from e
    data = datasets.load_digits()
    images = data.images.astype(np.uint8)[..., None]
    labels = data.target.astype(np.int64)
    a, b, c, d = model_selection.train_test_split(images, labels, test_size=360, random_state=0, stratify=labels)
    return Digits(train_images=a, test_images=b, train_labels=c, test_labels=d)


def digits_cnn() -> Network:
    """The network digits-cnn: 346,752 binary multiply-accumulates an image; conv_3 pads a binary map with zeros."""
    return Network(
        name="digits-cnn",
        input=IMAGE,
        layers=(
            Conv(name="conv_1", out_channels=16, kernel=(3, 3), padding=(1, 1, 1, 1)),  # 8 x 8
            Threshold(name="threshold_1"),
            Conv(name="conv_2", out_channels=32, kernel=(3, 3)),  # 6 x 6
            Threshold(name="threshold_2"),
            MaxPool(name="pool_2", kernel=(2, 2), stride=(2, 2)),  # 3 x 3
            Conv(name="conv_3", out_channels=64, kernel=(3, 3), padding=(1, 1, 1, 1)),  # 3 x 3
            Threshold(name="threshold_3"),
            Dense(name="dense_4", out_channels=10),
        ),
        classes=CLASSES,
    )
