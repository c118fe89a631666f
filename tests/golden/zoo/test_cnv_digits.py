"""CNV on digits: pixels, and what it learns."""

import numpy as np
import pytest

from bitloom.golden.kernels import packed
from bitloom.golden.zoo import bnn_pynq, digits
from bitloom.golden.zoo.cnv_digits import cnv_digits, digit_pixels


def test_a_grey_value_becomes_a_square_of_one_colour():
    images = np.random.default_rng(0).integers(0, 17, (2, 8, 8, 1))
    images[0, 0, :2, 0] = 0, 16
    pixels = digit_pixels(images)
    assert (pixels.shape, pixels.dtype) == ((2, 32, 32, 3), np.uint8)
    assert pixels[0, 0, 3].tolist() == [0, 0, 0]
    assert pixels[0, 3, 4].tolist() == [255, 255, 255]
    squares = pixels.reshape(2, 8, 4, 8, 4, 3)
    assert (squares == squares[:, :, :1, :, :1, :1]).all()
    np.testing.assert_array_equal(squares[:, :, 0, :, 0, 0], images[..., 0] * 255 // 16)


@pytest.mark.slow
def test_it_learns_digits():
    data = digits.load_digits()
    model = cnv_digits(data.train_images, data.train_labels)
    assert model.network.layers == bnn_pynq.cnv().layers
    assert model.network.classes == tuple("0123456789")
    outputs = packed.forward(model, bnn_pynq.cnv_images(digit_pixels(data.test_images)))
    right = (outputs.reshape(len(outputs), -1).argmax(axis=1) == data.test_labels).sum()
    assert right == 240  # of 360; the same on every machine
