"""NPUs with what their layers gain by, as far as only planned layers say it.

    planned layers --kernel groups read parts of tuples--> planned again --lanes share weights--> planned again

Sizing goes this way with the networks of a design, the search with the layers of one NPU.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

from bitloom.hls_gen.design.npu import Npu

from .fitted import with_tuple_parts
from .sharing import ReadValues, sharing

Npus = tuple[Npu, ...]
P = TypeVar("P", bound="PlannedOnNpus")


class PlannedOnNpus(ABC):
    """Layers that are planned on NPUs."""

    npus: Npus
    """The NPUs."""

    @abstractmethod
    def on(self: P, npus: Npus) -> P:
        """The layers, planned on other NPUs."""

    @abstractmethod
    def tuple_part_npus(self) -> Collection[int]:
        """Numbers of the NPUs that have a layer which gains by kernel groups that read parts of tuples."""

    @abstractmethod
    def values_read(self, n: int) -> Iterable[ReadValues]:
        """The maps that the layers of NPU ``n`` read."""

    @abstractmethod
    def beats(self) -> Sequence[int]:
        """Beats of each layer."""


def extended(planned: P) -> P:
    """The layers on NPUs with what they gain by. Lanes share weights where no frame takes longer by it.

    That kernel groups read parts of tuples, and that lanes share weights, follows from the words in which maps lie,
    which a plan finds: then layers are planned again.
    """
    numbers = planned.tuple_part_npus()
    if numbers:
        numbered = enumerate(planned.npus)
        planned = planned.on(
            tuple(npu.unchecked(**with_tuple_parts(npu)) if n in numbers else npu for n, npu in numbered)
        )
    shared = tuple(sharing(npu, planned.values_read(n)) for n, npu in enumerate(planned.npus))
    if all(npu is before for npu, before in zip(shared, planned.npus)):
        return planned
    again = planned.on(shared)
    return again if again.beats() == planned.beats() else planned
