"""NPUs that save DSP blocks: PEs share multipliers, and LUTs multiply in additions."""

from collections.abc import Iterator

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.packed_products import most_kernels


def saving(npu: Npu, dear: bool) -> Iterator[Npu]:
    """The NPU; where DSP blocks are ``dear``, also with multipliers that PEs share, and with LUTs that multiply in
    additions."""
    yield npu
    if not dear or npu.engine == "binary":
        return
    kernels = min(npu.array.kgp, most_kernels(npu.array.feature_bits, npu.array.weight_bits))
    if kernels > 1:
        yield npu.unchecked(kernels_per_multiplier=kernels)
    if npu.has_skip:
        yield npu.unchecked(kernels_per_multiplier=kernels, lut_products=("addition",))
