"""The outputs of a network with several: their values one behind the other.

The device sends the maps as they are, one after another, and the driver puts them together
(hls_gen/compiler/engine_form.py); so heads may have any sizes, as those of detectors have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bitloom.golden.encoding import Array, smallest
from bitloom.golden.layer import Layer, Map


@dataclass(frozen=True, kw_only=True)
class Outputs(Layer):
    """The values of two or more maps, as one vector: map after map in the order of ``inputs``, each row-major over
    rows, columns and channels.

    Values stay as they are, and the result's encoding is the smallest one that has all of them. It is the last layer of
    a network with several outputs.
    """

    kind: ClassVar[str] = "outputs"
    input_count: ClassVar[int] = 2
    takes_more: ClassVar[bool] = True

    def output_of(self, sources: Sequence[Map]) -> Map:
        values = sum(source.size for source in sources)
        encoding = smallest(self.name, [source.encoding for source in sources])
        return Map(height=1, width=1, channels=values, encoding=encoding)

    def forward_of(self, inputs: Sequence[Array], arrays: Mapping[str, Array], sources: Sequence[Map]) -> Array:
        flat = [values.reshape(len(values), 1, 1, -1) for values in inputs]  # (N, 1, 1, H * W * C) each
        joined: Array = np.concatenate(flat, axis=3)
        return joined
