"""Stages of chains of golden layers, for tests that schedule what golden computes."""

from bitloom.golden.encoding import signed
from bitloom.golden.layer import Map
from bitloom.golden.layers.conv import Conv, Weighted
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import AvgPool, MaxPool
from bitloom.golden.network import Network
from bitloom.hls_gen.compiler.schedule import Stage
from bitloom.hls_gen.compiler.taps import Taps


def network(height: int, width: int, *layers) -> Network:
    return Network(name="case", input=Map(height=height, width=width, channels=3, encoding=signed(5)), layers=layers)


B20 = network(
    32,
    32,
    Conv(name="conv_1", out_channels=32, kernel=(5, 5), padding=(2, 2, 2, 2)),
    MaxPool(name="pool_1", kernel=(3, 3), stride=(2, 2), padding=(0, 0, 1, 1)),
    Conv(name="conv_2", out_channels=32, kernel=(5, 5), padding=(2, 2, 2, 2)),
    AvgPool(name="pool_2", kernel=(3, 3), stride=(2, 2), padding=(0, 0, 1, 1)),
    Conv(name="conv_3", out_channels=64, kernel=(5, 5), padding=(2, 2, 2, 2)),
    AvgPool(name="pool_3", kernel=(3, 3), stride=(2, 2), padding=(0, 0, 1, 1)),
    Dense(name="fc_1", out_channels=64),
    Dense(name="fc_2", out_channels=10),
)


def stages_of(chain: Network) -> list[Stage]:
    """The stages of a chain of convolutions, dense layers and pools."""
    return [
        Stage(
            name=layer.name,
            weighted=isinstance(layer, Weighted),
            height=source.height,
            width=source.width,
            window=Taps(layer.window(source) if isinstance(layer, Weighted) else layer.window),
        )
        for layer, source in chain.chain("a test")
    ]
