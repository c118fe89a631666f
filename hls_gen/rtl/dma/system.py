"""A device and its DMA, connected: what stands between a processor's registers and its memory.

    s_axi_dma --> bitloom_dma <--m_axi_mm2s, m_axi_s2mm--> memory
                  | ^ m_axis_mm2s --> s_axis, m_axis --> s_axis_s2mm
                  v |
    s_axi ------> device

The streams between both are shown at outputs.

Parts: dma.py in hls_gen/rtl/dma; the device is a design's top module.
"""

from functools import lru_cache

import veriloggen
from veriloggen.core import vtypes as vt

from bitloom.hls_gen.check.once import check_once
from bitloom.hls_gen.design.dma import SYSTEM_TOP, Dma
from bitloom.hls_gen.rtl.primitives.block import Block
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header
from bitloom.hls_gen.rtl.shell.context import place
from bitloom.hls_gen.rtl.shell.top import AXI

from .dma import dma_core

SIDES = {"s_axis": "mm2s", "m_axis": "s2mm"}
"""Stream of the device, and the channel of the DMA that it is connected to."""


@lru_cache(maxsize=8)
def system_verilog(dma: Dma, device: str) -> dict[str, str]:
    """The Verilog of a DMA and of the module above it and a device whose top module is called ``device``.

    Returns
    -------
    dict
        Module name -> text, the top module ``bitloom_system`` first, without the device; not to be changed.
    """
    veriloggen.reset()
    modules = system(Library(dma.stream_bits), dma, device).modules()
    check_once("\n".join(modules.values()), SYSTEM_TOP)
    del modules[device]
    return modules


def _device(name: str, stream_bits: int) -> Block:
    """A module with the ports of a device, and nothing in it."""
    b = Block(name)
    for stream, given in (("s_axis", False), ("m_axis", True)):
        for signal, w, forward in (("tdata", stream_bits, 1), ("tvalid", 1, 1), ("tready", 1, 0), ("tlast", 1, 1)):
            (b.output if given == bool(forward) else b.input)(f"{stream}_{signal}", w)
    for signal, direction, w in AXI:
        (b.input if direction == "in" else b.output)(f"s_axi_{signal}", w)
    b.output("irq")
    return b


def system(library: Library, dma: Dma, device: str) -> Block:
    """The module ``bitloom_system``."""
    core = dma_core(library, dma)
    header = Header(
        __doc__,
        rate="that of its parts",
        latency="that of its parts",
        parameters={"stream_bits": dma.stream_bits, "address_bits": dma.address_bits, "device": device},
    )
    b = Block(SYSTEM_TOP, header)
    inside = _device(device, dma.stream_bits)
    of_device, of_dma = {}, {}
    for stream, side in SIDES.items():
        other = f"{'m_axis' if stream == 's_axis' else 's_axis'}_{side}"
        for signal in ("tdata", "tvalid", "tready", "tlast"):
            shown = b.output(f"{stream}_{signal}", inside.port_widths[f"{stream}_{signal}"])
            of_device[f"{stream}_{signal}"] = of_dma[f"{other}_{signal}"] = shown
    for block, ports, prefix in ((inside, of_device, "s_axi_"), (core, of_dma, "s_axi_dma_")):
        for name, w in block.port_widths.items():
            if name not in ("clk", "rst") and name not in ports:
                make = b.input if isinstance(block.m.io_variable[name], vt.Input) else b.output
                means = block.meanings.get(name) or f"of the DMA's registers: as {name}" * (block is core)
                ports[name] = make(name.replace("s_axi_", prefix), w, means=means)

    # # #

    place(b, core, "dma", "dma_", **of_dma)
    place(b, inside, "device", "device_", **of_device)
    return b
