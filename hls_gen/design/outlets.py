"""Outlets that share a gearbox: those whose words have the same width (hls_gen/rtl/shell/outlets.py)."""

from dataclasses import dataclass

from .memories.memory import FieldWidths
from .npu import Npu


@dataclass(frozen=True)
class OutletGroup:
    """Outlets that share a gearbox."""

    npu: Npu
    names: tuple[str, ...]
    """The outlets, of `Npu.targets`."""
    word_bits: int
    """Width of their words."""
    of_signs: bool = False
    """Whether they get a bit for each feature, its sign."""

    @property
    def marks_maps(self) -> bool:
        """Whether a taker looks at the last word of a map; the stores alone don't."""
        return not {"loop", "skip"}.issuperset(self.names)

    @property
    def label(self) -> str:
        """The beginning of the names of its signals."""
        return "_".join(self.names)

    @property
    def marks(self) -> FieldWidths:
        """Marks of a word that are still needed behind the gearbox, with widths: that the word is its map's last one,
        and those that say to which of the outlets the word goes."""
        several = len(self.names) > 1
        skip = "skip" in self.names
        needed = {"map_last": self.marks_maps, "target": several, "forks": skip and several, "for_addition": skip}
        return [(name, width) for name, width in self.npu.map_marks if needed[name]]


def outlet_groups(npu: Npu, ring_bits: int, *, to_bits: bool = False) -> list[OutletGroup]:
    """The outlets of an NPU, those with words of one width and kind together.

    Parameters
    ----------
    npu
        The NPU.
    ring_bits
        Width of the words of outlet "ring", which is that of the words of the NPU after.
    to_bits
        Whether outlet "ring" has one bit a feature.
    """
    groups: dict[tuple[int, bool], list[str]] = {}
    for name in npu.targets:
        kind = (ring_bits, to_bits) if name == "ring" else (npu.array.map_bits, False)
        groups.setdefault(kind, []).append(name)
    return [OutletGroup(npu, tuple(names), *kind) for kind, names in groups.items()]
