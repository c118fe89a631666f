"""Binariser of kernels: the rows of bits that integers make, however the stream pauses."""

import numpy as np
import pytest

from bitloom.hls_gen.compiler.fixed_kernels import integers
from bitloom.hls_gen.design.memories.memory_map import kernel_store, memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.array.kernel_binariser import kernel_binariser
from bitloom.hls_gen.rtl.primitives.memory import Library

from .bench import Bench

CASES = {
    "one_word": (32, Npu.of(kfp=3, kgp=1, shift_bits=0, kernel_binariser=True)),
    "part_of_a_bank": (32, Npu.of(kfp=5, kgp=3, shift_bits=2, kernel_binariser=True)),
    "several_banks": (32, Npu.of(kfp=11, kgp=7, shift_bits=3, kernel_binariser=True)),
    "whole_banks": (64, Npu.of(kfp=16, kgp=8, shift_bits=0, kernel_binariser=True)),
}
"""(width of the stream, an NPU); the first three share no number of banks, the last one ends with a bank."""


@pytest.mark.parametrize(
    "name", [name if name == "several_banks" else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_rows_are_the_signs_of_integers(name: str) -> None:
    stream, npu = CASES[name]
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 2, (5, kernel_store(npu).width))
    numbers = np.where(rows, rng.integers(0, 128, rows.shape), rng.integers(-128, 0, rows.shape)).astype(np.int64)
    numbers[0] = np.where(rows[0], 0, -1)  # next to the limit
    sent = memory_of(npu, "kernels")
    stored = kernel_store(npu)
    banks = -(-stored.width // stream)
    written: dict[tuple[int, int], int] = {}
    with Bench(kernel_binariser(Library(stream), npu)) as bench:
        for row, signed in enumerate(numbers):
            whole = sum((int(z) & 255) << 8 * k for k, z in enumerate(signed))
            for bank in range(-(-sent.width // stream)):
                for here in (*[0] * int(rng.integers(0, 2)), 1):  # a word for another memory changes nothing
                    data = whole >> stream * bank if here else int(rng.integers(0, 1 << 31))
                    data &= (1 << bench.widths["load_data"]) - 1
                    bench.set(load_to_kernels=here, load_row=row, load_data=data)
                    if "load_bank" in bench:
                        bench["load_bank"] = bank
                    if bench["bits_valid"]:
                        assert here
                        assert bench["bits_row"] == row
                        written[row, bench["bits_bank"] if banks > 1 else 0] = bench["bits_data"]
                    bench.tick()
                bench["load_to_kernels"] = 0
                assert not bench["bits_valid"]
    assert sorted(written) == [(row, bank) for row in range(5) for bank in range(banks)]
    mask = (1 << stored.width) - 1
    got = [sum(written[row, bank] << stream * bank for bank in range(banks)) & mask for row in range(5)]
    assert got == [sum(int(bit) << k for k, bit in enumerate(row)) for row in rows]


def test_what_the_compiler_sends_has_these_signs() -> None:
    rows = np.array([[0, 1, 0, 1]], np.uint8)
    for given, wanted in ((rows, [-1, 1, -1, 1]), (np.array([[127, 0, 5, 9]], np.uint8), [-128, 0, -6, 9])):
        assert integers(rows, given).tolist() == [wanted]
