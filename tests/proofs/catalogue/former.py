"""Proofs of the window former: hls_gen/rtl/former/window_former.py."""

from collections.abc import Iterator

from bitloom.hls_gen.design.memories.window_former import former_fields
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.former.window_former import window_former
from bitloom.hls_gen.rtl.primitives.memory import Library
from tests.proofs.engine import Broken, Proof

FORMER = {"window_former": True, "former_channels": 1, "former_column": 2, "former_columns": 2, "former_line": 4}
NPUS = {
    "windows of a word": Npu.of(kfp=4, kgp=1, **FORMER),
    "windows of two words": Npu.of(kfp=2, kgp=1, **FORMER),
    "windows of two words, ahead": Npu.of(kfp=2, kgp=1, former_ahead=1, **FORMER),
}


SEVERAL = (Broken("(fresh | last_word) ? 1'd0 :", "fresh ? 1'd0 :", "word_of_the_window"),)
"""Breaks of formers that count the words of a window."""
BREAKS = {
    "windows of a word": (
        Broken("if (free) begin", "if (1'd0) begin", "each_word_once"),
        Broken("free = ~offering | out_ready;", "free = 1'd1;", "leaves_in_time"),
        Broken("~(on_map | begins)", "1'd1", "position_of_a_word"),
    ),
    "windows of two words": (
        *SEVERAL,
        Broken("out_ready & last_word", "out_ready", "leaves_in_time"),
        Broken(" | x_ends & y_ends);", ");", "when_it_is_empty"),
    ),
    "windows of two words, ahead": (
        *SEVERAL,
        Broken("if (first_word) begin", "if (offering) begin", "word_of_the_window"),
        Broken("offering | ~first_word;", "offering;", "each_word_once"),
    ),
}


def _formers() -> Iterator[Proof]:
    for name, npu in NPUS.items():
        yield Proof(
            name=name,
            source="hls_gen/rtl/former/window_former.py",
            block=lambda npu=npu: window_former(Library(32), npu),
            rules="window_former",
            sizes={"WORDS": npu.former_words, "WIDTH": npu.array.word_bits},
            hidden={
                "FIELDS": ",".join(field for field, _ in former_fields(npu)),
                "POSITION_BITS": bits_for(npu.array.plane_lanes - 1),
                "COPIED": (ahead := present(npu.former_sizes).ahead),
            },
            flags=(*["SEVERAL"] * (npu.former_words > 1), *["AHEAD"] * ahead),
            steps=3,
            reach=14,
            breaks=BREAKS[name],
        )


PROOFS = (*_formers(),)
