"""Concatenation of maps: their channels one behind the other, as DenseNet, Inception and SqueezeNet join their ways.

result[..., : C_1] = x_1,  result[..., C_1 : C_1 + C_2] = x_2,  ...
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bitloom.golden.encoding import Array, smallest
from bitloom.golden.layer import Layer, Map


@dataclass(frozen=True, kw_only=True)
class Concat(Layer):
    """The channels of two or more maps of one height and width, in the order of ``inputs``.

    Values stay as they are; maps of different scales must be requantised before. The result's
    encoding is the smallest one that has all maps' values: bipolar maps must have one encoding, others are signed if
    any of them has values below 0.
    """

    kind: ClassVar[str] = "concat"
    input_count: ClassVar[int] = 2
    takes_more: ClassVar[bool] = True

    def output_of(self, sources: Sequence[Map]) -> Map:
        first = sources[0]
        for source in sources[1:]:
            if (source.height, source.width) != (first.height, first.width):
                got = " and ".join(f"{each.height} x {each.width}" for each in (first, source))
                raise ValueError(f"{self.name}: maps must have one height and width, got {got}")
        channels = sum(source.channels for source in sources)
        encoding = smallest(self.name, [source.encoding for source in sources])
        return Map(height=first.height, width=first.width, channels=channels, encoding=encoding)

    def forward_of(self, inputs: Sequence[Array], arrays: Mapping[str, Array], sources: Sequence[Map]) -> Array:
        joined: Array = np.concatenate(inputs, axis=3)
        return joined
