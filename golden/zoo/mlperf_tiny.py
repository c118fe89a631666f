"""The five networks of MLPerf Tiny, 8-bit integers: their topologies with seeded weights, the same on every machine.

| name | network | input | task |
|---|---|---|---|
| ic | ResNet-8 | 32 x 32 x 3 | classes of pictures |
| kws | DS-CNN | 49 x 10 x 1 | keywords in speech |
| vww | MobileNet v1, width 0.25 | 96 x 96 x 3 | a person in the picture or none |
| ad | autoencoder | 640 | machines that sound odd |
| sww | DS-CNN in one dimension | 30 x 1 x 40 | a wakeword in a stream of speech |

Layers, sizes and paddings are those of the benchmark's reference models (mlcommons/tiny), whose trained weights are
TFLite files that `bitloom import` reads.
"""

from collections.abc import Sequence

import numpy as np

from bitloom.golden.encoding import Array, Encoding, signed, unsigned
from bitloom.golden.graph import INPUT, walk
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.conv import Conv, Weighted
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.grouped import as_depthwise
from bitloom.golden.layers.pool import AvgPool
from bitloom.golden.layers.requantise import MULTIPLIER_BITS, Requantise
from bitloom.golden.layers.rounding import FIRST_SHIFT
from bitloom.golden.network import Model, Network
from bitloom.golden.window import Pair, Sides

from .calibrated import output_of, random_bytes, scaled

INT8, INT9 = signed(8), signed(9)
UINT8 = unsigned(8)
SAME: Sides = (1, 1, 1, 1)
HALVED: Sides = (0, 0, 1, 1)
"""Paddings of 3 x 3 windows on maps of even sides, at strides 1 and 2."""
KEY = 7
"""First part of the keys of random streams; the second is 0 for images, else the number of the layer and 1."""
CALIBRATION_POSITIONS = 32
"""Positions of the smallest map of a convolution, or of the input, in all calibration images together; there are at
least two images."""
TYPICAL = {INT8: 28, INT9: 28, UINT8: 56}
"""Mean distance of results from their mean, by encoding; for a bell curve few are 3.6 standard units away."""
MOBILENET = [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5, (256, 2), (256, 1)]
"""Channels and stride of MobileNet's pairs of a depthwise convolution and one of 1 x 1."""
HIDDEN = (128, 128, 128, 128, 8, 128, 128, 128, 128)
"""Neurons of the autoencoder's layers but for the last."""
WAKEWORD = [(3, 128), (5, 128), (10, 128), (15, 32)]
"""Rows of a depthwise kernel and channels behind it, of the pairs of the wakeword's network."""
ADDED = {"multiplier": np.array([700_001, 400_003]), "bias": np.array([5]), "shift": np.array([20])}
"""Arrays of every addition: odd shares of both maps."""


def _weighted(layer: Weighted, encoding: Encoding = UINT8, **more: object) -> list[Layer]:
    """A convolution or dense layer and what makes features of its sums; with an unsigned encoding that is a ReLU."""
    number = layer.name.rpartition("_")[2]
    return [layer, Requantise(name=f"requantise_{number}", encoding=encoding, **more)]  # type: ignore[arg-type]


def _conv(
    n: int, channels: int, kernel: Pair, stride: Pair = (1, 1), padding: Sides = (0, 0, 0, 0), **more: object
) -> Conv:
    """A convolution with 8-bit weights, number ``n``."""
    sizes = {"out_channels": channels, "kernel": kernel, "stride": stride, "padding": padding}
    return Conv(name=f"conv_{n}", weight=INT8, **sizes, **more)  # type: ignore[arg-type]


def _network(name: str, source: Map, layers: Sequence[Layer]) -> Network:
    """The network that the benchmark calls ``name``."""
    return Network(name=f"mlperf-tiny-{name}", input=source, layers=tuple(layers))


def ic() -> Network:
    """ResNet-8: three stages of two convolutions and a shortcut; 11,574,592 multiplications on valid taps."""
    layers = _weighted(_conv(1, 16, (3, 3), (1, 1), SAME))
    layers += _weighted(_conv(2, 16, (3, 3), (1, 1), SAME))
    layers += _weighted(_conv(3, 16, (3, 3), (1, 1), SAME), INT9, rounding="twice")
    layers += [Add(name="add_4", inputs=("requantise_1", "requantise_3"), encoding=UINT8)]
    n = 5
    before = "add_4"
    for channels in (32, 64):
        layers += _weighted(_conv(n, channels, (3, 3), (2, 2), HALVED))
        layers += _weighted(_conv(n + 1, channels, (3, 3), (1, 1), SAME), INT9, rounding="twice")
        layers += _weighted(_conv(n + 2, channels, (1, 1), (2, 2), inputs=(before,)), INT9, rounding="twice")
        both = f"requantise_{n + 2}", f"requantise_{n + 1}"
        before = f"add_{n + 3}"
        layers += [Add(name=before, inputs=both, encoding=UINT8)]
        n += 4
    layers += [AvgPool(name="pool_12", kernel=(8, 8), stride=(8, 8))]
    layers += _weighted(Dense(name="dense_13", out_channels=10, weight=INT8), INT8)
    return _network("ic", Map(height=32, width=32, channels=3, encoding=UINT8), layers)


def _separable(n: int, inner: int, channels: int, stride: int) -> list[Layer]:
    """A depthwise convolution of 3 x 3, number ``n``, on ``inner`` channels, and one of 1 x 1 to ``channels``."""
    padding = SAME if stride == 1 else HALVED
    layers = _weighted(as_depthwise(_conv(n, inner, (3, 3), (stride, stride), padding)))
    return layers + _weighted(_conv(n + 1, channels, (1, 1)))


def kws() -> Network:
    """DS-CNN: 2,319,488 multiplications on valid taps, and 242,944 of depthwise convolutions."""
    layers = _weighted(_conv(1, 64, (10, 4), (2, 2), (4, 1, 5, 1)))
    for n in (2, 4, 6, 8):
        layers += _separable(n, 64, 64, 1)
    layers += [AvgPool(name="pool_9", kernel=(25, 5), stride=(25, 5))]
    layers += _weighted(Dense(name="dense_10", out_channels=12, weight=INT8), INT8)
    return _network("kws", Map(height=49, width=10, channels=1, encoding=INT8), layers)


def vww() -> Network:
    """MobileNet: 6,684,440 multiplications on valid taps, and 715,024 of depthwise convolutions."""
    layers = _weighted(_conv(1, 8, (3, 3), (2, 2), HALVED))
    n = 2
    inner = 8
    for channels, stride in MOBILENET:
        layers += _separable(n, inner, channels, stride)
        n = n + 2
        inner = channels
    layers += [AvgPool(name=f"pool_{n - 1}", kernel=(3, 3), stride=(3, 3))]
    layers += _weighted(Dense(name=f"dense_{n}", out_channels=2, weight=INT8), INT8)
    return _network("vww", Map(height=96, width=96, channels=3, encoding=UINT8), layers)


def ad() -> Network:
    """The autoencoder: 264,192 multiplications."""
    layers: list[Layer] = []
    for n, neurons in enumerate(HIDDEN, 1):
        layers += _weighted(Dense(name=f"dense_{n}", out_channels=neurons, weight=INT8))
    layers += _weighted(Dense(name="dense_10", out_channels=640, weight=INT8), INT8)
    return _network("ad", Map(height=1, width=1, channels=640, encoding=INT8), layers)


def sww() -> Network:
    """The wakeword's network: 786,528 multiplications, and 39,840 of depthwise convolutions whose sums have no ReLU."""
    layers: list[Layer] = []
    inner = 40
    for n, (rows, channels) in enumerate(WAKEWORD):
        layers += _weighted(as_depthwise(_conv(2 * n + 1, inner, (rows, 1))), INT9, rounding="twice")
        layers += _weighted(_conv(2 * n + 2, channels, (1, 1)))
        inner = channels
    layers += _weighted(Dense(name="dense_9", out_channels=3, weight=INT8), INT8)
    return _network("sww", Map(height=30, width=1, channels=40, encoding=INT8), layers)


NETWORKS = {"ic": ic, "kws": kws, "vww": vww, "ad": ad, "sww": sww}
"""The five, by the benchmark's names."""
FILES = {
    "ic": "mlperf_tiny/pretrainedResnet_quant.tflite",
    "kws": "mlperf_tiny/kws_ref_model.tflite",
    "vww": "mlperf_tiny/vww_96_int8.tflite",
    "ad": "mlperf_tiny/ad01_int8.tflite",
    "sww": "tflite_real/str_ww_ref_model.tflite",
}
"""The benchmark's trained models, in the data folder where they are there."""


def seeded(network: Network) -> Model:
    """A network with seeded weights, biases and scales.

    Parameters
    ----------
    network : Network
        One of NETWORKS.

    Returns
    -------
    Model
        The same on every machine.
    """
    arrays: dict[str, dict[str, Array]] = {}
    numbers = {layer.name: n for n, layer in enumerate(network.layers, 1)}

    def compute(name: str, inputs: Sequence[Array]) -> Array:
        layer = next(layer for layer in network.layers if layer.name == name)
        sources = network.sources(layer)
        if isinstance(layer, Weighted):
            arrays[name] = {"weight": random_bytes(layer.array_shapes(sources[0])["weight"], KEY, numbers[name])}
        elif isinstance(layer, Requantise):
            how = (MULTIPLIER_BITS, FIRST_SHIFT) if layer.rounding == "twice" else ()
            arrays[name] = scaled(inputs[0], TYPICAL[layer.encoding], *how)
        elif isinstance(layer, Add):
            arrays[name] = ADDED
            return layer.forward_of(inputs, ADDED, sources)
        return output_of(layer, sources[0], arrays.get(name, {}), inputs[0])

    convolved = [network.maps[layer.name] for layer in network.layers if isinstance(layer, Conv)]
    count = max(2, CALIBRATION_POSITIONS // min(each.positions for each in [network.input, *convolved]))
    drawn = random_bytes((count, *network.input.shape), KEY, 0)
    images = drawn if network.input.encoding == INT8 else drawn.view(np.uint8)
    for _ in walk(network.reads, {INPUT: images}, compute):
        pass
    return Model(network, arrays)
