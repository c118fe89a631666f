"""Write the folder of sources for a bitstream; files/README.md says what is in it.

    BlockDesign, Verilog --> design.tcl, core.tcl, design.mk, component.xml     tables of this design
    files/               --> package_ip.tcl, build.tcl, Makefile, ...           the same for every design
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bitloom.overlay.platform.block_design import BlockDesign

from .component import component_xml
from .core import IpCore
from .tables import core_tcl, design_mk, design_tcl

FIXED = Path(__file__).with_name("files")
"""Files that are the same for every design."""


def write_sources(
    folder: Path | str,
    design: BlockDesign,
    manifest: Mapping[str, Any],
    modules: Mapping[str, str],
    programs: Sequence[Path],
) -> Path:
    """Write the sources; the same content for the same arguments.

    Older sources in the folder are replaced; what Vivado made (work/ and output/) stays.

    Parameters
    ----------
    folder
        Where to write; made if it isn't there.
    design
        The block design, which must have a board.
    manifest
        The manifest's JSON data.
    modules
        Verilog for synthesis by module.
    programs
        Files of compiled networks, which are copied.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ValueError
        If the block design has no board.
    """
    folder = Path(folder)
    clear_sources(folder)
    (folder / "src").mkdir(parents=True)
    for name, text in modules.items():
        (folder / "src" / f"{name}.v").write_text(text)
    core = IpCore.of(design, [f"src/{name}.v" for name in modules])
    written = {
        "design.tcl": design_tcl(design, [path.name for path in programs]),
        "core.tcl": core_tcl(core, design),
        "design.mk": design_mk(design),
        "component.xml": component_xml(core),
        f"{design.name}.manifest.json": json.dumps(manifest, indent=1, sort_keys=True) + "\n",
    }
    for name, text in written.items():
        (folder / name).write_text(text)
    for path in (*sorted(FIXED.iterdir()), *programs):
        shutil.copyfile(path, folder / path.name)
    return folder


def clear_sources(folder: Path) -> None:
    """Remove what ``write_sources`` wrote, and the folder too if nothing else is in it."""
    shutil.rmtree(folder / "src", ignore_errors=True)
    fixed = [path.name for path in FIXED.iterdir()]
    for pattern in ("*.tcl", "design.mk", "component.xml", "*.manifest.json", "*.program.npz", *fixed):
        for path in folder.glob(pattern):
            path.unlink()
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
