"""The folder of sources for a bitstream; files/README.md says what is in it.

BlockDesign, Verilog --> design.tcl, core.tcl, design.mk, component.xml     tables of this design
our DMA, if it has it    --> dma.tcl, dma.xml, dma/                         the same for the DMA
files/               --> package_ip.tcl, build.tcl, Makefile, ...           the same for every design
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bitloom.hls_gen.rtl.cores import core_verilog
from bitloom.hls_gen.rtl.dma.dma import dma_core
from bitloom.overlay.platform.block_design import BlockDesign
from bitloom.overlay.platform.dma_core import OWN

from .component import component_xml
from .core import IpCore, dma_ip_core
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
        f"{design.name}.manifest.json": json.dumps(manifest, indent=1, sort_keys=True) + "\n",
    }
    if design.dma is OWN:
        texts = {f"dma/{name}.v": text for name, text in core_verilog(dma_core, design.dma_sizes).items()}
        dma = dma_ip_core(design.dma_sizes, design.dma_parameters, list(texts))
        written |= {**texts, "dma.tcl": core_tcl(dma, design), "dma.xml": component_xml(dma)}
    return {
        **{name: text.encode() for name, text in written.items()},
        **{path.name: path.read_bytes() for path in sorted(FIXED.iterdir())},
        **programs,
    }
