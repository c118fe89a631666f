"""A device and our DMA for a Zynq-7000 without AMD's cores: what stands between them and the processor's ports.

    M_AXI_GP0 --s_axi3--> axi3_bridge --> s_axi, s_axi_dma: bitloom_system
    S_AXI_HP0 <--m_axi---------------------- its DMA
    interrupts of DMA and device

Port S_AXI_HP0 has 64 bits. With streams of 32 bits its lower half is used, as bit 32BitEn of the port's registers
AFI.RDCHAN_CTRL and AFI.WRCHAN_CTRL wants it (AMD UG585, "AXI_HP Interfaces").

Parts: axi3_bridge.py, system.py in hls_gen/rtl/dma.
"""

from collections.abc import Mapping
from functools import lru_cache

import veriloggen
from veriloggen.core import vtypes as vt

from bitloom.hls_gen.check.once import check_once
from bitloom.hls_gen.design.dma import Dma
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, bits, const, side_by_side
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header
from bitloom.hls_gen.rtl.shell.context import place
from bitloom.hls_gen.rtl.shell.top import AXI

from .axi3_bridge import LENGTH_BITS, axi3_bridge
from .system import system

TOP = "bitloom_zynq"
"""Name of the module."""
PORT_BITS = 64
"""Bits of port S_AXI_HP0."""


@lru_cache(maxsize=8)
def zynq_verilog(dma: Dma, device: str, bases: tuple[tuple[str, int], ...]) -> dict[str, str]:
    """The Verilog of DMA and bridge, and of the module above them and a device.

    Parameters
    ----------
    dma
        Sizes of the DMA.
    device
        Name of the device's top module.
    bases
        Addresses of the registers of "dma" and "device".

    Returns
    -------
    dict
        Module name -> text, the top module ``bitloom_zynq`` first, without the device; not to be changed.
    """
    veriloggen.reset()
    modules = zynq(Library(dma.stream_bits), dma, device, dict(bases)).modules()
    check_once("\n".join(modules.values()), TOP)
    del modules[device]
    return modules


def zynq(library: Library, dma: Dma, device: str, bases: Mapping[str, int]) -> Block:
    """The module ``bitloom_zynq``; parameters are those of `zynq_verilog`."""
    header = Header(
        __doc__,
        rate="that of its parts",
        latency="that of its parts",
        parameters={"stream_bits": dma.stream_bits, **{name: f"0x{base:08X}" for name, base in bases.items()}},
    )
    b = Block(TOP, header)
    bridge = axi3_bridge(library, bases)
    inside = system(library, dma, device)
    of_bridge, of_system = {}, {}
    for name, w in bridge.port_widths.items():
        if name.startswith("s_axi3_"):
            of_bridge[name] = _outer(b, bridge, name, w)
    for name, w in inside.port_widths.items():
        if name.startswith("m_axi_"):
            of_system[name] = _memory_port(b, inside, name, w)
        elif name.endswith(("_introut", "irq")):
            of_system[name] = _outer(b, inside, name, w)

    # # #

    for core, prefix in (("device", "s_axi_"), ("dma", "s_axi_dma_")):
        for signal, _, w in AXI:
            of_system[f"{prefix}{signal}"] = of_bridge[f"{core}_{signal}"] = b.wire(f"{core}_{signal}", w)
    for name, w in inside.port_widths.items():
        if name.startswith(("s_axis_", "m_axis_")):
            of_system[name] = b.wire(f"{name}_unused", w)  # streams that the system shows
    place(b, bridge, "bridge", "bridge_", **of_bridge)
    place(b, inside, "system", "system_", **of_system)
    return b


def _outer(b: Block, block: Block, name: str, w: int) -> Signal:
    """A port of ``b`` for the one of that name of a block in it."""
    make = b.input if isinstance(block.m.io_variable[name], vt.Input) else b.output
    return make(name, w, means=block.meanings[name])


def _memory_port(b: Block, inside: Block, name: str, w: int) -> Signal:
    """Signal for a port of the DMA for memory, ``w`` bits; the port of ``b`` is as wide as that of S_AXI_HP0."""
    width = LENGTH_BITS if name.endswith("len") else 2 if name.endswith("size") else w
    width = PORT_BITS if name.endswith("data") else PORT_BITS // 8 if name.endswith("strb") else width
    outer = _outer(b, inside, name, width)
    if width == w:
        return outer
    inner = b.wire(f"{name}_whole", w)
    if width < w:
        outer.assign(bits(inner, 0, width))
        b.wire(f"{name}_unused", w - width, bits(inner, width, w - width))
    elif isinstance(inside.m.io_variable[name], vt.Input):
        inner.assign(bits(outer, 0, w))
        b.wire(f"{name}_unused", width - w, bits(outer, w, width - w))
    else:
        outer.assign(side_by_side([inner, const(0, width - w)]))
    return inner
