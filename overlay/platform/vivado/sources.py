"""Writes the folder of sources for a bitstream; what is in it: files/README.md.

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


def write_sources(
    folder: Path | str,
    design: BlockDesign,
    manifest: Mapping[str, Any],
    modules: Mapping[str, str],
    programs: Sequence[Path],
) -> Path:
    """Write the sources to ``folder`` and return it. The same content for the same arguments.

    design : with its board. modules : name -> Verilog for synthesis. programs : compiled networks, which are copied.
    Older sources there are replaced; what Vivado made (work/ and output/) stays.
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
    """Remove what write_sources wrote to ``folder``, and the folder if nothing else is in it."""
    shutil.rmtree(folder / "src", ignore_errors=True)
    fixed = [path.name for path in FIXED.iterdir()]
    for pattern in ("*.tcl", "design.mk", "component.xml", "*.manifest.json", "*.program.npz", *fixed):
        for path in folder.glob(pattern):
            path.unlink()
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
