"""A Pareto front as pictures and pages show it: of a search, or of what ``bitloom explore --json`` printed."""

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from bitloom.golden.reading.file import naming
from bitloom.golden.reading.json_text import read_json
from bitloom.hls_gen.design.reader import Reader
from bitloom.overlay.area.netlist import Resources
from bitloom.overlay.platform.board_file import board_of
from bitloom.overlay.platform.boards import CLOCK_MHZ, RESOURCES, Board

from .budget import Budget
from .figures import Figures

JOINED = " + "
"""Between the names of several networks."""


@dataclass(frozen=True, kw_only=True)
class Front:
    """Designs that no other beats in both cycles a frame and LUTs."""

    network: str
    """Name of the network, or of several with JOINED between them."""
    points: tuple[Figures, ...]
    """The designs, fastest first; the first one has number 1."""
    chosen: Figures | None = None
    """The design that the budget asks for; None where no design keeps to it."""
    budget: Budget = field(default_factory=Budget)
    """Limits of a design."""
    board: Board | None = None
    """The board that the search was for."""
    clock_mhz: float = CLOCK_MHZ
    """Clock of the frames a second."""
    commands: tuple[str, ...] = ()
    """The command that builds each design; none where the search didn't write their foldings."""

    def frames_per_second(self, figures: Figures) -> float:
        """Frames a second of a design."""
        return self.clock_mhz * 1e6 / figures.cycles

    def share(self, figures: Figures) -> tuple[float, str] | None:
        """The largest share of the board's resources that a design takes, 1 for all of one, and the heading of that
        resource; None without a board."""
        if self.board is None:
            return None
        share, key = max((share, key) for key, share in self.board.shares(figures.area).items())
        return share, RESOURCES[key]

    @property
    def most(self) -> float | None:
        """LUTs of the budget, or where there is a board the largest share of it that the budget allows of any resource;
        None where nothing limits them."""
        if self.board is None:
            return self.budget.lut
        whole = self.board.sizes
        limits = {key: getattr(self.budget, key) for key in whole}
        return max((whole[key] if limit is None else limit) / whole[key] for key, limit in limits.items())

    def to_dict(self) -> dict[str, Any]:
        """JSON data, but for the points."""
        return {
            "network": self.network,
            "budget": {key: value for key, value in asdict(self.budget).items() if value is not None},
            "board": self.board and self.board.to_dict(),
            "commands": list(self.commands),
        }


def read_front(path: Path, network: str) -> Front:
    """Read what ``bitloom explore --json`` printed.

    Parameters
    ----------
    path
        The file.
    network
        Name of the network that the front must be of, alone or with others.

    Raises
    ------
    OSError
        If there is no such file.
    ValueError
        If it isn't such a file, or about other networks.
    """
    reader = Reader(read_json(path, "what bitloom explore --json prints"), str(path))
    name = reader.text("network")
    reader.require(network in name.split(JOINED), f"network must be {network}", name)
    points = tuple(_figures(Reader(row, f"{path}: front")) for row in reader.entries("front", 1))
    best = None if reader.data.get("best") is None else _figures(reader.inner("best"))
    limits = reader.inner("budget")
    known = [each.name for each in fields(Budget)]
    limits.only(known)
    with naming(path):
        board = None if reader.data.get("board") is None else board_of(reader.table("board"))
        budget = Budget(**{key: limits.real(key) for key in limits.data})
    clock = reader.inner("clock")
    mhz = clock.real("mhz")
    clock.require(mhz > 0, "mhz must be > 0", mhz)
    commands = reader.texts("commands")
    reader.require(len(commands) in (0, len(points)), f"commands must be {len(points)} or none", len(commands))
    return Front(network=name, points=points, chosen=best, budget=budget, board=board, clock_mhz=mhz,
                 commands=commands)  # fmt: skip


def _figures(row: Reader) -> Figures:
    """Figures of a design."""
    lut, paired = row.number("lut"), row.number("paired_lut")
    row.require(paired <= lut, "paired_lut must be <= lut", paired)
    area = Resources(
        lut=lut,
        pairs=lut - paired,
        ff=row.number("ff"),
        bram36=row.real("bram36"),
        lutram=row.number("lutram"),
        dsp=row.number("dsp"),
    )
    return Figures(area, row.number("lanes"), row.real("cycles_per_frame", 1), row.number("latency_cycles"))
