"""A binary network with 8-bit ends: the first layer, which reads the image, and the last one, which gives the scores,
have 8-bit weights; all between is binary. Random weights, the same on every machine.

Weights are the highest byte of each of `golden.training.reproducible.random_words`, all 256 values equally likely but
for -128, which counts as -127; a binary weight is its sign. Thresholds come from calibration images
(golden/zoo/calibrated.py).
"""

import numpy as np

from bitloom.golden.encoding import BIPOLAR, Array, signed
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.conv import Conv, Weighted
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network

from .calibrated import output_of, random_bytes, thresholds

KEY = 5
"""First part of the keys of random streams; the second is 0 for images, else the number of the layer and 1."""
CALIBRATION_IMAGES = 16


def bnn_int8_ends() -> Network:
    """The network: it reads images of 32 x 32 x 3, signed 8 bit, and gives 10 signed sums.

    conv_3 pads a binary map with zeros.
    """
    layers: tuple[Layer, ...] = (
        Conv(name="conv_1", out_channels=32, kernel=(3, 3), weight=signed(8)),  # 30 x 30
        Threshold(name="threshold_1"),
        Conv(name="conv_2", out_channels=32, kernel=(3, 3)),  # 28 x 28
        Threshold(name="threshold_2"),
        MaxPool(name="pool_2", kernel=(2, 2), stride=(2, 2)),  # 14 x 14
        Conv(name="conv_3", out_channels=64, kernel=(3, 3), padding=(1, 1, 1, 1)),  # 14 x 14
        Threshold(name="threshold_3"),
        MaxPool(name="pool_3", kernel=(2, 2), stride=(2, 2)),  # 7 x 7
        Conv(name="conv_4", out_channels=64, kernel=(3, 3)),  # 5 x 5
        Threshold(name="threshold_4", levels=2),
        Dense(name="dense_5", out_channels=128),
        Threshold(name="threshold_5"),
        Dense(name="dense_6", out_channels=10, weight=signed(8)),
    )
    return Network(name="bnn-int8-ends", input=Map(height=32, width=32, channels=3, encoding=signed(8)), layers=layers)


def seeded() -> Model:
    """The network with its weights and thresholds, as a `Model`; takes about half a second."""
    network = bnn_int8_ends()
    arrays: dict[str, dict[str, Array]] = {}
    x = random_bytes((CALIBRATION_IMAGES, *network.input.shape), KEY, 0)
    for index, (layer, source) in enumerate(network.chain("calibration")):
        if isinstance(layer, Weighted):
            drawn = np.maximum(random_bytes(layer.array_shapes(source)["weight"], KEY, index + 1), -127)
            arrays[layer.name] = {"weight": np.where(drawn < 0, -1, 1) if layer.weight == BIPOLAR else drawn}
        elif isinstance(layer, Threshold):
            arrays[layer.name] = thresholds(network, layer, source, x)
        x = output_of(layer, source, arrays.get(layer.name, {}), x)
    return Model(network, arrays)
