"""Random networks of integer layers with concatenations, among residual blocks."""

from collections.abc import Sequence
from dataclasses import replace

from bitloom.golden.layer import Map
from bitloom.golden.layers.concat import Concat
from bitloom.golden.layers.pool import AvgPool, MaxPool
from bitloom.golden.layers.requantise import ROUNDINGS
from bitloom.golden.network import Network
from bitloom.golden.window import Window

from .pick import Pick
from .random_networks import dilated, encodings, pools
from .residual_networks import BLOCKS, MOST_CHANNELS, MOST_SIDE, BlockMaker

JOINS = ("fire", "dense_step", "dense_steps", "aggregate")
"""What a block concatenates: two convolutions of its map; its map and a convolution of it, once or twice; three
convolutions, each of the one before."""
MOST_OF_A_WAY = 10
"""Channels of a map that is concatenated, at most."""


class _JoinMaker(BlockMaker):
    """A network in the making."""

    def window(self, at: Map) -> Window:
        """The window of a convolution that may make a map of any size, perhaps a dilated one."""
        return dilated(self.pick, at, super().window(at))

    def beside(self, at: Map, reads: str, size: Map | None = None) -> tuple[Map, str]:
        """A convolution of few channels; ``size``: its map has that height and width."""
        channels = self.pick.integer(1, MOST_OF_A_WAY)
        return self.conv(at, reads, replace(size or at, channels=channels))

    def concat(self, *maps: tuple[Map, str]) -> tuple[Map, str]:
        """The concatenation of maps, in any order."""
        turn = self.pick.integer(0, len(maps) - 1)
        ways = (*maps[turn:], *maps[:turn])
        name = f"concat_{len(self.layers)}"
        self.layers.append(Concat(name=name, inputs=tuple(name for _, name in ways)))
        return self.layers[-1].output_of([made for made, _ in ways]), name

    def join(self, at: Map, reads: str, kind: str) -> tuple[Map, str]:
        """A block of this kind of JOINS, and perhaps a pool behind it."""
        if kind == "fire":
            first = self.conv(at, reads)
            made, here = self.concat(first, self.beside(at, reads, first[0]))
        elif kind == "aggregate":
            first = self.beside(at, reads)
            second = self.beside(*first)
            made, here = self.concat(first, second, self.beside(*second))
        else:
            made, here = at, reads
            for _ in range(2 if kind == "dense_steps" else 1):
                made, here = self.concat((made, here), self.beside(made, here))
        number = len(self.layers)
        if self.pick.integer(0, 2) == 0:
            self.layers.append(pools(self.pick, made, f"pool_{number}", (MaxPool, AvgPool)))
            made, here = self.layers[-1].output_of([made]), f"pool_{number}"
        return made, here


def joined_network(
    pick: Pick, feature_bits: int = 8, weight_bits: int = 8, roundings: Sequence[str] = ROUNDINGS, most: int = 3
) -> Network:
    """A convolution, 1 to ``most`` blocks, of which the first one ends with a concatenation, and at the end perhaps a
    dense layer, which may be raw.

    Parameters
    ----------
    pick
        Makes the choices.
    feature_bits, weight_bits
        Of the integer engine, >= 3.
    roundings
        How requantisations round, of golden.layers.requantise.ROUNDINGS.
    most
        Blocks at most.
    """
    maker = _JoinMaker(pick, feature_bits, weight_bits, roundings)
    height, width = pick.integer(1, MOST_SIDE), pick.integer(1, MOST_SIDE)
    channels, encoding = pick.integer(1, MOST_CHANNELS), encodings(pick, feature_bits)
    source = Map(height=height, width=width, channels=channels, encoding=encoding)
    at, here = maker.join(*maker.beside(source, "@input"), pick.of(JOINS))
    for _ in range(pick.integer(0, most - 1)):
        kind = pick.of((*JOINS, *BLOCKS))
        at, here = maker.join(at, here, kind) if kind in JOINS else maker.block(at, here, kind)
    return maker.network("joined", source, here)
