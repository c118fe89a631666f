"""NPUs that differ from another in some values."""

from collections.abc import Iterator
from typing import Any

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.packed_products import most_kernels


def changed(npu: Npu, **values: Any) -> Npu:
    """The NPU with other values, without a check of them: much faster than ``dataclasses.replace``."""
    made: Npu = object.__new__(Npu)
    made.__dict__.update(npu.__dict__)
    made.__dict__.update(values)
    return made


def saving(npu: Npu, dear: bool) -> Iterator[Npu]:
    """The NPU; where DSP blocks are ``dear``, also with multipliers that PEs share, and with LUTs that multiply in
    additions."""
    yield npu
    if not dear or npu.engine == "binary":
        return
    kernels = min(npu.kgp, most_kernels(npu.feature_bits, npu.weight_bits))
    if kernels > 1:
        yield changed(npu, kernels_per_multiplier=kernels)
    if npu.skip_words:
        yield changed(npu, kernels_per_multiplier=kernels, lut_products=("addition",))
