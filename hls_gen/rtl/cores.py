"""From sizes of a core that stands beside a device, such as the DMA, to checked Verilog."""

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Protocol, TypeVar

import veriloggen
from veriloggen.core import vtypes as vt

from bitloom.hls_gen.check.once import check_once
from bitloom.hls_gen.rtl.primitives.block import Block
from bitloom.hls_gen.rtl.primitives.memory import Library


class Sizes(Hashable, Protocol):
    """Sizes of a core."""

    @property
    def stream_bits(self) -> int:
        """Bits of a word of the device's streams."""


S = TypeVar("S", bound=Sizes)
CoreBuilder = Callable[[Library, S], Block]
"""Makes the top module of a core, such as ``dma_core``."""


@lru_cache(maxsize=16)
def core_verilog(core: CoreBuilder[S], sizes: S) -> dict[str, str]:
    """The Verilog of a core, held to the rules of hls_gen.check; the same text on every run.

    Returns
    -------
    dict
        Module name -> text, the top module first; not to be changed.
    """
    veriloggen.reset()
    modules = core(Library(sizes.stream_bits), sizes).modules()
    check_once("\n".join(modules.values()), next(iter(modules)))
    return modules


@lru_cache(maxsize=16)
def core_ports(core: CoreBuilder[S], sizes: S) -> tuple[tuple[str, str, int], ...]:
    """Ports of a core: name, "in" or "out", width in bits."""
    veriloggen.reset()
    block = core(Library(sizes.stream_bits), sizes)
    directions = {name: "in" if isinstance(port, vt.Input) else "out" for name, port in block.m.io_variable.items()}
    return tuple((name, direction, block.port_widths.get(name, 1)) for name, direction in directions.items())
