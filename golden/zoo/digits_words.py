"""digits-words: digits-cnn with the OR of each word and the sum over words in its hidden binary layers (spec A2, A12).

A word of two products says less than both, but a window of many words says a lot: where OR over whole windows leaves
nothing (golden/zoo/digits_or.py), OR within words costs little accuracy; tests/golden/zoo measure it.
"""

from dataclasses import replace

from bitloom.golden.layers.conv import Conv
from bitloom.golden.network import Network
from bitloom.golden.training.train import Recipe

from .digits import digits_cnn

WORD_CHANNELS = 2
"""Channels of a word. Trained on 1,150 of the training images, right of the others, which chose this number:

    words of    epochs    right
    2           15        96.9 %
    4           40        93.4 %
    8           15        75.3 %    thresholds before the pool
"""
RECIPE = Recipe(epochs=20)
"""How the shipped network is trained: some minutes of one core. It is right on 96.7 % of the test images."""


def digits_words() -> Network:
    """The network digits-words. The pool comes before the threshold, so that a threshold may have either direction."""
    layers = {layer.name: layer for layer in digits_cnn().layers}
    for name in ("conv_2", "conv_3"):
        layer = layers[name]
        assert isinstance(layer, Conv)
        layers[name] = replace(layer, accumulate="or_words", word_channels=WORD_CHANNELS)
    order = ("conv_1", "threshold_1", "conv_2", "pool_2", "threshold_2", "conv_3", "threshold_3", "dense_4")
    return replace(digits_cnn(), name="digits-words", layers=tuple(layers[name] for name in order))
