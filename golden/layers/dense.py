"""Dense layer: the weighted sum of a whole map (spec A1, B11)."""

from dataclasses import dataclass
from typing import ClassVar

from bitloom.golden.layer import Map
from bitloom.golden.window import Window

from .conv import Weighted


@dataclass(frozen=True, kw_only=True)
class Dense(Weighted):
    """Fully connected layer: a convolution whose one window is the whole map.

    Parameters and array are those of `Weighted`; the kernel is as large as the map, so the output is 1 x 1.
    """

    kind: ClassVar[str] = "dense"

    def window(self, source: Map) -> Window:
        return Window(kernel=(source.height, source.width))
