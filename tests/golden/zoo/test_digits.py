import hashlib
import sys

import numpy as np
import pytest

from bitloom.golden import zoo as networks
from bitloom.golden.file import model_digest, save
from bitloom.golden.kernels import packed
from bitloom.golden.training.train import Epoch, Recipe, fit
from bitloom.golden.zoo.digits import digits_cnn, load_digits, train_digits
from tests.errors import OR_A_FILE, value_error

DIGEST = "9f78f4ec65c915add95199e5540ab98c1c303de7de48cace2b26702f152ccca7"
"""Of the shipped network."""

SPLIT = "6a812af8365b27b7ec02d34500f780068c2c6659fd92ac09c86758d8ab34538c"
"""SHA-256 of the split: it must not change, or the accuracy is told of images that were trained on."""


@pytest.fixture(scope="module")
def digits():
    pytest.importorskip("sklearn", reason="the images come from scikit-learn: pip install 'bitloom-fpga[cli]'")
    return load_digits()


def accuracy(scores: np.ndarray, labels: np.ndarray) -> float:
    return float((scores.reshape(len(labels), -1).argmax(axis=1) == labels).mean())


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


def test_shipped_network_is_as_stated():
    model = networks.load("digits-cnn")
    assert model.network == digits_cnn()
    assert model_digest(model) == DIGEST


def test_shipped_network_is_right_on_97_percent_of_the_test_images(digits):
    model = networks.load("digits-cnn")
    scores = model.forward(digits.test_images)
    assert accuracy(scores, digits.test_labels) >= 0.97
    np.testing.assert_array_equal(packed.forward(model, digits.test_images), scores)


def test_real_valued_network_equals_the_integer_network_on_every_test_image(digits):
    trained = fit(digits_cnn(), digits.train_images[:640], digits.train_labels[:640], Recipe(epochs=2))
    real = trained.forward(digits.test_images)
    np.testing.assert_array_equal(real, trained.model().forward(digits.test_images))
    assert accuracy(real, digits.test_labels) > 0.5


def test_multiplications_of_an_image():
    layers = digits_cnn().chain("a test")
    sums = [layer.fan_in(source) * layer.output(source).size for layer, source in layers if hasattr(layer, "fan_in")]
    assert sum(sums) == 346_752


def test_unknown_network():
    with value_error(f"network: must be one of {', '.join(networks.names())}, {OR_A_FILE}, got 'digits'"):
        networks.load("digits")


@pytest.mark.slow
def test_training_again_gives_the_shipped_file_byte_for_byte(digits, tmp_path):
    seen: list[Epoch] = []
    save(train_digits(progress=seen.append), tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (networks.FOLDER / "digits-cnn.npz").read_bytes()
    assert [e.number for e in seen] == list(range(1, seen[-1].epochs + 1))
