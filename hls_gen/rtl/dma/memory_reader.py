"""Memory to stream: reads a buffer by AXI4 bursts and gives it as one packet.

    start --> bursts --> ar --> memory --> r --> FIFO --> m_axis, tlast with the last word

A burst has 16 beats at most and ends where the address is a multiple of 16 words, so that it never crosses a boundary
of 4 KB. It is asked for once the FIFO has room for all of it, so that rready never falls while words are on their way.
Bursts have one ID and come in order. Behind a word that comes with an error nothing is given, and nothing is asked for.
"""

from bitloom.hls_gen.design.dma import BURST_BEATS, MOST_BURSTS, READ_WORDS, Dma
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    add,
    all_of,
    any_of,
    bits,
    choose,
    const,
    eq,
    nonzero,
    resize,
    side_by_side,
    sub,
)
from bitloom.hls_gen.rtl.primitives.fifo import fifo
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header
from bitloom.hls_gen.rtl.shell.axi_lite import RESPONSE_BITS
from bitloom.hls_gen.rtl.shell.context import place as place_block

from .burst import PLACE_BITS, burst_ports, next_block

ROOM_BITS = bits_for(READ_WORDS)
COUNT_BITS = bits_for(MOST_BURSTS)


def memory_reader(library: Library, dma: Dma) -> Block:
    """The module ``memory_reader``."""
    header = Header(
        __doc__,
        rate="a word a cycle, as long as memory gives one",
        latency="2 cycles from start to arvalid, and 2 from r to m_axis",
        parameters={"stream_bits": dma.stream_bits, "address_bits": dma.address_bits},
    )
    b = Block("memory_reader", header)
    start = b.input("start", means="pulse: a transfer begins; none is under way")
    first = b.input("place", dma.place_bits, means="with start: address of its first word, in words")
    words = b.input("words", dma.count_bits, means="with start: its words, at least 1")
    stop = b.input("stop", means="no burst is asked for any more")
    quiet = b.output("quiet", means="no burst is under way")
    ended = b.output("ended", means="pulse: the last word was taken, or nothing comes any more behind an error")
    slave_error = b.output_reg("slave_error", means="memory answered SLVERR")
    decode_error = b.output_reg("decode_error", means="memory answered DECERR")
    araddr, arlen, arvalid, arready = burst_ports(
        b, dma, "ar", asks="a burst is asked for", taken="the burst will be read"
    )
    rdata = b.input("m_axi_rdata", dma.stream_bits, means="a word")
    rresp = b.input("m_axi_rresp", RESPONSE_BITS, means="0: read; 2 (SLVERR), 3 (DECERR): not")
    rlast = b.input("m_axi_rlast", means="the burst's last beat")
    rvalid = b.input("m_axi_rvalid", means="there is a word")
    rready = b.output("m_axi_rready", means="the word is taken")
    tdata = b.output("m_axis_tdata", dma.stream_bits)
    tvalid = b.output("m_axis_tvalid")
    tready = b.input("m_axis_tready")
    tlast = b.output("m_axis_tlast")

    # # #

    b.comment("Bursts: what is left of the buffer, and room for its words.")
    busy, failed = b.reg("busy"), b.reg("failed")
    ask_place = b.reg("ask_place", dma.place_bits, init=None)  # of the next burst
    left = b.reg("left", dma.count_bits)  # words that have not been asked for
    to_leave = b.reg("to_leave", dma.count_bits, init=None)  # words that have not left
    reserved = b.reg("reserved", ROOM_BITS)  # words that have been asked for and not left
    bursts = b.reg("bursts", COUNT_BITS)
    burst_place = b.reg("burst_place", dma.place_bits, init=None)
    burst_last = b.reg("burst_last", PLACE_BITS, init=None)
    araddr.assign(side_by_side([const(0, dma.unit_bits), burst_place]))
    arlen.assign(resize(burst_last, 8))
    block_last = b.wire("block_last", PLACE_BITS, ~bits(ask_place, 0, PLACE_BITS))  # beats to the block's end, less 1
    reaches = b.wire("reaches_end", 1, left > resize(block_last, dma.count_bits))
    left_last = b.wire("left_last", PLACE_BITS, sub(bits(left, 0, PLACE_BITS), 1, PLACE_BITS))
    ask_last = b.wire("ask_last", PLACE_BITS, choose(reaches, block_last, left_last, PLACE_BITS))
    room = b.localparam("ROOM", READ_WORDS - BURST_BEATS, ROOM_BITS)
    most = b.localparam("MOST_BURSTS", MOST_BURSTS, COUNT_BITS)
    can_ask = all_of(nonzero(left), ~arvalid, reserved <= room, bursts < most, ~stop, ~failed)
    asks = b.wire("asks", 1, can_ask)
    b.on(start, (busy, 1), (left, words), (to_leave, words), (ask_place, first))
    b.on(arready, (arvalid, 0))
    b.on(asks, (arvalid, 1), (burst_place, ask_place), (burst_last, ask_last))
    asked = b.wire("asked", ROOM_BITS, choose(asks, add(ask_last, 1, ROOM_BITS), 0, ROOM_BITS))
    b.on(asks, (ask_place, next_block(ask_place, dma)))
    b.on(asks, (left, sub(left, resize(asked, dma.count_bits), dma.count_bits)))

    b.comment("Words: none behind an error.")
    arrives = b.wire("arrives", 1, rvalid & rready)
    refused = b.wire("refused", 1, bits(rresp, RESPONSE_BITS - 1, 1))
    b.on(arrives & refused, (failed, 1))
    b.on(all_of(arrives, refused, ~failed), (slave_error, ~bits(rresp, 0, 1)), (decode_error, bits(rresp, 0, 1)))
    place_block(
        b,
        fifo(library, dma.stream_bits, READ_WORDS),
        "words_store",
        "store_",
        in_valid=all_of(rvalid, ~refused, ~failed),
        in_data=rdata,
        in_ready=rready,
        out_valid=tvalid,
        out_ready=tready,
        out_data=tdata,
        room=b.wire("room_unused"),
    )
    tlast.assign(eq(to_leave, 1))
    leaves = b.wire("leaves", 1, tvalid & tready)
    b.on(leaves, (to_leave, sub(to_leave, 1, dma.count_bits)))
    b.on(None, (reserved, sub(reserved + asked, leaves, ROOM_BITS)))
    burst_ends = b.wire("burst_ends", 1, arrives & rlast)
    b.on(asks & ~burst_ends, (bursts, add(bursts, 1, COUNT_BITS)))
    b.on(burst_ends & ~asks, (bursts, sub(bursts, 1, COUNT_BITS)))
    quiet.assign(eq(bursts, 0))
    ended.assign(all_of(busy, any_of(leaves & tlast, failed & quiet)))
    b.on(ended, (busy, 0))
    return b
