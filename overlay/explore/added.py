"""Whether a folding lets a map that is added lie in the skip store as the results leave that it is added to."""

from functools import lru_cache

from bitloom.hls_gen.compiler.layout import UNUSED, regroup, result_layout
from bitloom.hls_gen.compiler.planned_layer import added_in_steps
from bitloom.hls_gen.design.npu import Npu


def added_fits(npu: Npu, added: int, kernels: int) -> bool:
    """Whether the NPU can add a map to the results of a layer.

    Parameters
    ----------
    npu
        Its folding.
    added
        Channels of the map.
    kernels
        Kernels of the layer.
    """
    widths = [unit.pfp for unit in (npu.pool_unit,) if unit] + [npu.results.ol] * npu.depthwise + [npu.array.kfp]
    return _fits(added, kernels, npu.array.kgp, npu.results.ol, tuple(widths))


def fills_steps(npu: Npu, kernels: int) -> bool:
    """Whether the integers of a layer fill the steps of a binary NPU, so that no lane has a sign of nothing."""
    return not (result_layout(kernels, 1, npu.array.kgp, npu.results.ol) == UNUSED).any()


@lru_cache(maxsize=4096)
def _fits(added: int, kernels: int, kgp: int, ol: int, widths: tuple[int, ...]) -> bool:
    """The same by numbers; ``widths`` are those of the words that the map goes through."""
    words = result_layout(added, 1, kgp, ol)
    for width in widths:
        words = regroup(words, width)
    return added_in_steps(words, result_layout(kernels, 1, kgp, ol))
