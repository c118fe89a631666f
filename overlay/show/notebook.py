"""Where a notebook runs: on a board if the bitstream is there, else on the virtual board.

    place = find("digits-cnn")  # a reference design (overlay/build/reference_designs.py)
    print(place)                # which of the two it is
    overlay = BitloomOverlay(place.bit)

A board needs nothing but the driver, golden and pynq for it.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bitloom.driver.pynq_api import PynqDevice, pynq
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.distribution import pip_install
from bitloom.golden.reading.json_text import read_json
from bitloom.hls_gen.design.reader import Reader

if TYPE_CHECKING:
    from bitloom.overlay.virtual.board import VirtualDevice

FOLDER = Path("build")
"""Folder in which reference designs without a bitstream are built."""


@dataclass(frozen=True)
class NotebookTarget:
    """Where a notebook's design runs."""

    design: str
    """The design's name."""
    bit: str
    """Path of the bitstream, or of the simulation overlay."""
    board: "str | VirtualDevice"
    """The board's name, or the virtual board."""

    @property
    def virtual(self) -> bool:
        """Whether the device is simulated."""
        return not isinstance(self.board, str)

    def __str__(self) -> str:
        if self.virtual:
            return (
                f"{self.design}: no board with this bitstream here, so the virtual board simulates the design "
                f"(built in {Path(self.bit).parent})"
            )
        return f"{self.design}: {Path(self.bit).name} on {self.board}"


def find(design: str, folder: Path | str = FOLDER) -> NotebookTarget:
    """Find the design's bitstream on the board that pynq finds.

    Without a board or a bitstream, the reference design of that name is built in ``folder / design``, for the virtual
    board. From then on the board is pynq's active device.

    Parameters
    ----------
    design
        Name of a reference design. A bitstream is looked for in this folder, by the name in the manifest beside it,
        then as ``design``.bit where pynq has its overlays.
    folder
        For builds.

    Raises
    ------
    ImportError
        If the design would have to be simulated, and the packages for that are missing.
    """

    def build() -> Path:
        from bitloom.overlay.build import build as builds
        from bitloom.overlay.build.reference_designs import reference_design

        chosen = reference_design(design)
        models = chosen.models()
        result = builds.build(Path(folder) / design, chosen.sized(design, models), models, choices=chosen.choices)
        for file in result.kept:
            print(f"{result.folder}: {file.path} is kept, as {file.now}: a build has a file of this name, or had one")
        return result.bit

    return _target(design, build)


def find_machine(name: str, machine: MachineParameters, folder: Path | str = FOLDER) -> NotebookTarget:
    """Find a training machine's bitstream, as ``find`` does; else generate ``machine`` for the virtual board.

    Parameters
    ----------
    name
        Name of the build.
    machine
        Machine that is generated where there is no bitstream of that name.
    folder
        For builds.

    Raises
    ------
    ImportError
        As of ``find``.
    """

    def build() -> Path:
        from bitloom.overlay.build.training import build_training_machine

        return build_training_machine(Path(folder) / name, name, machine).bit

    return _target(name, build)


def _target(design: str, build: Callable[[], Path]) -> NotebookTarget:
    """The board with that design's bitstream, or the virtual board with what ``build`` makes."""
    board = _board()
    bit = board and _bitstream(design, board)
    if bit:
        PynqDevice.active_device = board
        return NotebookTarget(design, bit, board.name)
    try:
        from bitloom.overlay.virtual.board import activate

        bit_file = build()
    except ImportError as e:
        raise ImportError(
            f"{design}: needs its bitstream and a board, or to simulate it: {pip_install('hls', 'sim')} ({e})"
        ) from e
    return NotebookTarget(design, str(bit_file), activate())


def _board() -> "PynqDevice | None":
    """The first board that pynq finds, None if there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "No devices found": then there is none
        return next(iter(PynqDevice.devices), None)


def _bitstream(design: str, board: "PynqDevice") -> str | None:
    """Path of the design's .bit, None if there is none."""
    for path in sorted(Path.cwd().glob("*.manifest.json")):
        bit = path.with_name(path.name.replace(".manifest.json", ".bit"))
        if bit.is_file() and Reader(read_json(path, "a manifest"), str(path)).text("name") == design:
            return str(bit)
    try:
        return str(pynq.Bitstream(f"{design}.bit", device=board).bitfile_name)
    except OSError:
        return None
