"""Random networks of integer layers with depthwise convolutions, behind layers that they can join, and elsewhere."""

from bitloom.golden.layer import Layer
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.grouped import DepthwiseConv
from bitloom.golden.layers.pool import AvgPool, MaxPool
from bitloom.golden.network import Network

from .pick import Pick
from .random_networks import IntegerChoices, activation, dilated, encodings, map_behind, maps, pools, windows

MOST_SIDE, MOST_CHANNELS = 8, 20
"""Rows, columns and channels of a map at most: keeps simulation quick."""


def depthwise_network(pick: Pick, choices: IntegerChoices, channels: int = MOST_CHANNELS) -> Network:
    """2 to 5 layers, each a plain or a depthwise convolution with its requantisation and perhaps a pool, and at the end
    perhaps a dense layer, which may be raw.

    Parameters
    ----------
    pick
        Makes the choices.
    choices
        Of the integer engine.
    channels
        Of the input at most.
    """
    source = maps(pick, encodings(pick, choices.feature_bits), MOST_SIDE, channels)
    at = source
    layers = list[Layer]()
    for i in range(pick.integer(2, 5)):
        kind = pick.of([Conv, DepthwiseConv, DepthwiseConv])
        window = dilated(pick, at, windows(pick, at, 4))
        layer = kind(
            name=f"conv_{i}",
            out_channels=at.channels if kind is DepthwiseConv else pick.integer(1, MOST_CHANNELS),
            kernel=window.kernel,
            stride=window.stride,
            padding=window.padding,
            dilation=window.dilation,
            weight=encodings(pick, choices.weight_bits),
        )
        act = activation(pick, f"act_{i}", choices)
        layers += [layer, *act]
        at = map_behind(act, layer.output(at))
        if pick.integer(0, 3) == 0:
            layers.append(pools(pick, at, f"pool_{i}", (MaxPool, AvgPool)))
            at = layers[-1].output_of([at])
    if pick.flip():
        layers.append(
            Dense(name="dense_end", out_channels=pick.integer(1, 5), weight=encodings(pick, choices.weight_bits))
        )
        if pick.flip():
            layers += activation(pick, "act_end", choices)
    return Network(name="depthwise", input=source, layers=tuple(layers))
