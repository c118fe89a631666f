"""Memory of the array: kernels."""

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import ONE_PORT
from bitloom.hls_gen.design.timing import LUT_RAM_WORDS
from bitloom.hls_gen.design.widths import KERNEL_BITS

from .memory import FieldWidths, Rows


def array_memories(npu: Npu) -> dict[str, Rows]:
    """Memory ``kernels`` as it is loaded: to a binariser each stored bit is an integer, below 0 for a 0. The program
    says where a layer's rows begin, since some come down the stream."""
    bits = KERNEL_BITS if npu.array.kernel_binariser else 1
    fields = [(name, width * bits) for name, width in stored_fields(npu)]
    return {"kernels": Rows(npu.array.kernel_rows, fields, counted_as="kernel_rows")}


def stored_fields(npu: Npu) -> FieldWidths:
    """A row of kernels as the NPU stores it: weights of all PEs for a word, and how the word's sums count."""
    weights = ("weights", npu.array.kgp * npu.row_weights * npu.array.weight_bits)
    return [weights, *([("code", npu.code_bits)] if npu.code_bits else [])]


def kernel_ram_style(npu: Npu, kernel_ram: str) -> str:
    """How the kernel memory of an NPU is built for a value of ``kernel_ram``: as that says, or as LUT RAM of one port.

    A LOAD waits until all frames have left, so that no kernel row is read while rows are written, but where weights are
    streamed. One address for both takes half a LUT a bit, two take two thirds.
    """
    in_luts = kernel_ram == "distributed" or (kernel_ram == "auto" and npu.array.kernel_rows <= LUT_RAM_WORDS)
    apart = npu.loader.stream_weights or npu.array.one_memory
    return ONE_PORT if in_luts and not apart else kernel_ram
