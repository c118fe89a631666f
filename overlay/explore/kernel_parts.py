"""LUTs and flip-flops around the kernel memory and in front of an NPU, by rule: nothing is fitted."""

from collections.abc import Iterator

from bitloom.hls_gen.design.memories.memory_map import kernel_store, memory_of, operand_bits
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.timing import LUT_RAM_WORDS
from bitloom.hls_gen.design.widths import KERNEL_BITS, bits_for


def by_rule(npu: Npu, stream_bits: int) -> Iterator[tuple[str, dict[str, int]]]:
    """What an NPU has around its kernel memory and in front of it.

    Parameters
    ----------
    npu
        The NPU.
    stream_bits
        Width of the stream.

    Yields
    ------
    tuple of str and dict
        Name of a module, and its ``lut`` and ``ff`` beside RAM.
    """
    if npu.array.one_memory:
        yield "operand_memory", _operand_memory(npu, stream_bits)
    if npu.array.kernel_binariser:
        yield "kernel_binariser", _binariser(npu, stream_bits)
    if npu.former_sizes:
        yield "window_former", _former(npu)


def two_maps_in_turn(npu: Npu) -> dict[str, int]:
    """``lut`` and ``ff`` of counts by which a writer takes words of two maps in turn; off by 2 LUTs at most from three
    writers by Yosys. Their row in memory ``inputs`` is a memory's."""
    count = bits_for(npu.joined_words - 1) if npu.joined_words else 0
    return {"lut": 7 + 2 * count, "ff": 4 + 3 * count} if count else {"lut": 0, "ff": 0}


def _former(npu: Npu) -> dict[str, int]:
    """Of seven formers by Yosys; LUTs are off by 8 % at most where a position may have several channels."""
    column = present(npu.former_sizes).column * npu.former_lane_bits
    kept = (column - npu.former_lane_bits) * (
        present(npu.former_sizes).line <= LUT_RAM_WORDS
    )  # a register behind LUT RAM
    choice = npu.array.word_bits * (npu.former_words - 1)
    lut = 139 + 2.04 * npu.array.word_bits + 0.425 * choice + 2.2 * column
    return {"lut": round(lut), "ff": npu.array.word_bits + present(npu.former_sizes).columns * column + kept + 38}


def _operand_memory(npu: Npu, stream_bits: int) -> dict[str, int]:
    """Choices of what is written and which row is read, and a register with the word at work."""
    banks = -(-operand_bits(npu) // stream_bits)
    return {
        "lut": npu.array.word_bits + npu.array.row_bits + bits_for(npu.sequencer.tuple_words - 1) + banks + 3,
        "ff": npu.array.word_bits + 1,
    }


def _binariser(npu: Npu, stream_bits: int) -> dict[str, int]:
    """A LUT for each bit of a bank, and a register where it waits for others."""
    words = min(-(-memory_of(npu, "kernels").width // stream_bits), KERNEL_BITS)
    bank = min(kernel_store(npu).width, stream_bits)
    return {"lut": bank + words + 3, "ff": (words - 1) * stream_bits // KERNEL_BITS}
