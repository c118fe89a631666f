"""Random networks of integer layers in blocks: residual blocks add their map to what they make of it, joining blocks
concatenate maps, in all the ways that an NPU can compute."""

from collections.abc import Sequence
from dataclasses import replace

from bitloom.golden.encoding import signed, unsigned
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.concat import Concat
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.network import Network
from bitloom.golden.window import Window
from bitloom.overlay.fuzz.pick import Pick
from bitloom.overlay.fuzz.random_networks import (
    IntegerChoices,
    activation,
    dilated,
    encodings,
    map_behind,
    pools,
    windows,
)

from .sign_blocks import to_size

BLOCKS = ("identity", "shortcut", "long_shortcut")
"""Maps that a residual block adds to its own result: its map; that of one convolution of it; that of two."""
JOINS = ("fire", "dense_step", "dense_steps", "aggregate")
"""Maps that a joining block concatenates: two convolutions of its map; its map and a convolution of it, once or twice;
three convolutions, each of the one before."""
MOST_SIDE, MOST_CHANNELS = 7, 20
"""Rows, columns and channels of a map at most: keeps simulation quick."""
MOST_OF_A_WAY = 10
"""Channels of a map that a joining block concatenates, at most."""


class BlockMaker:
    """A network in the making."""

    def __init__(self, pick: Pick, choices: IntegerChoices):
        self.pick = pick
        self.choices = choices
        self.layers: list[Layer] = []

    def window(self, at: Map) -> Window:
        """The window of a convolution that may make a map of any size."""
        return windows(self.pick, at, 3)

    def conv(self, at: Map, reads: str, shape: Map | None = None) -> tuple[Map, str]:
        """A convolution with its requantisation; ``shape``: its map has that size."""
        number = len(self.layers)
        window = self.window(at)
        channels = shape.channels if shape else self.pick.integer(1, MOST_CHANNELS)
        if shape and window.output_size(at.height, at.width) != (shape.height, shape.width):
            window = to_size(at, shape, self.pick.flip())
        fields = {"kernel": window.kernel, "stride": window.stride, "padding": window.padding}
        fields |= {"dilation": window.dilation, "weight": encodings(self.pick, self.choices.weight_bits)}
        layer = Conv(name=f"conv_{number}", out_channels=channels, inputs=(reads,), **fields)
        act = activation(self.pick, f"act_{number}", self.choices)
        self.layers += [layer, *act]
        return map_behind(act, layer.output(at)), act[-1].name

    def block(self, at: Map, reads: str, kind: str) -> tuple[Map, str]:
        """A block of this kind, and perhaps a pool behind it."""
        other = at
        from_other = reads
        size: Map | None = at
        if kind != "identity":
            other, from_other = self.conv(at, reads)
            size = other
            if kind == "long_shortcut":
                other, from_other = self.conv(other, from_other, other)
        result = at
        here = reads
        for more in range(self.pick.integer(0, 1), -1, -1):
            result, here = self.conv(result, here, at if more else size)
        number = len(self.layers)
        bits = self.choices.feature_bits
        encoding = self.pick.of([signed(bits), unsigned(bits - 1), signed(max(2, bits - 2))])
        inputs = (here, from_other) if self.pick.flip() else (from_other, here)
        self.layers.append(Add(name=f"add_{number}", encoding=encoding, inputs=inputs))
        result = replace(result, encoding=encoding)
        here = f"add_{number}"
        if self.pick.integer(0, 3) == 0:
            self.layers.append(pools(self.pick, result, f"pool_{number}", self.choices.pools))
            result = self.layers[-1].output_of([result])
            here = f"pool_{number}"
        return result, here

    def network(self, name: str, source: Map, here: str) -> Network:
        """The network of these layers, with perhaps a dense layer behind the last map, ``here``, which may be raw."""
        if self.pick.flip():
            weight = encodings(self.pick, self.choices.weight_bits)
            dense = Dense(name="dense_end", out_channels=self.pick.integer(1, 5), weight=weight, inputs=(here,))
            self.layers.append(dense)
            if self.pick.flip():
                self.layers += activation(self.pick, "act_end", self.choices)
        return Network(name=name, input=source, layers=tuple(self.layers))


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
        return self.layers[-1].output_of([way for way, _ in ways]), name

    def join(self, at: Map, reads: str, kind: str) -> tuple[Map, str]:
        """A block of this kind of JOINS, and perhaps a pool behind it."""
        if kind == "fire":
            first = self.conv(at, reads)
            result, here = self.concat(first, self.beside(at, reads, first[0]))
        elif kind == "aggregate":
            first = self.beside(at, reads)
            second = self.beside(*first)
            result, here = self.concat(first, second, self.beside(*second))
        else:
            result = at
            here = reads
            for _ in range(2 if kind == "dense_steps" else 1):
                result, here = self.concat((result, here), self.beside(result, here))
        number = len(self.layers)
        if self.pick.integer(0, 2) == 0:
            self.layers.append(pools(self.pick, result, f"pool_{number}", self.choices.pools))
            result = self.layers[-1].output_of([result])
            here = f"pool_{number}"
        return result, here


def residual_network(pick: Pick, choices: IntegerChoices, kinds: Sequence[str] = BLOCKS, most: int = 3) -> Network:
    """A convolution, 1 to ``most`` residual blocks, and at the end perhaps a dense layer, which may be raw.

    Parameters
    ----------
    pick
        Makes the choices.
    choices
        Of the integer engine.
    kinds
        Kinds of blocks, of `BLOCKS`.
    most
        Blocks at most.
    """
    maker = BlockMaker(pick, choices)
    height, width, channels = pick.integer(1, MOST_SIDE), pick.integer(1, MOST_SIDE), pick.integer(1, MOST_CHANNELS)
    source = Map(height=height, width=width, channels=channels, encoding=encodings(pick, choices.feature_bits))
    at, here = maker.conv(source, "@input")
    for _ in range(pick.integer(1, most)):
        at, here = maker.block(at, here, pick.of(kinds))
    return maker.network("residual", source, here)


def joined_network(pick: Pick, choices: IntegerChoices, most: int = 3) -> Network:
    """A convolution, 1 to ``most`` blocks, of which the first one ends with a concatenation, and at the end perhaps a
    dense layer, which may be raw.

    Parameters
    ----------
    pick
        Makes the choices.
    choices
        Of the integer engine.
    most
        Blocks at most.
    """
    maker = _JoinMaker(pick, choices)
    height, width = pick.integer(1, MOST_SIDE), pick.integer(1, MOST_SIDE)
    channels = pick.integer(1, MOST_CHANNELS)
    encoding = encodings(pick, choices.feature_bits)
    source = Map(height=height, width=width, channels=channels, encoding=encoding)
    at, here = maker.join(*maker.beside(source, "@input"), pick.of(JOINS))
    for _ in range(pick.integer(0, most - 1)):
        kind = pick.of((*JOINS, *BLOCKS))
        at, here = maker.join(at, here, kind) if kind in JOINS else maker.block(at, here, kind)
    return maker.network("joined", source, here)
