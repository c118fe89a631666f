"""The reference network of spec B20 with 8-bit integers: random weights, the same on every machine.

Input: 32 x 32 x 3, signed 8 bit: a pixel of 0 .. 255 less 128. Signed, because then one signed 8 x 8 bit multiplier
serves every layer; unsigned pixels would need 9 bits. After ReLU features are 0 .. 127, of signed 8 bit, too.

Weights, biases and scales: golden/zoo/calibrated.py.
"""

from bitloom.golden.encoding import Array, signed
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.conv import Conv, Weighted
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import AvgPool, MaxPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.network import Model, Network

from .calibrated import output_of, random_bytes, scaled

INT8 = signed(8)
CUT = (0, 0, 1, 1)
"""Pool windows stick out over the right and bottom edge."""
IMAGES, WEIGHTS = 1, 2
"""First part of the keys of random streams; the second is a seed or the number of the layer."""
CALIBRATION_IMAGES = 32
TYPICAL = 28
"""Distance from the mean after scaling; for a bell curve that is 35 standard units, and 127 is 3.6 of them away."""


def cifar_quick() -> Network:
    """The network of B20. There conv 1 is what is conv_1 here, its ReLU is requantise_1, and fc 1 is fc_1."""
    layers: list[Layer] = []
    for number, (channels, pool) in enumerate(((32, MaxPool), (32, AvgPool), (64, AvgPool)), 1):
        layers += [
            Conv(name=f"conv_{number}", out_channels=channels, kernel=(5, 5), padding=(2, 2, 2, 2), weight=INT8),
            Requantise(name=f"requantise_{number}", encoding=INT8, relu=True),
            pool(name=f"pool_{number}", kernel=(3, 3), stride=(2, 2), padding=CUT),
        ]
    layers += [
        Dense(name="fc_1", out_channels=64, weight=INT8),
        Requantise(name="requantise_4", encoding=INT8, relu=True),
        Dense(name="fc_2", out_channels=10, weight=INT8),
    ]
    source = Map(height=32, width=32, channels=3, encoding=INT8)
    return Network(name="cifar-quick-int8", input=source, layers=tuple(layers))


def random_images(count: int, seed: int) -> Array:
    """Random images, (count, 32, 32, 3) int8, all values equally likely. The calibration's are those of seed 0."""
    return random_bytes((count, 32, 32, 3), IMAGES, seed)


def cifar_quick_int8() -> Model:
    """The network with its weights, biases and scales, as a `Model`; takes about 0.7 s of one core."""
    network = cifar_quick()
    arrays: dict[str, dict[str, Array]] = {}
    x = random_images(CALIBRATION_IMAGES, 0)
    for index, (layer, source) in enumerate(network.chain("calibration")):
        if isinstance(layer, Weighted):
            shape = layer.array_shapes(source)["weight"]
            arrays[layer.name] = {"weight": random_bytes(shape, WEIGHTS, index)}
        elif isinstance(layer, Requantise):
            arrays[layer.name] = scaled(x, TYPICAL)
        x = output_of(layer, source, arrays.get(layer.name, {}), x)
    return Model(network, arrays)
