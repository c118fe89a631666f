"""DMA between memory and a device's streams, with the registers of AMD's AXI DMA in direct register mode (PG021).

    s_axi --> channel mm2s --> memory_reader: m_axi_mm2s --> m_axis_mm2s
         `--> channel s2mm --> memory_writer: s_axis_s2mm --> m_axi_s2mm

A reset by CONTROL is one of both channels: nothing new goes to memory, and when all bursts under way have ended,
everything is as after rst. A word that is offered at m_axis_mm2s is withdrawn then.

Parts: channel.py, memory_reader.py, memory_writer.py in hls_gen/rtl/dma; axi_lite.py in hls_gen/rtl/shell.
"""

from collections.abc import Mapping

from veriloggen.core import vtypes as vt

from bitloom.hls_gen.design.dma import CHANNEL, CONTROL, MM2S, S2MM, Dma
from bitloom.hls_gen.design.registers import ADDRESS_BITS
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, all_of, any_of, choose, const, eq
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.register_word import field_of
from bitloom.hls_gen.rtl.primitives.text import Header
from bitloom.hls_gen.rtl.shell.axi_lite import DATA_BITS, axi_lite
from bitloom.hls_gen.rtl.shell.context import place

from .channel import channel
from .memory_reader import memory_reader
from .memory_writer import memory_writer

TOP = "bitloom_dma"
"""Name of the module."""


def dma_core(library: Library, dma: Dma) -> Block:
    """The module ``bitloom_dma``."""
    header = Header(
        __doc__,
        rate="a word a cycle each way; one transfer a channel at a time",
        latency="6 cycles from a write of LENGTH to the first burst that is read",
        parameters={"stream_bits": dma.stream_bits, "address_bits": dma.address_bits, "length_bits": dma.length_bits},
    )
    b = Block(TOP, header)
    bus = axi_lite(b)
    movers = {"mm2s": library.get(memory_reader, library, dma), "s2mm": library.get(memory_writer, library, dma)}
    outside = {side: _outer_ports(b, side, mover) for side, mover in movers.items()}
    for side in movers:
        outside[side]["irq"] = b.output(f"{side}_introut", means=f"interrupt of channel {side}")

    # # #

    b.comment("Reset of both channels: it waits for what is under way.")
    resetting = b.reg("resetting")
    restart = b.wire("restart")
    reset = b.wire("reset", 1, any_of(b.rst, restart))
    quiet, asked = [], []
    shown: Signal = const(0, DATA_BITS)
    for (side, mover), base in zip(movers.items(), (MM2S, S2MM)):
        b.comment(f"Channel {side}.")
        ports = {"written": bus.write_data, "resetting": resetting, "stop": resetting, **outside[side]}
        address = {}
        for r in CHANNEL:
            name = r.name.lower()
            address[name] = b.localparam(f"{side}_{name}".upper(), base + r.offset, ADDRESS_BITS, base=16)
            ports[f"write_{name}"] = bus.write(b, f"{side}_write_{name}", address[name])
        block = library.get(channel, library, dma)
        data = place(b, mover, f"{side}_mover", f"{side}_", rst=reset, **_own_ports(mover, ports))
        ports = {"internal_error": const(0, 1), "moved": data["words"], **ports, **data}  # a reader moves all words
        inside = place(b, block, f"{side}_channel", f"{side}_", rst=reset, **_own_ports(block, ports))
        quiet.append(data["quiet"])
        asked.append(ports["write_control"])
        for name, number in address.items():
            shown = choose(eq(bus.read_address, number), inside[name], shown, DATA_BITS)
    asks_reset = b.wire("asks_reset", 1, all_of(any_of(*asked), field_of(bus.write_data, CONTROL.field("RESET"))))
    b.on(restart, (resetting, 0))
    b.on(asks_reset, (resetting, 1))
    restart.assign(all_of(resetting, *quiet))
    b.comment("Reads.")
    bus.shown.assign(shown)
    bus.can_show.assign(const(1, 1))
    return b


def _own_ports(block: Block, ports: Mapping[str, Signal]) -> dict[str, Signal]:
    """Those of ``ports`` that the block has."""
    return {port: signal for port, signal in ports.items() if port in block.port_widths}


def _outer_ports(b: Block, side: str, mover: Block) -> dict[str, Signal]:
    """Ports of ``b`` for the memory and the stream of a mover, by the mover's names: ``m_axi_araddr`` of side mm2s is
    ``m_axi_mm2s_araddr`` of ``b``."""
    outer = {}
    for name, w in mover.port_widths.items():
        bus, _, signal = name.rpartition("_")
        if bus in ("m_axi", "m_axis", "s_axis"):
            make = b.input if isinstance(mover.m.io_variable[name], vt.Input) else b.output
            outer[name] = make(f"{bus}_{side}_{signal}", w, means=mover.meanings[name])
    return outer
