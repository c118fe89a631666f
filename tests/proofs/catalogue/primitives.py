"""Proofs of hls_gen/rtl/primitives."""

from collections.abc import Iterator
from functools import partial

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.rtl.primitives.fifo import fifo
from bitloom.hls_gen.rtl.primitives.gearbox import collector, divider
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.skid import skid
from tests.proofs.engine import Broken, Proof, Row

ROOM = "hls_gen/rtl/primitives"


def _fifos() -> Iterator[Proof]:
    """FIFOs of LUT RAM and of block RAM, of the least depth, of depths that are no power of two, and deep ones."""
    shallow = [(3, 1, 4), (8, 2, 4), (8, 5, 4), (16, 16, 4), (9, 24, 10), (33, 64, 4)]
    for width, depth, margin in (*shallow, (8, 65, 4), (12, 512, 4)):
        block_ram = depth > timing.LUT_RAM_WORDS
        has_room = "level < DEPTH_MINUS_1" if block_ram else "get | in_ready & ~(in_valid & (level == DEPTH_MINUS_1))"
        more = depth - timing.room_words(depth, margin) - block_ram
        yield Proof(
            name=f"fifo of {depth}",
            source=f"{ROOM}/fifo.py",
            block=lambda w=width, d=depth, m=margin: fifo(Library(32), w, d, m),
            rules="fifo",
            sizes={"WIDTH": width, "DEPTH": depth, "MARGIN": more, "BLOCK_RAM": int(block_ram)},
            reach=depth + 8 if depth < 17 else 12,
            rows=(Row("dut.store.mem", "in_memory", "memory_row", "word"),),
            breaks=(
                *([Broken(f"in_ready <= {has_room};", "in_ready <= 1'd1;", "order")] if depth < 9 else []),
                *([Broken("some & ~(get & (level == 1));", "some;", "order")] if depth > 1 else []),
                Broken("some & (~out_valid | out_ready)", "some", "sink.word_stays"),
            ),
            quick=depth == 2,
        )


def _collectors() -> Iterator[Proof]:
    """(bits of a word, words, side bits)."""
    for width, count, side in ((5, 1, 1), (3, 2, 2), (1, 8, 1), (24, 1, 2), (32, 3, 1)):
        several = count > 1
        yield Proof(
            name=f"collector of {count} x {width}",
            source=f"{ROOM}/gearbox.py",
            block=lambda w=width, n=count, s=side: collector(Library(32), w, n, s),
            rules="collector",
            sizes={"IN": width, "COUNT": count, "SIDE": side},
            flags=("SEVERAL",) * several + ("PLACES",) * (count > 2),
            reach=count + 5,
            breaks=(
                Broken("in_ready = ~out_valid | out_ready;", "in_ready = 1'd1;", "sink"),
                Broken("out_last <= in_last;", "out_last <= 1'd0;", "last_and_side_of_the_newest"),
                *([Broken("{ at_place[0], at_place[1] }", "at_place", "word_in_its_place")] * (count == 3)),
                *([Broken("in_last | ", "", "each_collection_once")] * several),
            ),
            quick=count == 2,
        )


def _dividers() -> Iterator[Proof]:
    """(in, out, pieces, side bits, bits of in_last_piece): a word in whole pieces, with a rest, a part of a word."""
    for width_in, width_out, pieces, side, last_piece_bits in (
        (7, 3, 3, 2, 0),
        (9, 1, 9, 1, 0),
        (64, 32, 2, 1, 0),
        (32, 7, 4, 0, 6),
        (32, 24, 1, 0, 6),
        (9, 3, 3, 2, 2),
    ):
        several = (
            Broken("~out_valid | out_ready & at_end;", "~out_valid | out_ready;", "word_after_word"),
            Broken("if (give & at_end) begin", "if (give) begin", "each_piece_once"),
        )
        yield Proof(
            name=f"divider of {width_in} to {pieces} x {width_out}",
            source=f"{ROOM}/gearbox.py",
            block=partial(
                divider, Library(32), width_in, width_out, pieces, side=side, last_piece_bits=last_piece_bits
            ),
            rules="divider",
            sizes={"IN": width_in, "OUT": width_out, "PIECES": pieces}
            | ({"SIDE": side} if side else {})
            | ({"LAST_PIECE_BITS": last_piece_bits} if last_piece_bits else {}),
            reach=pieces + 5,
            breaks=(
                Broken("is_last <= in_last;", "is_last <= 1'd0;", "last_with_the_final_piece"),
                *(several if pieces > 1 else ()),
            ),
            quick=pieces == 3,
        )


def _skids() -> Iterator[Proof]:
    """(bits of a word, side bits)."""
    for width, side in ((1, 1), (24, 2)):
        yield Proof(
            name=f"skid of {width}",
            source=f"{ROOM}/skid.py",
            block=lambda w=width, s=side: skid(Library(32), w, s),
            rules="skid",
            sizes={"IN": width, "SIDE": side},
            reach=5,
            breaks=(
                Broken("in_ready <= in_ready_next;", "in_ready <= 1'd1;", "ready_is_a_register"),
                Broken("in_ready_next = ~out_valid | out_ready;", "in_ready_next = 1'd1;", "same_word"),
                Broken("full <= ~in_ready_next;", "full <= out_valid;", "each_word_once"),
                Broken("if (~full) begin", "if (full) begin", "same_word"),
            ),
            quick=width == 1,
        )


PROOFS = (*_fifos(), *_collectors(), *_dividers(), *_skids())
