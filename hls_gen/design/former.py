"""Former: the block behind inlet "host" that puts the taps of a window side by side, for first layers of few channels
(formed_windows.py). An NPU may lack it."""

from dataclasses import dataclass

from .parts import Part, capacity
from .rules import require


@dataclass(frozen=True, kw_only=True)
class FormerSizes(Part):
    """What a window former can form."""

    channels: int = capacity(name="former_channels", where="former")
    """Channels of a position, >= 1."""
    column: int = capacity(name="former_column", where="former")
    """Lanes of a column of taps, the channels of its rows side by side, >= ``channels``."""
    columns: int = capacity(name="former_columns", where="former")
    """Columns of a window, >= 1."""
    line: int = capacity(least=2, name="former_line", where="former")
    """Positions of a row, those beside the map included, >= 2."""

    def __post_init__(self) -> None:
        super().__post_init__()
        most = self.column
        require(self.channels <= most, f"former_channels must be <= {most}", self.channels)


@dataclass(frozen=True, kw_only=True)
class Former(Part):
    """The window former of an NPU that reads frames."""

    sizes: FormerSizes | None = None
    """What it can form; None before sizing, and where no network has a use for it: then none is built. Sized."""
