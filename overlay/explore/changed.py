"""NPUs that differ from another in some values."""

from collections.abc import Iterator
from typing import Any

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.packed_products import most_kernels


def changed(npu: Npu, **values: Any) -> Npu:
    """The NPU with other values by flat name, without a check of them: much faster than ``Npu.changed``."""
    return npu.unchecked(**values)


def saving(npu: Npu, dear: bool) -> Iterator[Npu]:
    """The NPU; where DSP blocks are ``dear``, also with multipliers that PEs share, and with LUTs that multiply in
    additions."""
    yield npu
    if not dear or npu.engine == "binary":
        return
    kernels = min(npu.array.kgp, most_kernels(npu.array.feature_bits, npu.array.weight_bits))
    if kernels > 1:
        yield changed(npu, kernels_per_multiplier=kernels)
    if npu.has_skip:
        yield changed(npu, kernels_per_multiplier=kernels, lut_products=("addition",))
