"""digits-residual: a binary residual network for digits, as Bi-Real nets are (docs/decisions/0022).

Two groups of three convolutions, of 16 kernels on 8 x 8 positions and of 32 on 4 x 4. The first of a group gives
integers of 6 bits; the others add what they make of their signs to them, in 8 bits. Between the groups is a max pool of
signs.
"""

from dataclasses import replace

from bitloom.golden.network import Network
from bitloom.golden.training.architecture import network_of
from bitloom.golden.training.train import Recipe

from .digits import CLASSES, IMAGE

LAYERS = "conv16,res,res,pool,conv32,res,res,dense10"
"""The words of the network (golden/training/architecture.py)."""
RECIPE = Recipe(epochs=40)
"""How the shipped network is trained: some minutes of one core. Chosen on 1,150 of the training images: right are
99.3 % of the others, and 98.3 % by `conv16,conv16,conv16,pool,conv32,conv32,conv32,dense10`, without shortcuts."""


def digits_residual() -> Network:
    """The network digits-residual."""
    return replace(network_of("digits-residual", IMAGE, LAYERS), classes=CLASSES)
