"""The reference network of spec B20: shapes, schedule figures, how alive it is, and its digest."""

import numpy as np
import pytest

from bitloom.golden.file import model_digest
from bitloom.golden.kernels import packed
from bitloom.golden.network import Model
from bitloom.golden.zoo.cifar_quick import cifar_quick_int8, random_images

DIGEST = "43740651362534ca6db692376123b27118ce3c44108a277e4260985db79b24e0"
FIRST_SCORES = [18671, -1452, -21539, 13372, -21500, -25172, -10399, 13111, -12066, 1147]
"""fc_2's outputs for the first of random_images(1, 1)."""


@pytest.fixture(scope="module")
def model() -> Model:
    return cifar_quick_int8()


def test_the_model_is_the_same_everywhere(model):
    assert model_digest(model) == DIGEST
    assert model.forward(random_images(1, 1)).ravel().tolist() == FIRST_SCORES


def test_fast_equals_plain(model):
    x = random_images(2, 3)
    for a, b in zip(model.trace(x), packed.trace(model, x)):
        np.testing.assert_array_equal(a, b)


def test_it_equals_pytorch(model, torch):
    """The whole network by PyTorch in float64, where nothing is rounded but by the rules of B11 and B14."""

    def real(a: np.ndarray):
        return torch.tensor(a.astype(np.float64))

    def rounded(y):  # halves away from zero
        return torch.sign(y) * torch.floor(torch.abs(y) + 0.5)

    functional = torch.nn.functional
    images = random_images(2, 4)
    x = real(images).permute(0, 3, 1, 2)
    for layer, ours in zip(model.network.layers, model.trace(images), strict=True):
        values = model.arrays.get(layer.name, {})
        if layer.kind == "conv":
            x = functional.conv2d(x, real(values["weight"]).permute(0, 3, 1, 2), padding=2)
        elif layer.kind == "dense":
            x = functional.conv2d(x, real(values["weight"]).permute(0, 3, 1, 2))
        elif layer.kind == "max_pool":
            x = functional.max_pool2d(x, 3, 2, ceil_mode=True)
        elif layer.kind == "avg_pool":
            x = rounded(functional.avg_pool2d(x, 3, 2, ceil_mode=True, count_include_pad=False))
        else:
            bias, multiplier, shift = (real(values[what])[:, None, None] for what in ("bias", "multiplier", "shift"))
            x = torch.clamp(rounded(torch.relu(x + bias) * multiplier / 2.0**shift), max=127)
        np.testing.assert_array_equal(ours, x.permute(0, 2, 3, 1).numpy(), err_msg=layer.name)
