"""A budget: what a design may take at most, and what is asked of it."""

from dataclasses import dataclass, fields
from math import inf

from bitloom.overlay.platform.boards import Board, taken

from .figures import Figures


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits of a design; None is no limit.

    Raises
    ------
    ValueError
        If a limit isn't above 0.
    """

    lut: float | None = None
    """LUTs as a device counts them, of logic and of memory together."""
    lutram: float | None = None
    """Those of them that are memory."""
    ff: float | None = None
    """Flip-flops."""
    bram36: float | None = None
    """Block RAM in units of 36 Kbit."""
    dsp: float | None = None
    """DSP blocks."""
    lanes: float | None = None
    """Multiply-accumulates a cycle."""
    cycles: float | None = None
    """Cycles a frame in a steady stream: the rate that is asked for."""
    latency: float | None = None
    """Cycles of one frame alone."""

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if value is not None and not 0 < value < inf:  # also refuses nan
                raise ValueError(f"budget: {f.name} must be > 0 and finite, got {value}")

    @classmethod
    def of_board(cls, board: Board, margin: float = 0.0, share: float = 1.0, **limits: float | None) -> "Budget":
        """A budget of what a board's device has.

        Parameters
        ----------
        board
            The board.
        margin
            Share by which LUTs may turn out to be more than their estimate, >= 0: its limit is smaller by that.
        share
            Part of the device, above 0, that the design may take.
        limits
            Further limits; one that is not None replaces the device's.
        """
        part = {key: share * size / (1 + margin * (key == "lut")) for key, size in board.sizes.items()}
        return cls(**{**part, **{key: value for key, value in limits.items() if value is not None}})

    def excess(self, figures: Figures) -> dict[str, float]:
        """The figures that are over their limits.

        Returns
        -------
        dict
            Figure / limit, above 1, by the limit's name.
        """
        values = limited(figures)
        limits = {f.name: getattr(self, f.name) for f in fields(self)}
        return {key: values[key] / limit for key, limit in limits.items() if limit is not None and values[key] > limit}

    def holds(self, figures: Figures) -> bool:
        """Whether nothing is over its limit."""
        return not self.excess(figures)


def limited(figures: Figures) -> dict[str, float]:
    """The figures of a design that a `Budget` may limit, by the limit's name."""
    return {
        **taken(figures.area),
        "lanes": figures.lanes,
        "cycles": figures.cycles,
        "latency": figures.latency,
    }
