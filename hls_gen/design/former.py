"""Former: the block behind an inlet that puts the taps of a window side by side, for layers of fewer channels than a
word has lanes (formed_windows.py). An NPU may lack it."""

from collections.abc import Sequence
from dataclasses import dataclass

from .parts import NpuPart, capacity
from .rules import require


@dataclass(frozen=True, kw_only=True)
class FormerSizes(NpuPart):
    """The largest windows that a window former can form."""

    channels: int = capacity(name="former_channels", where="former")
    """Channels of a position, >= 1."""
    column: int = capacity(name="former_column", where="former")
    """Lanes of a column of taps, the channels of its rows side by side, >= ``channels``."""
    columns: int = capacity(name="former_columns", where="former")
    """Columns of a window, >= 1."""
    line: int = capacity(least=2, name="former_line", where="former")
    """Positions of a row, those beside the map included, >= 2."""
    granule: int = capacity(1, name="former_granule", where="former")
    """Lanes that stay together: channels of every map are a multiple of it. It divides ``channels`` and ``column``; 1
    where planes are side by side."""

    ahead: int = capacity(0, least=0, most=1, name="former_ahead", rare=True, where="former")
    """1: positions come while words of the window before leave, all but the first one, of which there is a copy."""

    def __post_init__(self) -> None:
        super().__post_init__()
        most = self.column
        require(self.channels <= most, f"former_channels must be <= {most}", self.channels)
        for name in ("channels", "column"):
            lanes = getattr(self, name)
            require(lanes % self.granule == 0, f"former_{name} must be a multiple of {self.granule}", lanes)


@dataclass(frozen=True, kw_only=True)
class Former(NpuPart):
    """The window former of an NPU: behind inlet "host" where there is one, else behind inlet "ring"."""

    sizes: FormerSizes | None = None
    """The largest windows that the former can form; None before sizing, and where no network has a use for a former:
    then none is built. Sized."""


def has_place(inlets: Sequence[str], line_taps: int = 1) -> bool:
    """Whether a window former can stand between the inlets of an NPU and an array of so many ``line_taps``: behind
    "host", or behind "ring" where it is the only inlet and words come to the array one at a time."""
    return "host" in inlets or (tuple(inlets) == ("ring",) and line_taps == 1)
