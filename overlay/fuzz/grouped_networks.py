"""Random networks with grouped convolutions, of either engine: groups that fill words, and such that share them."""

from bitloom.golden.encoding import BIPOLAR, TERNARY
from bitloom.golden.layer import Layer
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.grouped import GroupedConv
from bitloom.golden.layers.pool import AvgPool, MaxPool
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Network

from .pick import Pick
from .random_networks import IntegerChoices, activation, dilated, encodings, map_behind, maps, pools, windows

MOST_SIDE, MOST_CHANNELS = 7, 24
"""Rows, columns and channels of a map at most: keeps simulation quick."""


def grouped_network(pick: Pick, choices: IntegerChoices | None = None) -> Network:
    """1 to 4 convolutions, most of them grouped, each with its activation and perhaps a pool; the last may be raw.

    Parameters
    ----------
    pick
        Makes the choices.
    choices
        Of the integer engine; None: the network is one of bits.
    """
    encoding = encodings(pick, choices.feature_bits) if choices else BIPOLAR
    at = source = maps(pick, encoding, MOST_SIDE, MOST_CHANNELS)
    layers = list[Layer]()
    count = pick.integer(1, 4)
    for i in range(count):
        window = dilated(pick, at, windows(pick, at, 3))
        groups = pick.of([n for n in range(1, at.channels + 1) if at.channels % n == 0])
        kernels = groups * pick.integer(1, max(1, MOST_CHANNELS // groups))
        weight = encodings(pick, choices.weight_bits) if choices else pick.of([BIPOLAR, TERNARY])
        shape = {
            "kernel": window.kernel,
            "stride": window.stride,
            "padding": window.padding,
            "dilation": window.dilation,
            "weight": weight,
            "out_channels": kernels,
        }
        name = f"conv_{i}"
        layers.append(GroupedConv(name=name, groups=groups, **shape) if groups > 1 else Conv(name=name, **shape))
        out = layers[-1].output_of([at])
        if i == count - 1 and choices and pick.flip():
            break
        act = activation(pick, f"act_{i}", choices) if choices else [Threshold(name=f"act_{i}")]
        layers += act
        at = map_behind(act, out)
        if pick.integer(0, 3) == 0:
            layers.append(pools(pick, at, f"pool_{i}", (MaxPool, AvgPool) if choices else (MaxPool,)))
            at = layers[-1].output_of([at])
    return Network(name="grouped", input=source, layers=tuple(layers))
