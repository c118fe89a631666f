"""A layer with two inputs and networks with forks and joins, for tests: golden has no such layer yet."""

from dataclasses import dataclass
from typing import ClassVar

from bitloom.golden.encoding import signed
from bitloom.golden.graph import INPUT
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.network import Network


@dataclass(frozen=True, kw_only=True)
class Subtract(Layer):
    """The first map less the second one: asymmetric on purpose."""

    kind: ClassVar[str] = "subtract"
    input_count: ClassVar[int] = 2

    def output_of(self, sources):
        first, second = sources
        if first.shape != second.shape:
            raise ValueError(f"{self.name}: maps must have one shape, got {first.shape} and {second.shape}")
        bits = 1 + max(first.encoding.bits, second.encoding.bits)
        return Map(height=first.height, width=first.width, channels=first.channels, encoding=signed(bits))

    def forward_of(self, inputs, arrays, sources):
        return (inputs[0] - inputs[1]) * arrays["sign"]

    def array_shapes_of(self, sources):
        return {"sign": (sources[0].channels,)}


SOURCE = Map(height=3, width=4, channels=2, encoding=signed(4))


def residual() -> Network:
    """conv_1 is read by conv_2 and, past it, by subtract_3; the input by conv_1 and, past all, by subtract_5."""
    same = {"kernel": (1, 1), "weight": signed(3)}
    return Network(
        name="residual",
        input=SOURCE,
        layers=(
            Conv(name="conv_1", out_channels=2, **same),
            Conv(name="conv_2", out_channels=2, **same),
            Subtract(name="subtract_3", inputs=("conv_1", "conv_2")),
            Requantise(name="requantise_4", encoding=signed(4)),
            Subtract(name="subtract_5", inputs=("requantise_4", INPUT)),
            Dense(name="dense_6", out_channels=3, weight=signed(2)),
        ),
    )
