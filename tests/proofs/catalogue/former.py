"""Proofs of the window former, hls_gen/rtl/former/window_former.py, and of the line former,
hls_gen/rtl/sequencer/line_former.py."""

from collections.abc import Iterator

from bitloom.hls_gen.design.memories.window_former import former_fields
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.former.window_former import window_former
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.sequencer.line_former import line_former
from bitloom.hls_gen.rtl.sequencer.spec import SequencerSpec
from tests.proofs.engine import Broken, Proof, Row

FORMER = {"window_former": True, "former_channels": 1, "former_column": 2, "former_columns": 2, "former_line": 4}
NPUS = {
    "windows of a word": Npu.of(kfp=4, kgp=1, **FORMER),
    "windows of two words": Npu.of(kfp=2, kgp=1, **FORMER),
    "windows of two words, ahead": Npu.of(kfp=2, kgp=1, former_ahead=1, **FORMER),
}


BREAKS = {
    "windows of a word": (
        Broken("if (free) begin", "if (1'd0) begin", "each_word_once"),
        Broken("free = ~offering | out_ready;", "free = 1'd1;", "leaves_in_time"),
        Broken("~(on_map | begins)", "1'd1", "step_of_a_word"),
    ),
    "windows of two words": (
        Broken("(fresh | last_word) ? 1'd0 :", "fresh ? 1'd0 :", "word_of_the_window"),
        Broken("out_ready & last_word", "out_ready", "leaves_in_time"),
        Broken(" | x_ends & y_ends;", ";", "when_it_is_empty"),
    ),
    "windows of two words, ahead": (
        Broken("(fresh | last_word) ? 1'd0 :", "fresh ? 1'd0 :", "each_word_once"),
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


SIZES = {"kgp": 1, "ol": 1, "pool_tuple_words": 2, "windows": 4, "layers": 2, "pool_words": 4, "input_words": 4}
BITS = Npu.of(kfp=2, pfp=2, pool_line_taps=2, **SIZES)
INTEGERS = Npu.of(
    engine="integer", feature_bits=2, weight_bits=2, shift_bits=0, acc_bits=8, kfp=1, pfp=1, pool_line_taps=3, **SIZES
)
TWO_LINES = Npu.of(kfp=2, pfp=1, pool_line_taps=2, pool_lines=2, pool_line_words=4, **SIZES)
SHARED = Npu.of(kfp=2, pfp=2, pool_line_taps=2, pool_lane_lines=2, pool_line_words=4, **SIZES)
LINES = {
    "lines of bits": (
        BITS,
        (
            Broken("waits = on_map & ~in_valid;", "waits = 1'd0;", "each_window_once"),
            Broken("blocked = hit_last & ~out_ready;", "blocked = 1'd0;", "each_word_once"),
            Broken("before_1 <= on_map & ~steps_last;", "before_1 <= on_map;", "taps_of_the_window"),
            Broken("hit_last ? layer_stride_minus_1 : hit_left - 5'd1;", "hit_left - 5'd1;", "each_window_once"),
        ),
    ),
    "lines of integers": (
        INTEGERS,
        (
            Broken("    .write_row(word),", "    .write_row(1'd0),", "taps_of_the_window"),
            Broken("before_2 <= before_1 &", "before_2 <= on_map &", "taps_of_the_window"),
            Broken("on_map & ~positions_last;", "on_map & ~steps_last;", "each_window_once"),
            Broken("(layer_upcoming == last_layer) ? 8'd0 :", "", "layer_after_layer"),
        ),
    ),
    "two lines": (
        TWO_LINES,
        (
            Broken("above_1 <= ~lines_last;", "above_1 <= 1'd1;", "taps_of_the_window"),
            Broken("complete = hit_last & line_hit_last;", "complete = hit_last;", "each_window_once"),
            Broken("place <= line_ends ? 2'd0 :", "place <=", "taps_of_the_window"),
            Broken("line_hit_last ? layer_line_stride_minus_1 : line", "line", "each_window_once"),
        ),
    ),
    "lines that share lanes": (
        SHARED,
        (
            Broken("above_1 <= ~lines_last;", "above_1 <= 1'd1;", "taps_of_the_window"),
            Broken("moves & (on_map & layer_shares_lanes);", "moves & layer_shares_lanes;", "taps_of_the_window"),
            Broken("layer_shares_lanes ? { held_lines, in_data[0] } : in_data", "in_data", "taps_of_the_window"),
            Broken("layer_shares_lanes ? above_1 & layer_lines_before : 1'd1", "1'd1", "taps_of_the_window"),
        ),
    ),
}
"""Pool sequencers' NPUs, and breaks, of line formers."""


def _line_formers() -> Iterator[Proof]:
    for name, (npu, breaks) in LINES.items():
        spec = SequencerSpec(present(npu.pool_sequencer))
        beat = spec.sequencer.beat
        rows = beat.rows
        kept = 4 if beat.most_rows > 1 else 0
        w = npu.array.feature_bits
        lowest = sum(1 << k for k in range(w - 1, spec.sequencer.map_bits, w))  # in each lane
        yield Proof(
            name=name,
            source="hls_gen/rtl/sequencer/line_former.py",
            block=lambda spec=spec: line_former(Library(64), spec),
            rules="line_former",
            sizes={
                "TAPS": spec.sequencer.beat.columns,
                **({"ROWS": rows} if rows > 1 else {}),
                "WIDTH": spec.sequencer.map_bits,
            },
            hidden={"LOWEST": lowest} if npu.engine == "integer" else {},
            flags=("KEEPS",) * (kept > 0) + ("TWO_LINES",) * (rows > 1) + ("SHARED",) * (beat.lane_lines > 1),
            steps=2,
            reach=12,
            rows=(
                *(Row("dut.words_before.mem", f"written_{k}", f"row_{k}", f"word_{k}") for k in range(2)),
                *(Row("dut.lines_before.mem", f"kept_is_{k}", f"at_{k}", f"kept_{k}") for k in range(kept)),
            ),
            breaks=breaks,
        )


PROOFS = (*_formers(), *_line_formers())
