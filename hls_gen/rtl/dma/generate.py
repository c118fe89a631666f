"""From sizes of a DMA to checked Verilog."""

from functools import lru_cache

import veriloggen
from veriloggen.core import vtypes as vt

from bitloom.hls_gen.check import check
from bitloom.hls_gen.design.dma import Dma
from bitloom.hls_gen.rtl.primitives.memory import Library

from .dma import TOP, dma_core


@lru_cache(maxsize=8)
def dma_verilog(dma: Dma) -> dict[str, str]:
    """The Verilog of a DMA, held to the rules of hls_gen.check; the same text on every run.

    Returns
    -------
    dict
        Module name -> text, the top module ``bitloom_dma`` first; not to be changed.
    """
    veriloggen.reset()
    modules = dma_core(Library(dma.stream_bits), dma).modules()
    check("\n".join(modules.values()), TOP)
    return modules


@lru_cache(maxsize=8)
def dma_ports(dma: Dma) -> tuple[tuple[str, str, int], ...]:
    """Ports of ``bitloom_dma``: name, "in" or "out", width in bits."""
    veriloggen.reset()
    block = dma_core(Library(dma.stream_bits), dma)
    ways = {name: "in" if isinstance(port, vt.Input) else "out" for name, port in block.m.io_variable.items()}
    return tuple((name, way, block.port_widths.get(name, 1)) for name, way in ways.items())
