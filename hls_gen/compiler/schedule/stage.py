"""Stages: the layers of a network that a schedule is about, those that read windows (spec B1)."""

from dataclasses import dataclass

from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.pool import Pool
from bitloom.golden.network import Network
from bitloom.golden.window import Pair, Window

KINDS = ("conv", "pool")


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A window that slides over a map of height x width; a dense layer is a window of the whole map.

    kind : "conv" (weights: taps have places in a kernel) or "pool".
    tuple_bits : bits of one feature tuple of the map it reads; weighs tuple memory when orders are compared.
    """

    name: str
    kind: str
    height: int
    width: int
    window: Window
    tuple_bits: int = 1

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"{self.name}: kind must be one of {', '.join(KINDS)}, got {self.kind!r}")
        for what in ("height", "width", "tuple_bits"):
            value = getattr(self, what)
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{self.name}: {what} must be an integer >= 1, got {value!r}")
        self.window.check(self.name)
        if min(self.output_size) < 1:
            raise ValueError(
                f"{self.name}: the window must fit the padded map, got kernel {self.window.kernel} "
                f"on {self.height} x {self.width}"
            )

    @property
    def output_size(self) -> Pair:
        """(rows, columns) of the map it makes."""
        return self.window.output_size(self.height, self.width)


def stages(network: Network) -> tuple[Stage, ...]:
    """The window layers of ``network`` in order: Conv and Dense as "conv", MaxPool and AvgPool as "pool".

    All other layers work on each position for itself; ValueError if one changes the size of the map.
    """
    found = []
    for layer, source in network.chain("a schedule"):
        if not isinstance(layer, Weighted | Pool):
            target = layer.output(source)
            if (target.height, target.width) != (source.height, source.width):
                raise ValueError(
                    f"{layer.name}: a layer without a window must keep the map's size, got "
                    f"{source.height} x {source.width} -> {target.height} x {target.width}"
                )
            continue
        found.append(
            Stage(
                name=layer.name,
                kind="conv" if isinstance(layer, Weighted) else "pool",
                height=source.height,
                width=source.width,
                window=layer.window(source) if isinstance(layer, Weighted) else layer.window,
                tuple_bits=source.channels * source.encoding.bits,
            )
        )
    return tuple(found)
