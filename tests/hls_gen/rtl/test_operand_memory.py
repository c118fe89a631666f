"""One memory for kernels and features: rows of weights and words of features, read in turn, against a model of it."""

import random

import pytest

from bitloom.hls_gen.design.memories.memory_map import kernel_store
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.array.operand_memory import operand_memory
from bitloom.hls_gen.rtl.primitives.memory import Library

from .bench import Bench

INTEGER = {"engine": "integer", "shift_bits": 0, "acc_bits": 24}
CASES = {
    "narrow_words": Npu.of(kfp=9, kgp=5, shift_bits=2, one_memory=True, tuple_words=8, kernel_rows=20),
    "wide_words": Npu.of(
        kfp=7, kgp=1, feature_bits=6, weight_bits=2, **INTEGER, one_memory=True, tuple_words=4, kernel_rows=7
    ),
}
"""Words of features within one bank of several; and wider than a row of weights, over two banks."""


@pytest.mark.parametrize("name", ["narrow_words", pytest.param("wide_words", marks=pytest.mark.slow)])
def test_weights_and_words_keep_apart(name: str) -> None:
    npu = CASES[name]
    rng = random.Random(3)
    width = kernel_store(npu).width
    first = npu.first_kernel_row
    rows = range(npu.first_kernel_row, npu.array.kernel_rows)
    weights = {row: rng.getrandbits(width) for row in rows}
    words: dict[int, int] = {}
    with Bench(operand_memory(Library(32), npu)) as bench:
        for row, content in weights.items():
            for bank in range(-(-width // 32)):
                part = content >> 32 * bank & (1 << bench.widths["load_data"]) - 1
                bench.set(load_to_kernels=1, load_row=row, load_data=part)
                if "load_bank" in bench:
                    bench["load_bank"] = bank
                bench.tick()
        bench["load_to_kernels"] = 0  # what is for others changes nothing
        expected_row = expected_word = fetched = None
        for _ in range(300):
            write = rng.random() < 0.5
            use = rng.choice(("beat", "fetch", "none"))
            place = rng.randrange(first)
            content = rng.getrandbits(npu.array.word_bits)
            source = rng.choice(list(words)) if words and use == "fetch" else None
            row = rng.choice(rows)
            bench.set(word_write=write, word_row=place, word_data=content, beat=use == "beat", kernel_row=row)
            bench.set(fetch=source is not None, fetch_row=source or 0)
            bench.tick()
            if fetched is not None:  # a word is there two cycles after its fetch
                expected_word = fetched
            fetched = None if source is None else words[source]
            if use == "beat":
                expected_row = weights[row]
            elif source is not None:
                expected_row = None  # the RAM shows a word of features
            if write:  # a word that is read as it is written is the old one
                words[place] = content
            assert expected_row in (None, bench["row_data"])
            assert expected_word in (None, bench["features"])
