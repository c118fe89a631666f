import numpy as np
import pytest

from bitloom.golden import zoo as networks
from bitloom.golden.file import model_digest, save
from bitloom.golden.kernels import packed
from bitloom.golden.training.train import train
from bitloom.golden.zoo.digits import load_digits
from bitloom.golden.zoo.digits_words import RECIPE, digits_words

DIGEST = "21356bc4e084bc6816ba4f147d97f5c409ca15e8f4d7dc50007b3f0d579defd8"
"""Of the shipped network."""


@pytest.fixture(scope="module")
def digits():
    pytest.importorskip("sklearn", reason="the images come from scikit-learn: pip install 'bitloom-fpga[cli]'")
    return load_digits()


def test_shipped_network_is_as_stated():
    model = networks.load("digits-words")
    assert model.network == digits_words()
    assert model_digest(model) == DIGEST


def test_right_on_the_test_images(digits):
    """348 of 360, which the documents repeat; and the fast pass equals the plain one."""
    model = networks.load("digits-words")
    scores = packed.forward(model, digits.test_images)
    assert (scores.reshape(360, -1).argmax(axis=1) == digits.test_labels).sum() == 348
    np.testing.assert_array_equal(model.forward(digits.test_images[:9]), scores[:9])


@pytest.mark.slow
def test_training_again_gives_the_shipped_file_byte_for_byte(digits, tmp_path):
    save(train(digits_words(), digits.train_images, digits.train_labels, RECIPE), tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (networks.FOLDER / "digits-words.npz").read_bytes()
