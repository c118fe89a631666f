"""The folder of sources for a bitstream; files/README.md says what is in it.

BlockDesign, Verilog --> design.tcl, core.tcl, design.mk, component.xml     tables of this design
our DMA, packetizer      --> dma.tcl, dma.xml, dma/, ...                    the same for each, if it is there
files/               --> package_ip.tcl, build.tcl, Makefile, ...           the same for every design
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bitloom.overlay.platform.block_design import BlockDesign

from .component import component_xml
from .core import IpCore, cores_beside
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
        If the block design has no board.
    """
    verilog = {f"src/{name}.v": text for name, text in modules.items()}
    core = IpCore.of(design, list(verilog), manifest["top"])
    written = {
        **verilog,
        "design.tcl": design_tcl(design, list(programs)),
        "core.tcl": core_tcl(core, design),
        "design.mk": design_mk(design),
        "component.xml": component_xml(core),
        f"{design.name}.manifest.json": design.manifest_text(manifest),
    }
    for name, beside in cores_beside(design).items():
        written |= beside.verilog
        written |= {f"{name}.tcl": core_tcl(beside.core, design), f"{name}.xml": component_xml(beside.core)}
    return {
        **{name: text.encode() for name, text in written.items()},
        **{path.name: path.read_bytes() for path in sorted(FIXED.iterdir())},
        **programs,
    }
