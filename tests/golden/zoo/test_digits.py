"""Networks that come along for scikit-learn's digits: what they are, how often they are right, their training."""

import hashlib
import sys
from typing import NamedTuple

import numpy as np
import pytest

from bitloom.golden import zoo as networks
from bitloom.golden.file import model_digest, save
from bitloom.golden.kernels import packed
from bitloom.golden.network import Network
from bitloom.golden.training.train import Epoch, Recipe, fit, train
from bitloom.golden.zoo import digits as popcount
from bitloom.golden.zoo import digits_or, digits_residual, digits_words
from bitloom.golden.zoo.digits import digits_cnn, load_digits


class Shipped(NamedTuple):
    """A network whose trained weights come along."""

    network: Network
    recipe: Recipe
    digest: str
    right: int
    """Test images of 360 whose class is right, which the documents repeat."""


SHIPPED = {
    "digits-cnn": Shipped(
        digits_cnn(), popcount.RECIPE, "9f78f4ec65c915add95199e5540ab98c1c303de7de48cace2b26702f152ccca7", 354
    ),
    "digits-or": Shipped(
        digits_or.digits_or(), digits_or.RECIPE, "587a8cbd272ff00cd2712f73b2e3bbf3fee2d27eec36351d9d6486352e3f1c1f", 331
    ),
    "digits-residual": Shipped(
        digits_residual.digits_residual(),
        digits_residual.RECIPE,
        "0b40f45cd5c2b2b9e771a244f6c0d01a40c4bb6a6ac0358c294ee16dbb0e0ce6",
        357,
    ),
    "digits-words": Shipped(
        digits_words.digits_words(),
        digits_words.RECIPE,
        "21356bc4e084bc6816ba4f147d97f5c409ca15e8f4d7dc50007b3f0d579defd8",
        348,
    ),
}

SPLIT = "6a812af8365b27b7ec02d34500f780068c2c6659fd92ac09c86758d8ab34538c"
"""SHA-256 of the split: it must not change, or the accuracy is told of images that were trained on."""


def test_images_are_the_agreed_split(digits):
    assert digits.train_images.shape == (1437, 8, 8, 1)
    assert digits.test_images.shape == (360, 8, 8, 1)
    assert (digits.train_images.min(), digits.train_images.max()) == (0, 16)
    digest = hashlib.sha256()
    for array in digits:
        digest.update(array.tobytes())
    assert digest.hexdigest() == SPLIT


def test_missing_scikit_learn_is_told_in_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    rule = r"^digits: needs scikit-learn for its images: pip install 'bitloom-fpga\[cli\]'\Z"
    with pytest.raises(ImportError, match=rule):
        load_digits()


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_network_is_as_stated(name):
    model = networks.load(name)
    assert model.network == SHIPPED[name].network
    assert model_digest(model) == SHIPPED[name].digest


@pytest.mark.parametrize("name", SHIPPED)
def test_right_on_the_test_images(name, digits):
    """And the fast pass equals the plain one."""
    model = networks.load(name)
    scores = packed.forward(model, digits.test_images)
    assert (scores.reshape(360, -1).argmax(axis=1) == digits.test_labels).sum() == SHIPPED[name].right
    images = digits.test_images if name == "digits-cnn" else digits.test_images[:9]
    np.testing.assert_array_equal(model.forward(images), scores[: len(images)])


def test_real_valued_network_equals_the_integer_network_on_every_test_image(digits):
    trained = fit(digits_cnn(), digits.train_images[:640], digits.train_labels[:640], Recipe(epochs=2))
    real = trained.forward(digits.test_images)
    np.testing.assert_array_equal(real, trained.model().forward(digits.test_images))
    assert (real.reshape(360, -1).argmax(axis=1) == digits.test_labels).mean() > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_training_again_gives_the_shipped_file_byte_for_byte(name, digits, tmp_path):
    seen: list[Epoch] = []
    shipped = SHIPPED[name]
    images, labels = digits.train_images, digits.train_labels
    save(train(shipped.network, images, labels, shipped.recipe, progress=seen.append), tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (networks.FOLDER / f"{name}.npz").read_bytes()
    assert [e.number for e in seen] == list(range(1, seen[-1].epochs + 1))
