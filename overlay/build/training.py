"""Build a training machine: simulation overlay, and sources for a bitstream.

MachineParameters --> Verilog, manifest --> <name>_<hash>.bit, .hwh, .v, .manifest.json     for the virtual board
                                       `--> vivado/                                         for a board
"""

from dataclasses import dataclass
from pathlib import Path

from bitloom.golden.atomic import inside, write_bytes
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.names import check_name
from bitloom.hls_gen.rtl.training.generate import training_manifest, training_verilog
from bitloom.overlay.platform.block_design import BlockDesign
from bitloom.overlay.platform.target import BoardTarget
from bitloom.overlay.platform.vivado import source_files
from bitloom.overlay.virtual.simulation_overlay import write_simulation_overlay

from .build import SOURCES


@dataclass(frozen=True)
class TrainingBuild:
    """The files of a training machine that were written."""

    bit: Path
    """The simulation overlay, which ``TrainingMachine`` loads on a virtual board."""
    digest: str
    """64 hex digits, of the Verilog."""
    sources: Path | None
    """Folder in which ``make`` gives the bitstream for the target's board; None without a board."""


def build_training_machine(
    folder: Path | str, name: str, machine: MachineParameters, target: BoardTarget | None = None
) -> TrainingBuild:
    """Generate a machine and write its files.

    Parameters
    ----------
    folder : Path or str
        Made if it isn't there; files of the same names are replaced.
    name : str
        Name of the build.
    machine : MachineParameters
    target : BoardTarget, optional
        Where it shall run, by default ``BoardTarget()``, a virtual board.

    Raises
    ------
    ValueError
        The name is none for a file, or the target's parts contradict each other.
    """
    check_name("training machine", name)
    target = target or BoardTarget()
    folder = Path(folder)
    modules = training_verilog(machine)
    manifest = training_manifest(name, machine)
    data = manifest.to_dict()
    sources = None
    if target.board is not None:
        sources = folder / SOURCES
        for path, content in source_files(BlockDesign.from_manifest(data, target), data, modules, {}).items():
            write_bytes(inside(folder, f"{SOURCES}/{path}"), content)
    bit = write_simulation_overlay(folder, data, "\n".join(modules.values()), target)
    return TrainingBuild(bit, manifest.digest, sources)
