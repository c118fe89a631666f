"""Memory of the array: kernels."""

from bitloom.hls_gen.design.npu import Npu
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
    weights = ("weights", npu.array.kgp * npu.array.row_weights * npu.array.weight_bits)
    return [weights, *([("code", npu.code_bits)] if npu.code_bits else [])]
