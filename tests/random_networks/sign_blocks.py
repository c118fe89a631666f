"""Random residual networks of binary layers: blocks that add integers to what they make of their signs."""

from collections.abc import Sequence

from bitloom.golden.encoding import BIPOLAR, TERNARY, bipolar, signed, unsigned
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import MaxPool, MinPool
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Network
from bitloom.golden.window import Window
from bitloom.overlay.fuzz.pick import Pick
from bitloom.overlay.fuzz.random_networks import IntegerChoices, activation, map_behind, pools, windows

MOST_SIDE, MOST_STEPS = 7, 4
"""Rows and columns of a map, and steps of results that its channels fill, at most: keeps simulation quick."""
ROUNDINGS = ("once", "even")
"""How requantisations of the binary engine may round."""


class _SignBlocks:
    """A network in the making; channels of maps of integers are multiples of ``ol``."""

    def __init__(self, pick: Pick, bits: int, ol: int):
        self.pick = pick
        self.bits = bits
        self.ol = ol
        self.layers: list[Layer] = []

    def conv(self, at: Map, reads: str, channels: int, window: Window) -> tuple[Map, str]:
        """A convolution of the map ``at``, which layer ``reads`` makes."""
        weight = TERNARY if at.encoding.kind == "bipolar" and self.pick.integer(0, 3) == 0 else BIPOLAR
        fields = {"kernel": window.kernel, "stride": window.stride, "padding": window.padding}
        name = f"conv_{len(self.layers)}"
        layer = Conv(name=name, out_channels=channels, weight=weight, inputs=(reads,), **fields)
        self.layers.append(layer)
        return layer.output(at), layer.name

    def integers(self, at: Map, reads: str) -> tuple[Map, str]:
        """The requantisation of a map of sums."""
        choices = IntegerChoices(feature_bits=self.bits, fraction=2, roundings=ROUNDINGS)
        act = activation(self.pick, f"act_{len(self.layers)}", choices, inputs=(reads,))
        self.layers += act
        return map_behind(act, at), act[-1].name

    def signs(self, at: Map, reads: str) -> tuple[Map, str]:
        """The signs of a map of integers, and one time of four a pool behind them."""
        number = len(self.layers)
        sign = Threshold(name=f"sign_{number}", inputs=(reads,))
        self.layers.append(sign)
        result = sign.output(at)
        here = sign.name
        if self.pick.integer(0, 3) == 0:
            self.layers.append(pools(self.pick, result, f"pool_{number}", (MaxPool, MinPool)))
            result = self.layers[-1].output_of([result])
            here = f"pool_{number}"
        return result, here

    def block(self, at: Map, reads: str) -> tuple[Map, str]:
        """A map of integers, and 1 to 3 convolutions that add it, or what was added before, to their own results."""
        channels = self.ol * self.pick.integer(1, MOST_STEPS)
        sums, here = self.conv(at, reads, channels, windows(self.pick, at, 3))
        kept, waits = self.integers(sums, here)
        bits, here = self.signs(kept, waits)
        for _ in range(self.pick.integer(1, 3)):
            while self.pick.integer(0, 3) == 0:  # a layer between, which a shortcut leads past
                between, name = self.conv(bits, here, self.pick.integer(1, 9), windows(self.pick, bits, 3))
                self.layers.append(Threshold(name=f"threshold_{name}", inputs=(name,)))
                bits = self.layers[-1].output_of([between])
                here = f"threshold_{name}"
            sums, here = self.conv(bits, here, channels, to_size(bits, kept, self.pick.flip()))
            result, here = self.integers(sums, here)
            inputs = (here, waits) if self.pick.flip() else (waits, here)
            add = Add(name=f"add_{len(self.layers)}", encoding=signed(self.pick.integer(2, self.bits)), inputs=inputs)
            self.layers.append(add)
            kept = add.output_of([result, kept])
            waits = add.name
            bits, here = self.signs(kept, waits)
        return bits, here


def to_size(at: Map, shape: Map, wide: bool) -> Window:
    """A window without stride that makes a map of the size of ``shape``; of one as large 3 x 3 taps if ``wide``."""
    sides = []
    for have, want in ((at.height, shape.height), (at.width, shape.width)):
        less, more = max(0, have - want), max(0, want - have, int(wide and have == want))
        sides.append((less + 2 * more - (want - have if want > have else 0) + 1, more))
    (rows, top), (columns, left) = sides
    return Window(kernel=(rows, columns), padding=(top, left, top, left))


def binary_residual_network(
    pick: Pick, bits: int = 9, ol: int = 1, most: int = 2, inputs: Sequence[str] = ("bipolar", "signed", "unsigned")
) -> Network:
    """Perhaps a layer with thresholds, 1 to ``most`` blocks, and at the end perhaps a dense layer of raw sums.

    Parameters
    ----------
    pick
        Makes the choices.
    bits
        Of integers, at most, 3 to 9.
    ol
        Lanes of a step of results, which channels of integers fill.
    most
        Blocks at most.
    inputs
        Kinds of inputs.
    """
    maker = _SignBlocks(pick, bits, ol)
    kind = pick.of(inputs)
    encoding = {"bipolar": bipolar, "signed": signed, "unsigned": unsigned}[kind](pick.integer(2, 3))
    height, width, channels = pick.integer(1, MOST_SIDE), pick.integer(1, MOST_SIDE), pick.integer(1, 9)
    at = source = Map(height=height, width=width, channels=channels, encoding=encoding)
    here = "@input"
    if pick.flip():
        at, name = maker.conv(at, here, pick.integer(1, 9), windows(pick, at, 3))
        maker.layers.append(Threshold(name="threshold_first", levels=pick.integer(1, 2), inputs=(name,)))
        at = maker.layers[-1].output_of([at])
        here = "threshold_first"
    for _ in range(pick.integer(1, most)):
        at, here = maker.block(at, here)
    if pick.flip() or isinstance(maker.layers[-1], MinPool):  # the last layer can't make complements
        maker.layers.append(Dense(name="dense_end", out_channels=pick.integer(1, 5), inputs=(here,)))
    return Network(name="binary_residual", input=source, layers=tuple(maker.layers))
