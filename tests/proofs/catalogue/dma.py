"""Proofs of the DMA's two movers, and of the bridge to its registers: hls_gen/rtl/dma."""

from collections.abc import Callable

from bitloom.hls_gen.design.dma import Dma
from bitloom.hls_gen.rtl.dma.axi3_bridge import axi3_bridge
from bitloom.hls_gen.rtl.dma.memory_reader import memory_reader
from bitloom.hls_gen.rtl.dma.memory_writer import memory_writer
from bitloom.hls_gen.rtl.primitives.block import Block
from bitloom.hls_gen.rtl.primitives.memory import Library
from tests.proofs.engine import Broken, Proof

DMA = Dma(stream_bits=32, length_bits=9)
"""Transfers of up to 127 words: longer than the room for words, so that all situations are reached."""


def _proof(mover: Callable[[Library, Dma], Block], steps: int, reach: int, *breaks: Broken, bounded: str = "") -> Proof:
    """The proof of one direction."""
    name = mover.__name__
    return Proof(
        name=name.replace("_", " "),
        source=f"hls_gen/rtl/dma/{name}.py",
        block=lambda: mover(Library(DMA.stream_bits), DMA),
        rules=name,
        sizes={"WIDTH": DMA.stream_bits, "COUNT": DMA.count_bits},
        hidden={"UNIT": DMA.unit_bits, "BYTES": DMA.stream_bits // 8},
        steps=steps,
        reach=reach,
        breaks=breaks,
        bounded=bounded,
    )


PROOFS = (
    _proof(
        memory_reader,
        1,
        12,
        Broken("reaches_end ? block_last :", "reaches_end ? 4'd15 :", "blocks_of_bursts"),
        Broken("~m_axi_arvalid & (reserved", "(reserved", "ar"),
        Broken("quiet = bursts == 3'd0;", "quiet = ~m_axi_arvalid;", "quiet_is_true"),
        Broken("~stop & ~failed;", "~failed;", "none_begins_when_stopped"),
        Broken("m_axi_rvalid & ~refused & ~failed", "m_axi_rvalid & ~failed", "nothing_behind_an_error"),
    ),
    _proof(
        memory_writer,
        12,
        14,
        Broken("~taking & ~whole)", "~taking)", "ends_with_the_last"),
        Broken("& ~stop & ~failed;", "& ~failed;", "none_begins_when_stopped"),
        Broken(
            "m_axi_wlast = (index_out == BLOCK_END) | (due == 6'd1);", "m_axi_wlast = due == 6'd1;", "last_of_a_burst"
        ),
        Broken("s_axis_tlast | full;", "s_axis_tlast;", "words_of_a_transfer"),
        bounded="tests follow whole buffers",
    ),
    Proof(
        name="bridge from AXI3",
        source="hls_gen/rtl/dma/axi3_bridge.py",
        block=lambda: axi3_bridge(Library(32), {"dma": 0x4040_0000, "device": 0x43C0_0000}),
        rules="axi3_bridge",
        steps=2,
        reach=20,
        breaks=(
            Broken("dma_awvalid = write_to_dma & ~address_sent;", "dma_awvalid = write_to_dma;", "once_each"),
            Broken("s_axi3_bresp | word_answer", "word_answer", "worst_answer"),
            Broken("write_at_device = write_counts &", "write_at_device =", "to_its_core"),
            Broken("if (word_answered & write_last) begin", "if (word_answered) begin", "answered_at_its_end"),
            Broken("s_axi3_arready = ~read_busy;", "s_axi3_arready = ~s_axi3_rvalid;", "one_burst_read"),
        ),
    ),
)
