"""Small networks that classify, for tests of evaluation."""

import numpy as np

from bitloom.golden.encoding import BIPOLAR, Encoding, unsigned
from bitloom.golden.layer import Map
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network

GREY = unsigned(5)


def network(
    shape=(2, 3, 1), encoding: Encoding = GREY, classes: tuple[str, ...] = (), outputs=3, bits=False
) -> Network:
    """One dense layer, with a threshold behind it where outputs are ``bits``."""
    source = Map(height=shape[0], width=shape[1], channels=shape[2], encoding=encoding)
    layers = (Dense(name="dense", out_channels=outputs), *((Threshold(name="bits"),) if bits else ()))
    return Network(name="tiny", input=source, layers=layers, classes=classes)


def corners(bits: bool = False) -> Model:
    """Three outputs of 2 x 2 bipolar bits, each the sum of products with another pattern; as ``bits`` >= 2."""
    net = network((2, 2, 1), BIPOLAR, outputs=3, bits=bits)
    weight = np.array([[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, 1, -1]]).reshape(3, 2, 2, 1)
    limit = {"threshold": np.full((3, 1), 2), "direction": np.ones(3, np.int8)}
    return Model(net, {"dense": {"weight": weight}, **({"bits": limit} if bits else {})})
