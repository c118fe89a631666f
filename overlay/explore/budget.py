"""What a design may take, and what is asked of it."""

from dataclasses import dataclass, fields

from bitloom.overlay.platform.boards import Board

from .candidate import Figures


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits; None: no limit. lut : LUTs of logic and of memory together.  cycles : cycles a frame."""

    lut: float | None = None
    ff: float | None = None
    bram36: float | None = None
    dsp: float | None = None
    lanes: float | None = None
    cycles: float | None = None
    latency: float | None = None

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if value is not None and value <= 0:
                raise ValueError(f"budget: {f.name} must be > 0, got {value}")

    @classmethod
    def of_board(cls, board: Board, **limits: float | None) -> "Budget":
        """All of a board's device, where ``limits`` don't say less."""
        whole = {"lut": board.lut, "ff": board.ff, "bram36": board.bram36, "dsp": board.dsp}
        return cls(**{**whole, **{key: value for key, value in limits.items() if value is not None}})

    def excess(self, found: Figures) -> dict[str, float]:
        """What is over its limit: figure / limit, > 1 each."""
        values = {"lut": found.lut, "ff": found.area.ff, "bram36": found.area.bram36, "dsp": found.area.dsp,
                  "lanes": found.lanes, "cycles": found.cycles, "latency": found.latency}  # fmt: skip
        limits = {f.name: getattr(self, f.name) for f in fields(self)}
        return {key: values[key] / limit for key, limit in limits.items() if limit is not None and values[key] > limit}

    def holds(self, found: Figures) -> bool:
        """Whether nothing is over its limit."""
        return not self.excess(found)
