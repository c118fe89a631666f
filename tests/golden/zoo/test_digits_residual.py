import numpy as np
import pytest

from bitloom.golden import zoo as networks
from bitloom.golden.file import model_digest, save
from bitloom.golden.kernels import packed
from bitloom.golden.training.train import train
from bitloom.golden.zoo.digits import load_digits
from bitloom.golden.zoo.digits_residual import RECIPE, digits_residual

DIGEST = "0b40f45cd5c2b2b9e771a244f6c0d01a40c4bb6a6ac0358c294ee16dbb0e0ce6"
"""Of the shipped network."""


@pytest.fixture(scope="module")
def digits():
    pytest.importorskip("sklearn", reason="the images come from scikit-learn: pip install 'bitloom-fpga[cli]'")
    return load_digits()


def test_shipped_network_is_as_stated():
    model = networks.load("digits-residual")
    assert model.network == digits_residual()
    assert model_digest(model) == DIGEST


def test_right_on_the_test_images(digits):
    """Of 360, as the documents say; and the fast pass equals the plain one."""
    model = networks.load("digits-residual")
    scores = packed.forward(model, digits.test_images)
    assert (scores.reshape(360, -1).argmax(axis=1) == digits.test_labels).sum() == 357
    np.testing.assert_array_equal(model.forward(digits.test_images[:9]), scores[:9])


@pytest.mark.slow
def test_training_again_gives_the_shipped_file_byte_for_byte(digits, tmp_path):
    save(train(digits_residual(), digits.train_images, digits.train_labels, RECIPE), tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (networks.FOLDER / "digits-residual.npz").read_bytes()
