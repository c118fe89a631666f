"""Networks for pictures of 224 x 224 pixels, with seeded weights of 8 bits."""

from bitloom.golden.layer import Map
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import AvgPool
from bitloom.golden.network import Model
from bitloom.golden.zoo import mlperf_tiny as tiny

CLASSES = 1000
PICTURE = Map(height=224, width=224, channels=3, encoding=tiny.UINT8)


def mobilenet(width: float) -> Model:
    """MobileNet v1: 13 pairs of a depthwise convolution and one of 1 x 1."""
    times = round(4 * width)  # MLPerf Tiny's is of width 0.25
    inner = 8 * times
    layers = tiny._weighted(tiny._conv(1, inner, (3, 3), (2, 2), tiny.HALVED))
    n = 2
    for channels, stride in tiny.MOBILENET:
        layers += tiny._separable(n, inner, times * channels, stride)
        n, inner = n + 2, times * channels
    layers.append(AvgPool(name=f"pool_{n - 1}", kernel=(7, 7), stride=(7, 7)))
    layers += tiny._weighted(Dense(name=f"dense_{n}", out_channels=CLASSES, weight=tiny.INT8), tiny.INT8)
    return tiny.seeded(tiny._network("mobilenet", PICTURE, layers))
