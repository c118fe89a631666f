"""The common parts of bursts in both directions: beats, blocks of 16 words, and signals that never change."""

from bitloom.hls_gen.design.dma import BURST_BEATS, Dma
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, bits, const, side_by_side

PLACE_BITS = (BURST_BEATS - 1).bit_length()
"""Low bits of a word's address that say where in its block it lies. A burst ends with its block at the latest."""
INCREMENT = 1
"""Burst type: addresses count up (AMBA AXI specification, A3.4.1)."""
BUFFERED = 0b0011
"""Memory type: normal, not cacheable, may be buffered (A4.4), as AMD's DMA has it."""
DATA_ACCESS = 0b000
"""Protection: data, secure, unprivileged (A4.7)."""


def burst_ports(b: Block, dma: Dma, channel: str, *, asks: str, taken: str) -> tuple[Signal, Signal, Signal, Signal]:
    """Address, length, valid and ready of channel "ar" or "aw", on which bursts are asked for; what never changes is
    connected. ``asks`` and ``taken`` say what valid and ready mean."""
    name = f"m_axi_{channel}"
    address = b.output(f"{name}addr", dma.address_bits, means="byte address of a burst")
    length = b.output(f"{name}len", 8, means="its beats, less 1: 0 to 15")
    size = b.output(f"{name}size", 3, means="log2 of the bytes of a beat")
    burst = b.output(f"{name}burst", 2, means="1: addresses count up")
    cache = b.output(f"{name}cache", 4, means="3: may be buffered and modified")
    protection = b.output(f"{name}prot", 3, means="0: data, secure, unprivileged")
    valid = b.output_reg(f"{name}valid", means=asks)
    ready = b.input(f"{name}ready", means=taken)
    size.assign(b.localparam("BEAT_SIZE", dma.unit_bits, 3))
    burst.assign(b.localparam("INCREMENT", INCREMENT, 2))
    cache.assign(b.localparam("BUFFERED", BUFFERED, 4))
    protection.assign(b.localparam("DATA_ACCESS", DATA_ACCESS, 3))
    return address, length, valid, ready


def next_block(place: Signal, dma: Dma) -> Signal:
    """Address of the first word of the block behind the one in which the word at ``place`` lies."""
    high = dma.place_bits - PLACE_BITS
    return side_by_side([const(0, PLACE_BITS), add(bits(place, PLACE_BITS, high), 1, high)])
