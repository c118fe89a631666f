"""The pool's queue: a row for each word of the longest tuple, in design, layout and Verilog."""

import pytest

from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.rtl.pool_unit.pool_unit import pool_unit
from bitloom.hls_gen.rtl.primitives.memory import Library


@pytest.mark.parametrize(
    ("pool_words", "pool_tuple_words", "bits"), [(256, 3, 2), (256, 16, 4), (4, 256, 2), (64, 1, 1), (64, 64, 6)]
)
def test_rows_and_fields_follow_the_longest_tuple(pool_words: int, pool_tuple_words: int, bits: int) -> None:
    npu = Npu.of(pool_words=pool_words, pool_tuple_words=pool_tuple_words)
    assert present(npu.pool_unit).index_bits == memory_of(npu, "pool_layers").field("words_minus_1").width == bits
    assert memory_of(npu, "pool_olds").field("word").width == (pool_words - 1).bit_length()
    library = Library(32)
    text = pool_unit(library, npu).modules()["pool_unit"]
    assert f"  lut_ram #(.WIDTH({present(npu.pool_unit).pfp}), .DEPTH({1 << bits})) queue (\n" in text
