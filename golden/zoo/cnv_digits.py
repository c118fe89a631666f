"""CNV W1A1 for handwritten digits, for demonstrations without the weights for CIFAR-10.

An image of 8 x 8 grey values becomes one of 32 x 32 x 3 pixels: each value a square of 4 x 4, the same in all colours.
The convolutions have the seeded weights of `golden.zoo.bnn_pynq`, with thresholds that suit digits: features that were
never trained. The three dense layers learn from these features.
"""

from dataclasses import replace

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.kernels import packed
from bitloom.golden.network import Model, Network
from bitloom.golden.training.train import Recipe, train

from . import bnn_pynq

TRAINED = "dense_6"
"""The first layer that learns."""
CALIBRATION = 64
"""Images from which thresholds come."""
EPOCHS = 6
"""Epochs of the layers that learn."""


def digit_pixels(images: Array) -> Array:
    """Turn (N, 8, 8, 1) grey values of 0 .. 16 into (N, 32, 32, 3) uint8 pixels, 0 .. 255."""
    grey = (images.astype(np.int64) * 255 // 16).repeat(4, axis=1).repeat(4, axis=2)
    pixels: Array = grey.repeat(3, axis=3).astype(np.uint8)
    return pixels


def cnv_digits(images: Array, labels: Array) -> Model:
    """Train CNV's dense layers on digits; with the 1,437 of `golden.zoo.digits` that takes some seconds.

    Parameters
    ----------
    images : (N, 8, 8, 1) integers
        Grey values, 0 .. 16.
    labels : (N,) integers
        0 .. 9.

    Returns
    -------
    Model
        Of the network ``cnv-digits``, whose layers are those of ``cnv-w1a1``. Of the 360 test images it classifies
        240 right: most of its weights were never trained.
    """
    inputs = bnn_pynq.cnv_images(digit_pixels(images))
    model = bnn_pynq.seeded(bnn_pynq.cnv(), inputs[:CALIBRATION])
    layers = model.network.layers
    cut = [layer.name for layer in layers].index(TRAINED)
    front = Network(name="front", input=model.network.input, layers=layers[:cut])
    arrays = {layer.name: model.arrays[layer.name] for layer in front.layers if layer.name in model.arrays}
    features = packed.forward(Model(front, arrays), inputs)
    back = Network(name="back", input=front.output, layers=layers[cut:], classes=bnn_pynq.DIGITS)
    learned = train(back, features, labels.astype(np.int64), Recipe(epochs=EPOCHS))
    network = replace(model.network, name="cnv-digits", classes=bnn_pynq.DIGITS)
    return Model(network, {**arrays, **learned.arrays})
