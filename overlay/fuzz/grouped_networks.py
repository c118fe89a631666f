"""Random networks with grouped convolutions, of either engine: groups that fill words, and such that share them."""

from collections.abc import Sequence

from bitloom.golden.encoding import BIPOLAR, TERNARY
from bitloom.golden.layer import Layer
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.grouped import GroupedConv
from bitloom.golden.layers.pool import AvgPool, MaxPool
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Network

from .pick import Pick
from .random_networks import ONCE, dilated, encodings, maps, pools, requantisation, windows

MOST_SIDE, MOST_CHANNELS = 7, 24
"""Rows, columns and channels of a map at most: keeps simulation quick."""


def grouped_network(
    pick: Pick, feature_bits: int = 0, weight_bits: int = 0, fraction: int = 0, roundings: Sequence[str] = ONCE
) -> Network:
    """1 to 4 convolutions, most of them grouped, each with its activation and perhaps a pool; the last may be raw.

    Parameters
    ----------
    pick
        Makes the choices.
    feature_bits, weight_bits
        Of the integer engine, >= 3; 0: the network is one of bits.
    fraction, roundings
        As of `requantisation`.
    """
    binary = not feature_bits
    at = source = maps(pick, BIPOLAR if binary else encodings(pick, feature_bits), MOST_SIDE, MOST_CHANNELS)
    layers = list[Layer]()
    count = pick.integer(1, 4)
    for i in range(count):
        window = dilated(pick, at, windows(pick, at, 3))
        groups = pick.of([n for n in range(1, at.channels + 1) if at.channels % n == 0])
        kernels = groups * pick.integer(1, max(1, MOST_CHANNELS // groups))
        weight = pick.of([BIPOLAR, TERNARY]) if binary else encodings(pick, weight_bits)
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
        if i == count - 1 and not binary and pick.flip():
            break
        act = f"act_{i}"
        layers.append(Threshold(name=act) if binary else requantisation(pick, act, feature_bits, fraction, roundings))
        at = layers[-1].output_of([out])
        if pick.integer(0, 3) == 0:
            layers.append(pools(pick, at, f"pool_{i}", (MaxPool,) if binary else (MaxPool, AvgPool)))
            at = layers[-1].output_of([at])
    return Network(name="grouped", input=source, layers=tuple(layers))
