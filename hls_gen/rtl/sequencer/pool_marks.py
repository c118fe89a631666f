"""Marks of a layer that only pass through the pool unit's sequencer: from the layer's row, with each tap and each beat,
to the pool unit and what stands behind it."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from bitloom.hls_gen.rtl.primitives.block import Signal

from .bundle import Bundle, Meaning


@dataclass(frozen=True, kw_only=True)
class PoolMarks(Bundle):
    """The marks, by the names of the fields of memory ``pool_layers``, from which they take their widths.

    None of them is there in the array's sequencer. A new mark is a field here, and a field of that memory.
    """

    of_row: ClassVar[bool] = True

    target: Annotated[Signal | None, Meaning("number of the outlet that the map goes to")] = None
    forks: Annotated[Signal | None, Meaning("the map goes to the skip store as well")] = None
    for_addition: Annotated[Signal | None, Meaning("in the skip store the map waits for the addition")] = None
    average: Annotated[Signal | None, Meaning("the pool unit takes averages, else maxima")] = None
    depthwise: Annotated[
        Signal | None, Meaning("the pool unit adds products with its weights, whatever average says")
    ] = None
