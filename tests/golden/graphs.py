"""A layer with two inputs and networks with forks and joins, for tests: golden has no such layer yet."""

from dataclasses import dataclass
from typing import ClassVar

from bitloom.golden.encoding import signed
from bitloom.golden.graph import INPUT
from bitloom.golden.layer import Layer, Map
from bitloom.golden.network import Network
from tests.graph_text import network_of


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
    return network_of(
        SOURCE,
        "conv_1 2 1x1 s3, conv_2 2 1x1 s3",
        Subtract(name="subtract_3", inputs=("conv_1", "conv_2")),
        "requantise_4 s4",
        Subtract(name="subtract_5", inputs=("requantise_4", INPUT)),
        "dense_6 3 s2",
        name="residual",
    )
