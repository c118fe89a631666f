"""LUTs and flip-flops around the kernel memory, by rule: what a formula need not be fitted to."""

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import KERNEL_BITS


def binariser_bits(npu: Npu, stream_bits: int) -> dict[str, int]:
    """LUTs and flip-flops of the binariser of kernels: a LUT for each bit of a bank, a register where it waits.

    Parameters
    ----------
    npu
        An NPU with ``kernel_binariser``.
    stream_bits
        Width of the stream.

    Returns
    -------
    dict of str to int
        ``lut`` and ``ff``.
    """
    words = min(-(-npu.memory("kernels").width // stream_bits), KERNEL_BITS)
    bank = min(npu.kernel_store.width, stream_bits)
    return {"lut": bank + words + 3, "ff": (words - 1) * stream_bits // KERNEL_BITS}
