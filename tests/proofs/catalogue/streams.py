"""Proofs of what joins streams or stores: hls_gen/rtl/primitives/stream.py, ports/ping_pong.py, stores/map_fork.py,
results/signs.py, pool_unit/pass_by.py."""

from collections.abc import Iterator

from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.timing import LUT_RAM_WORDS
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.pool_unit.pass_by import maps_inside, pass_by
from bitloom.hls_gen.rtl.ports.ping_pong import ping_pong
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.results.signs import signs
from bitloom.hls_gen.rtl.stores.map_fork import map_fork
from tests.hls_gen.rtl.test_stream import diamond, forked, joined
from tests.proofs.engine import Broken, Proof, Row

ROOM = "hls_gen/rtl/primitives"
BRANCHES = (2, 3)
"""Depths of the FIFOs between a fork and a join."""


def _ping_pongs() -> Iterator[Proof]:
    """The least buffers, the largest of LUT RAM, and buffers of block RAM; two and more rows of chunks."""
    for words, width, maps in ((2, 1, 2), (4, 8, 4), (LUT_RAM_WORDS // 2, 33, 2), (LUT_RAM_WORDS, 9, 8)):
        npu = Npu.of(kfp=width, inlets=("ring", "loop"), buffer_words=words, layers=maps, acc_bits=16)
        place = bits_for(words - 1)
        yield Proof(
            name=f"ping-pong pair of 2 x {words}",
            source="hls_gen/rtl/ports/ping_pong.py",
            block=lambda npu=npu: ping_pong(Library(32, npus=[npu]), npu, npu.array.kfp),
            rules="ping_pong",
            sizes={"WIDTH": width, "PLACE": place, "MAP": bits_for(memory_of(npu, "chunks").depth - 1)},
            reach=14,
            rows=(Row("dut.buffers.mem", "in_memory", "memory_row", "word"),),
            breaks=(
                Broken(
                    "in_ready <= ~((writes_buffer ^ write_end) ? full_1_next : full_0_next);",
                    "in_ready <= 1'd1;",
                    "order",
                ),
                Broken("read_end & (reads_buffer == 1'd0)", "read_end", "offers"),
                Broken("write_end & (writes_buffer == 1'd0)", "put & (writes_buffer == 1'd0)", "whole_chunks_only"),
            ),
        )


def _ways_past() -> Iterator[Proof]:
    """The ways past a pool unit of one feature a step, and of several."""
    for ol in (1, 3):
        npu = Npu.of(engine="integer", feature_bits=4, weight_bits=4, kfp=4, kgp=3, ol=ol, pfp=ol, depthwise=True)
        yield Proof(
            name=f"way past the pool unit of {ol}",
            source="hls_gen/rtl/pool_unit/pass_by.py",
            block=lambda npu=npu: pass_by(Library(32), npu),
            rules="pass_by",
            sizes={"WIDTH": ol * npu.array.feature_bits, "SIDE": npu.map_mark_bits, "MOST": maps_inside(npu)},
            reach=8,
            breaks=(
                Broken("empty <= maps == 9'd1;", "empty <= 1'd1;", "taken_once"),
                Broken("out_data = pooled_valid ? pooled_data : in_data", "out_data = pooled_data", "step_past"),
                Broken("to_pool_ready : empty & out_ready;", "to_pool_ready : out_ready;", "taken_once"),
                Broken("if (enters & ~leaves) begin", "if (enters) begin", "none_of_nothing"),
                Broken("pooled_ready = out_ready;", "pooled_ready = 1'd1;", "pooled_taken_once"),
            ),
        )


def _joints() -> Iterator[Proof]:
    """Fork, join, and both with FIFOs between them."""
    yield Proof(
        name="fork into 3",
        source=f"{ROOM}/stream.py",
        block=lambda: forked(3),
        rules="fork",
        reach=8,
        breaks=(
            Broken("out1_valid = in_valid & ~way_done_1;", "out1_valid = in_valid;", "offered_to_who_lacks_it"),
            Broken(
                "way_done_2 <= 1'd0;\n      end\n      if (restart)",
                "end\n      if (restart)",
                "offered_to_who_lacks_it",
            ),
        ),
    )
    yield Proof(
        name="join of 3",
        source=f"{ROOM}/stream.py",
        block=lambda: joined((1, 40, 2)),
        rules="join",
        reach=6,
        breaks=(
            Broken(
                "in1_ready = out_ready & in0_valid & in2_valid;",
                "in1_ready = out_ready & in0_valid;",
                "all_taken_with_it",
            ),
        ),
    )
    yield Proof(
        name="fork, FIFOs, join",
        source=f"{ROOM}/stream.py",
        block=lambda: diamond(BRANCHES),
        rules="diamond",
        sizes={"LEAST": min(BRANCHES)},
        steps=9,
        reach=9,
        bounded="fork, FIFO and join are proved by themselves",
        breaks=(Broken("before_1_valid = in_valid & ~way_done_1;", "before_1_valid = in_valid;", "order"),),
    )


def _map_forks() -> Iterator[Proof]:
    """The fork of maps, whose words are marked with where they go."""
    npu = Npu.of(engine="integer", feature_bits=3, weight_bits=2, shift_bits=0, kfp=4, kgp=2, skip_words=4)
    parts = npu.map_marks
    yield Proof(
        name="fork of maps",
        source="hls_gen/rtl/stores/map_fork.py",
        block=lambda: map_fork(Library(32, npus=[npu]), npu, parts, parts[:2]),
        rules="map_fork",
        sizes={"WIDTH": npu.array.word_bits},
        hidden={"SKIP": npu.targets.index("skip")},
        reach=8,
        breaks=(
            Broken("for_skip = in_valid & ~sides_done_1;", "for_skip = in_valid;", "skipped_where_it_lacks"),
            Broken("goes_to_skip = in_side[3] | ~goes_on;", "goes_to_skip = in_side[3];", "skipped_where_it_lacks"),
            Broken("served_out = out_ready | ~goes_on;", "served_out = out_ready;", "taken_when_all_have_it"),
            Broken("sides_done_0 <= 1'd0;\n        sides_done_1", "sides_done_1", "offered_to_who_lacks_it"),
        ),
    )


def _signs() -> Iterator[Proof]:
    """The fork of steps, of which the signs go on."""
    npu = Npu.of(kfp=4, kgp=4, ol=2, pool=False, skip_words=4, skip_bits=3)
    side = npu.result_side_bits
    yield Proof(
        name="signs",
        source="hls_gen/rtl/results/signs.py",
        block=lambda: signs(Library(32, npus=[npu]), npu),
        rules="signs",
        sizes={"WIDTH": npu.skip_word_bits, "LANES": npu.results.ol, "SIDE": side},
        reach=8,
        breaks=(
            Broken("for_skip = in_valid & ~sides_done_1;", "for_skip = in_valid;", "kept_where_it_lacks"),
            Broken("served_skip = skip_ready | ~keeps;", "served_skip = skip_ready;", "taken_when_all_have_it"),
            Broken("sides_done_0 <= 1'd0;\n        sides_done_1", "sides_done_1", "offered_to_who_lacks_it"),
        ),
    )


PROOFS = (*_ping_pongs(), *_ways_past(), *_joints(), *_map_forks(), *_signs())
