"""Stream to memory: writes one packet to a buffer by AXI4 bursts.

    s_axis --> FIFO --> w --> memory --> b
                 `--> a burst is whole --> aw

The packet ends with tlast, or where the buffer is full: then without tlast it is an error. A burst has 16 beats at most
and ends where the address is a multiple of 16 words, so that it never crosses a boundary of 4 KB. It is begun when all
of its words are in the FIFO, so that it never waits for the stream. Bursts have one ID; all bytes are written. Behind
an answer with an error no burst is begun.
"""

from bitloom.hls_gen.design.dma import MOST_BURSTS, WRITE_WORDS, Dma
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

COUNT_BITS = bits_for(MOST_BURSTS)
DUE_BITS = bits_for(WRITE_WORDS + 1)  # one waits behind the FIFO's memory


def memory_writer(library: Library, dma: Dma) -> Block:
    """The module ``memory_writer``."""
    header = Header(
        __doc__,
        rate="a word a cycle, as long as memory takes one",
        latency="2 cycles from a burst's last word at s_axis to awvalid and wvalid",
        parameters={"stream_bits": dma.stream_bits, "address_bits": dma.address_bits},
    )
    b = Block("memory_writer", header)
    start = b.input("start", means="pulse: a transfer begins; none is under way")
    first = b.input("place", dma.place_bits, means="with start: address of the buffer's first word, in words")
    words = b.input("words", dma.count_bits, means="with start: words of the buffer, at least 1")
    stop = b.input("stop", means="no word is taken and no burst is begun any more")
    quiet = b.output("quiet", means="no burst is under way")
    ended = b.output("ended", means="pulse: the packet is in memory, or nothing is written any more behind an error")
    internal_error = b.output_reg("internal_error", means="the buffer is full and its last word had no tlast")
    slave_error = b.output_reg("slave_error", means="memory answered SLVERR")
    decode_error = b.output_reg("decode_error", means="memory answered DECERR")
    moved = b.output_reg("moved", dma.count_bits, init=None, means="words that were taken")
    awaddr, awlen, awvalid, awready = burst_ports(
        b, dma, "aw", asks="a burst begins", taken="the burst will be written"
    )
    wdata = b.output("m_axi_wdata", dma.stream_bits, means="a word")
    wstrb = b.output("m_axi_wstrb", dma.stream_bits // 8, means="all bytes are written")
    wlast = b.output("m_axi_wlast", means="the burst's last beat")
    wvalid = b.output("m_axi_wvalid", means="there is a word")
    wready = b.input("m_axi_wready", means="the word is taken")
    bresp = b.input("m_axi_bresp", RESPONSE_BITS, means="0: written; 2 (SLVERR), 3 (DECERR): not")
    bvalid = b.input("m_axi_bvalid", means="a burst has been written, or not")
    bready = b.output("m_axi_bready", means="the answer is taken")
    tdata = b.input("s_axis_tdata", dma.stream_bits)
    tvalid = b.input("s_axis_tvalid")
    tready = b.output("s_axis_tready")
    tlast = b.input("s_axis_tlast")

    # # #

    b.comment("Words: until tlast, or until the buffer is full.")
    busy, taking, failed = b.reg("busy"), b.reg("taking"), b.reg("failed")
    left = b.reg("left", dma.count_bits, init=None)  # words that the buffer has room for
    gather_place = b.reg("gather_place", dma.place_bits, init=None)  # of the burst that is gathered
    index = b.reg("index", PLACE_BITS, init=None)  # of the next word that comes, in its block
    index_out = b.reg("index_out", PLACE_BITS, init=None)  # of the next word that leaves
    whole = b.reg("whole")  # all words of the burst that is gathered have been taken
    begins = b.wire("begins")
    room = b.wire("store_in_ready")
    tready.assign(all_of(taking, room, any_of(~whole, begins), ~stop))
    takes = b.wire("takes", 1, tvalid & tready)
    full = b.wire("full", 1, eq(left, 1))
    packet_end = b.wire("packet_end", 1, any_of(tlast, full))
    block_end = b.localparam("BLOCK_END", (1 << PLACE_BITS) - 1, PLACE_BITS)
    b.on(start, (busy, 1), (taking, 1), (left, words), (moved, 0))
    b.on(start, (gather_place, first), *((count, bits(first, 0, PLACE_BITS)) for count in (index, index_out)))
    b.on(takes, (left, sub(left, 1, dma.count_bits)), (moved, add(moved, 1, dma.count_bits)))
    b.on(takes, (index, add(index, 1, PLACE_BITS)))
    b.on(takes & packet_end, (taking, 0))
    b.on(takes & full & ~tlast, (internal_error, 1))
    store = place_block(
        b,
        fifo(library, dma.stream_bits, WRITE_WORDS),
        "words_store",
        "store_",
        in_valid=takes,
        in_data=tdata,
        in_ready=room,
        out_data=wdata,
        room=b.wire("room_unused"),
    )

    b.comment("Bursts: begun when they are whole.")
    bursts = b.reg("bursts", COUNT_BITS)  # begun and not answered
    due = b.reg("due", DUE_BITS)  # words of bursts that have begun, which have not left
    burst_place = b.reg("burst_place", dma.place_bits, init=None)
    burst_last = b.reg("burst_last", PLACE_BITS, init=None)
    awaddr.assign(side_by_side([const(0, dma.unit_bits), burst_place]))
    awlen.assign(resize(burst_last, 8))
    most = b.localparam("MOST_BURSTS", MOST_BURSTS, COUNT_BITS)
    begins.assign(all_of(whole, ~awvalid, bursts < most, ~stop, ~failed))
    b.on(awready, (awvalid, 0))
    beats_less_1 = b.wire("beats_less_1", PLACE_BITS, add(index, ~bits(gather_place, 0, PLACE_BITS), PLACE_BITS))
    b.on(begins, (awvalid, 1), (whole, 0), (burst_place, gather_place), (burst_last, beats_less_1))
    b.on(begins, (gather_place, next_block(gather_place, dma)))
    b.on(all_of(takes, any_of(packet_end, eq(index, block_end))), (whole, 1))
    # all bursts but the packet's last one end with their block; the last one ends with the last word that is due
    wlast.assign(any_of(eq(index_out, block_end), eq(due, 1)))
    wstrb.assign(const(-1, dma.stream_bits // 8))
    # a word may leave before its address was taken: whoever takes the address may wait for the word
    wvalid.assign(all_of(store["out_valid"], nonzero(due)))
    store["out_ready"].assign(all_of(wready, nonzero(due)))
    leaves = b.wire("leaves", 1, wvalid & wready)
    b.on(leaves, (index_out, add(index_out, 1, PLACE_BITS)))
    begun = choose(begins, add(beats_less_1, 1, DUE_BITS), 0, DUE_BITS)
    b.on(None, (due, sub(due + b.wire("begun", DUE_BITS, begun), leaves, DUE_BITS)))
    answered = b.wire("answered", 1, bvalid & bready)
    bready.assign(nonzero(bursts))
    b.on(begins & ~answered, (bursts, add(bursts, 1, COUNT_BITS)))
    b.on(answered & ~begins, (bursts, sub(bursts, 1, COUNT_BITS)))

    b.comment("The end: all is answered.")
    refused = b.wire("refused", 1, answered & bits(bresp, RESPONSE_BITS - 1, 1))
    b.on(refused, (failed, 1), (taking, 0))
    b.on(refused & ~failed, (slave_error, ~bits(bresp, 0, 1)), (decode_error, bits(bresp, 0, 1)))
    quiet.assign(eq(bursts, 0))
    ended.assign(all_of(busy, quiet, any_of(failed, ~taking & ~whole)))
    b.on(ended, (busy, 0))
    return b
