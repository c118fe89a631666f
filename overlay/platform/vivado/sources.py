"""The folder of sources for a bitstream; files/README.md says what is in it.

BlockDesign, Verilog --> design.tcl, core.tcl, design.mk, component.xml     tables of this design
files/               --> package_ip.tcl, build.tcl, Makefile, ...           the same for every design
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bitloom.overlay.platform.block_design import BlockDesign
from bitloom.overlay.platform.dma_core import AMD

from .component import component_xml
from .core import IpCore
from .tables import core_tcl, design_mk, design_tcl

FIXED = Path(__file__).with_name("files")
"""Files that are the same for every design."""


def source_files(
    design: BlockDesign, manifest: Mapping[str, Any], modules: Mapping[str, str], programs: Mapping[str, bytes]
) -> dict[str, bytes]:
    """The sources for a bitstream; the same content for the same arguments.

    Parameters
    ----------
    design
        The block design, which must have a board.
    manifest
        The manifest's JSON data.
    modules
        Verilog for synthesis by module.
    programs
        Compiled networks: content of each file by its name.

    Returns
    -------
    dict
        Content of each file by its path in the folder of the sources.

    Raises
    ------
    ValueError
        If the block design has no board, or our DMA, which the scripts don't package yet.
    """
    if design.dma is not AMD:
        raise ValueError(
            f"block design {design.name}: sources for a bitstream need dma {AMD.name}, got {design.dma.name}"
        )
    verilog = {f"src/{name}.v": text for name, text in modules.items()}
    core = IpCore.of(design, list(verilog), manifest["top"])
    written = {
        **verilog,
        "design.tcl": design_tcl(design, list(programs)),
        "core.tcl": core_tcl(core, design),
        "design.mk": design_mk(design),
        "component.xml": component_xml(core),
        f"{design.name}.manifest.json": json.dumps(manifest, indent=1, sort_keys=True) + "\n",
    }
    return {
        **{name: text.encode() for name, text in written.items()},
        **{path.name: path.read_bytes() for path in sorted(FIXED.iterdir())},
        **programs,
    }
