"""The folder of a project for openXC7; files/README.md says what is in it."""

from collections.abc import Mapping
from pathlib import Path

from bitloom.hls_gen.rtl.dma.zynq import zynq_verilog
from bitloom.overlay.platform.block_design import DEVICE, DMA, BlockDesign
from bitloom.overlay.platform.dma_core import OWN

FIXED = Path(__file__).with_name("files")
"""Files that are the same for every design."""


def suits(design: BlockDesign) -> bool:
    """Whether a design can do without AMD's cores: a Zynq-7000, our DMA, and nothing in front of the device."""
    return design.arch == "zynq" and design.dma is OWN and design.packetizer is None


def openxc7_files(design: BlockDesign, top: str, modules: Mapping[str, str]) -> dict[str, bytes]:
    """The project; the same content for the same arguments.

    Parameters
    ----------
    design
        A block design that `suits`; what it is made of here follows from its DMA and its addresses.
    top
        Name of the device's top module.
    modules
        The device's Verilog for synthesis, by module.

    Returns
    -------
    dict
        Content of each file by its path in the folder of the project.
    """
    bases = tuple((name, design.address_map[core][0]) for name, core in (("dma", DMA), ("device", DEVICE)))
    verilog = {**modules, **zynq_verilog(design.dma_sizes, top, bases)}
    device, package, speed = design.part
    values = {"DEVICE": device + package, "PART": device + package + speed, "CLOCK_MHZ": f"{design.clock_mhz:g}"}
    part = "".join(f"{name} := {value}\n" for name, value in values.items())
    return {
        **{f"src/{name}.v": text.encode() for name, text in verilog.items()},
        **{f"{'src/' * (path.suffix == '.v')}{path.name}": path.read_bytes() for path in sorted(FIXED.iterdir())},
        "part.mk": part.encode(),
    }
