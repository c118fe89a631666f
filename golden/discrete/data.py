"""Images that perceptrons learn from."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bitloom.golden import zoo
from bitloom.golden.encoding import Array, unsigned
from bitloom.golden.layer import Map
from bitloom.golden.training.reproducible import random_order
from bitloom.golden.zoo.digits import IMAGE, load_digits
from bitloom.golden.zoo.mnist import SIDE, load_mnist

MNIST_TRAIN = 8_000
HELD_OUT = 2_000_000
"""Purpose in the keys of random streams that choose held-out images; other purposes have smaller numbers."""


class LearnData(NamedTuple):
    """Images as rows of grey values, and their labels."""

    name: str
    train: Array
    """(N, inputs) integers."""
    train_labels: Array
    """(N,) int64 of 0 to 9."""
    test: Array
    test_labels: Array
    half: float
    """Half of the largest grey value."""

    def real(self, images: Array) -> Array:
        """Grey values as real numbers from -1 to 1."""
        return images / self.half - 1

    def held_out(self, seed: int) -> "LearnData":
        """The training images split anew: four fifths at random to learn from, one fifth to test with.

        Whatever is chosen by an accuracy is chosen by this one, so that the test images take no part in it.
        """
        order = random_order(len(self.train), seed, HELD_OUT)
        rest, learned = np.split(order, [len(order) // 5])
        return self._replace(
            train=self.train[learned],
            train_labels=self.train_labels[learned],
            test=self.train[rest],
            test_labels=self.train_labels[rest],
        )


def digits() -> LearnData:
    """Scikit-learn's 1,797 digits of 8 x 8 pixels of 5 bits, 1,437 to learn from; ImportError without scikit-learn."""
    data = load_digits()
    train, test = (images.reshape(len(images), -1) for images in (data.train_images, data.test_images))
    return LearnData("digits", train, data.train_labels, test, data.test_labels, 8.0)


def mnist() -> LearnData:
    """MNIST's 10,000 test images, 8,000 of them at random to learn from; FileNotFoundError where they are absent."""
    images, labels = load_mnist(zoo.data_folder())
    images, order = images.reshape(len(images), -1), random_order(len(images), 0)
    train = order[:MNIST_TRAIN]
    test = order[MNIST_TRAIN:]
    return LearnData("mnist", images[train], labels[train], images[test], labels[test], 127.5)


SOURCES = {"digits": IMAGE, "mnist": Map(height=SIDE, width=SIDE, channels=1, encoding=unsigned(8))}
"""One image of each."""
DATA: dict[str, Callable[[], LearnData]] = {"digits": digits, "mnist": mnist}
