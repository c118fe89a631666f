"""The module of an NPU under construction, as its parts share it (hls_gen/rtl/shell/npu.py), and instances of the
parts."""

from collections.abc import Mapping
from dataclasses import dataclass

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.primitives.block import Block, Signal
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus


def place(b: Block, block: Block, name: str, prefix: str, **ports: Signal) -> dict[str, Signal]:
    """Instance of a module, with a new wire at each port for which nothing is given.

    Parameters
    ----------
    block : Block
        Module of the instance.
    name : str
        Name of the instance.
    prefix : str
        Beginning of the names of the new wires; the port's name follows.
    ports : Signal
        Signals for some of the ports.

    Returns
    -------
    dict of str to Signal
        Signal at each port, clock and reset apart.
    """
    connected = {port: signal for port, signal in ports.items() if port != "rst"}
    for port, bits in block.port_widths.items():
        if port not in connected and port not in ("clk", "rst"):
            connected[port] = b.wire(f"{prefix}{port}", bits)
    b.instance(block, name, **{**connected, "rst": ports.get("rst", b.rst)})
    return connected


@dataclass(frozen=True)
class RingWords:
    """The words that an NPU and its neighbours in the ring exchange."""

    out_bits: int
    """Width of a word of outlet "ring", which is that of the words of the NPU after."""
    from_bits: bool = False
    """The NPU is integer and the one before is binary: inlet "ring" has one bit a feature."""
    to_bits: bool = False
    """The NPU is integer and the one after is binary: outlet "ring" has one bit a feature."""
    skipped: bool = False
    """The NPU before keeps its integers in this one's skip store."""


@dataclass(frozen=True)
class NpuContext:
    """An NPU's block under construction, and the signals that all of its parts need."""

    b: Block
    """The NPU's module."""
    library: Library
    """Where modules come from."""
    npu: Npu
    """Parameters of the NPU."""
    ring: RingWords
    """Kinds of the words that it exchanges with its neighbours in the ring."""
    bus: LoadBus
    """The load bus, which writes all loadable memories."""
    settings: Mapping[str, Signal]
    """Fields of the network row that the NPU looks at (numbers of the last layers and rows), by name."""

    def place(self, block: Block, name: str, **ports: Signal) -> dict[str, Signal]:
        """Instance of a part, reset with the NPU and connected to the load bus if it has loadable memories.

        Parameters and result are those of the function `place`; new wires are called ``name_<port>``.
        """
        return place(self.b, block, name, f"{name}_", **{**ports, **self.bus.to(block)})
