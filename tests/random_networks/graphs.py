"""Random graphs of integer layers: any layer reads any maps, and at the end all are joined that nobody has read."""

from dataclasses import replace

from bitloom.golden.encoding import signed, unsigned
from bitloom.golden.layer import Map
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.concat import Concat
from bitloom.golden.network import Network
from bitloom.overlay.fuzz.pick import Pick
from bitloom.overlay.fuzz.random_networks import IntegerChoices, activation, map_behind, pools

from .blocks import BlockMaker

KINDS = ("conv", "conv", "add", "concat", "pool", "requantise")
"""Kinds of steps, a convolution twice as often as another one."""
MOST_SIDE, MOST_CHANNELS = 5, 8
"""Rows, columns and channels of a map that is no concatenation, at most: keeps simulation quick."""
MOST_JOINED = 3 * MOST_CHANNELS
"""Channels of a concatenation, at most."""

NamedMap = tuple[Map, str]


class _GraphMaker(BlockMaker):
    """A network in the making.

    Attributes
    ----------
    maps
        The maps there are, the input among them.
    unread
        Those that no layer reads.
    """

    def __init__(self, pick: Pick, choices: IntegerChoices, source: Map):
        super().__init__(pick, choices)
        self.maps: list[NamedMap] = [(source, "@input")]
        self.unread: list[NamedMap] = [*self.maps]

    def step(self, kind: str) -> None:
        """A layer or two of this kind, of maps that there are."""
        at, reads = one = self.any()
        number = len(self.layers)
        if kind in ("add", "concat"):
            self.join(kind, one, self.any())
        elif kind == "conv":
            self.done(self.conv(at, reads, self.narrow(at) if self.pick.flip() else None), one)
        else:
            pool = pools(self.pick, at, f"pool_{number}", self.choices.pools)
            act = activation(self.pick, f"act_{number}", self.choices, inputs=(reads,))
            layers = [replace(pool, inputs=(reads,))] if kind == "pool" else act
            self.layers += layers
            self.done((map_behind(layers, at), layers[-1].name), one)

    def any(self) -> NamedMap:
        """A map, the newest ones more often than others."""
        return self.pick.of(self.maps[-3:] if self.pick.flip() else self.maps)

    def narrow(self, at: Map) -> Map:
        """A map of the size of another one, with few channels."""
        return replace(at, channels=self.pick.integer(1, MOST_CHANNELS))

    def join(self, kind: str, one: NamedMap, other: NamedMap) -> None:
        """An addition or a concatenation; a convolution makes maps of one size where they are not."""
        size = other[0] if kind == "add" else replace(other[0], channels=one[0].channels)
        if kind == "concat" and one[0].channels + other[0].channels > MOST_JOINED:
            size = self.narrow(other[0])
        if one[0].shape != size.shape:
            self.done(resized := self.conv(*one, size), one)
            one = resized
        number = len(self.layers)
        bits = self.choices.feature_bits
        inputs = (one[1], other[1]) if self.pick.flip() else (other[1], one[1])
        if kind == "add":
            encoding = self.pick.of([signed(bits), unsigned(bits - 1), signed(max(2, bits - 2))])
            layer: Add | Concat = Add(name=f"add_{number}", encoding=encoding, inputs=inputs)
        else:
            layer = Concat(name=f"concat_{number}", inputs=inputs)
        self.layers.append(layer)
        sources = [one[0], other[0]] if inputs[0] == one[1] else [other[0], one[0]]
        self.done((layer.output_of(sources), layer.name), one, other)

    def done(self, result: NamedMap, *read: NamedMap) -> None:
        """Note that a map was made of others."""
        names = {name for _, name in read}
        self.unread = [*(one for one in self.unread if one[1] not in names), result]
        self.maps.append(result)


def graph_network(pick: Pick, choices: IntegerChoices, most: int = 7) -> Network:
    """1 to ``most`` steps, additions and concatenations of what nobody has read, and at the end perhaps a dense layer,
    which may be raw.

    Parameters
    ----------
    pick
        Makes the choices.
    choices
        Of the integer engine.
    most
        Steps at most.
    """
    height, width, channels = pick.integer(1, MOST_SIDE), pick.integer(1, MOST_SIDE), pick.integer(1, MOST_CHANNELS)
    encoding = pick.of([signed(choices.feature_bits), unsigned(choices.feature_bits - 1)])
    source = Map(height=height, width=width, channels=channels, encoding=encoding)
    maker = _GraphMaker(pick, choices, source)
    maker.step("conv")
    for _ in range(pick.integer(1, most)):
        maker.step(pick.of(KINDS))
    while len(maker.unread) > 1:
        maker.join(pick.of(("add", "concat")), *maker.unread[:2])
    return maker.network("graph", source, maker.unread[0][1])
