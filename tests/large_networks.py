"""Networks for pictures of 224 x 224 pixels, with seeded weights of 8 bits."""

from bitloom.golden.layer import Map
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import AvgPool, MaxPool
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


def resnet18() -> Model:
    """ResNet-18: a convolution and a pool, four stages of two residual blocks, a dense layer."""
    layers = tiny._weighted(tiny._conv(1, 64, (7, 7), (2, 2), (3, 3, 3, 3)))
    layers.append(MaxPool(name="pool_1", kernel=(3, 3), stride=(2, 2), padding=tiny.SAME))
    before = "pool_1"
    n = 2
    for channels in (64, 128, 256, 512):
        for block in range(2):
            stride = 2 if block == 0 and channels > 64 else 1
            layers += tiny._weighted(tiny._conv(n, channels, (3, 3), (stride, stride), tiny.SAME, inputs=(before,)))
            first = layers[-1].name
            if stride == 2:
                shortcut = tiny._conv(n + 2, channels, (1, 1), (2, 2), inputs=(before,))
                layers += tiny._weighted(shortcut, tiny.INT9, rounding="twice")
                before = layers[-1].name
            second = tiny._conv(n + 1, channels, (3, 3), (1, 1), tiny.SAME, inputs=(first,))
            layers += tiny._weighted(second, tiny.INT9, rounding="twice")
            layers.append(Add(name=f"add_{n + 3}", inputs=(before, layers[-1].name), encoding=tiny.UINT8))
            before = layers[-1].name
            n += 4
    layers.append(AvgPool(name="pool_2", kernel=(7, 7), stride=(7, 7)))
    layers += tiny._weighted(Dense(name=f"dense_{n}", out_channels=CLASSES, weight=tiny.INT8), tiny.INT8)
    return tiny.seeded(tiny._network("resnet18", PICTURE, layers))
