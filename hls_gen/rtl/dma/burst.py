"""What the bursts of both directions have in common: beats, blocks of 16 words, and signals that never change."""

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


def burst_constants(b: Block, dma: Dma) -> tuple[Signal, Signal, Signal, Signal]:
    """Size, burst type, memory type and protection of every burst."""
    size = b.localparam("BEAT_SIZE", dma.unit_bits, 3)
    kinds = (("INCREMENT", INCREMENT, 2), ("BUFFERED", BUFFERED, 4), ("DATA_ACCESS", DATA_ACCESS, 3))
    burst, cache, protection = (b.localparam(name, value, w) for name, value, w in kinds)
    return size, burst, cache, protection


def next_block(place: Signal, dma: Dma) -> Signal:
    """Address of the first word of the block behind the one in which the word at ``place`` lies."""
    high = dma.place_bits - PLACE_BITS
    return side_by_side([const(0, PLACE_BITS), add(bits(place, PLACE_BITS, high), 1, high)])
