"""Binariser of kernels: integers of 8 bits become the bits of the kernel memory's rows, on their way there (spec A9).

    load bus, integers --> at least 0? --> collected[8 stream words] --> load bus, a bank of bits

A row comes as an integer for each of its bits: 1 where the integer is at least 0. Eight stream words of integers fill a
stream word of bits, a bank of the kernel memory, and so do what is left of a row. Nothing stalls: a bank is written in
the cycle in which its last stream word is there. Golden twin: golden/training/training_block.py, signs.
"""

from bitloom.hls_gen.design.memories.memory_map import kernel_store, memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import KERNEL_BITS, bits_for
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, any_of, bits, choose, eq, side_by_side, width
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus
from bitloom.hls_gen.rtl.primitives.text import Header

PLACE_BITS = bits_for(KERNEL_BITS - 1)
"""Width of the place of a stream word of integers among those of a bank."""


def kernel_binariser(library: Library, npu: Npu) -> Block:
    """The binariser of the kernels of an NPU with ``kernel_binariser``.

    Module ``kernel_binariser``. It takes the load bus ``load_*`` and gives another, ``bits_*``, for the kernel memory
    alone.
    """
    sent = memory_of(npu, "kernels")
    stored = kernel_store(npu)
    sizes = {"stream_bits": library.stream_bits, "row_bits": stored.width}
    latency = "0 cycles from a bank's last stream word to bits_valid"
    header = Header(__doc__, rate="one stream word a cycle", latency=latency, parameters=sizes)
    collects = sent.width > library.stream_bits  # else a row is one stream word
    b = Block(library.name("kernel_binariser", npu), header, clocked=collects, reset=False)
    bus = LoadBus.ports(b, library.stream_bits, [sent])
    sent_banks = library.banks(sent.width)
    banks = library.banks(stored.width)
    write = b.output("bits_valid", means="load bus of bits: bits_data is to be written in this cycle")
    number = b.output("bits_bank", bits_for(len(banks) - 1), means="which bank") if len(banks) > 1 else None
    row = b.output("bits_row", bits_for(stored.depth - 1), means="number of the row")
    data = b.output("bits_data", banks[0], means="contents of the bank")

    # # #

    b.comment("A stream word's integers, of which the sign alone counts.")
    here = bus.writes["kernels"]
    signs = _signs(b, bus.data)
    row.assign(bus.row)
    if bus.bank is None:
        write.assign(here)
        data.assign(signs)
        return b
    last = len(sent_banks) - 1
    w = width(bus.bank)
    place = b.wire("place", PLACE_BITS, bits(bus.bank, 0, PLACE_BITS) if w > PLACE_BITS else bus.bank)
    data.assign(_collected(b, here, place, signs, min(last, KERNEL_BITS - 1), banks[0]))
    b.comment("A bank is whole with its last stream word, and with the row's last.")
    whole = eq(bus.bank, b.localparam("LAST_BANK", last, w))
    write.assign(here & (whole if last < KERNEL_BITS else any_of(whole, eq(place, KERNEL_BITS - 1))))
    if number is not None:
        number.assign(bits(bus.bank, PLACE_BITS, w - PLACE_BITS))
    return b


def _signs(b: Block, data: Signal) -> Signal:
    """A bit for each integer of a stream word: 1 where it is at least 0."""
    integers = [bits(data, low, KERNEL_BITS) for low in range(0, width(data), KERNEL_BITS)]
    rest = side_by_side([bits(i, 0, KERNEL_BITS - 1) for i in integers])
    b.wire("magnitudes_unused", width(rest), rest)
    return b.wire("signs", len(integers), ~side_by_side([bits(i, KERNEL_BITS - 1, 1) for i in integers]))


def _collected(b: Block, here: Signal, place: Signal, signs: Signal, last: int, w: int) -> Signal:
    """The bits of a bank: those of its stream words up to number ``last``, the one at hand in its place."""
    b.comment("The bits of a bank's earlier stream words wait for its last one.")
    parts = []
    for k in range(last):
        hit = b.wire(f"at_{k}", 1, eq(place, k))
        kept = b.reg(f"bits_{k}", width(signs), init=None)
        b.on(here & hit, (kept, signs))
        parts.append(choose(hit, signs, kept, width(signs)))
    parts.append(signs)
    total = len(parts) * width(signs)
    collected = b.wire("collected" + "_and_unused_bits" * (total > w), total, side_by_side(parts))
    return bits(collected, 0, w)
