"""Margins: by how much some widths of a design, those that follow from trained numbers, are wider than a network needs.

    accumulators    room for other biases, beside the sums that any weights may give
    multipliers     the default width of scales, or the largest
    additions       factors a bit wider; a bias as wide as a product of a feature with a factor

So a network of the same layers and encodings that was trained anew fits a design that is there, but for rare cases.
Memories and tables depend on the architecture alone and have none.
"""

from collections.abc import Sequence
from typing import Any

from bitloom.golden.layers.requantise import MULTIPLIER_BITS
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.widths import ACC_BITS, ADD_BIAS_BITS, ADD_FACTOR_BITS

from .needs import NpuNeeds

MULTIPLIERS = (0, 16, MULTIPLIER_BITS)
"""Widths of a design's multipliers: no multipliers, the default of `scale_to_multiplier`, and the largest."""
FACTOR_MARGIN = {False: 2, True: 1}
"""By whether LUTs multiply: bits that an addition's factors have beyond those that a network needs. With LUTs it is
fewer, since every bit takes LUTs."""
PLAIN = 2
"""Bits of the factors of an addition whose maps count alike: 1 or -1. Training gives such factors, whatever the weights
are."""


def margins(npu: Npu, npu_needs: Sequence[NpuNeeds]) -> dict[str, Any]:
    """The capacities of a fitted NPU, by name, that are larger so that networks of other weights fit it, too;
    parameters as of `bitloom.hls_gen.compiler.fitted.fitting`."""
    roomy = max(entry.needs.roomy_acc_bits for entry in npu_needs)
    wider: dict[str, Any] = {"acc_bits": max(npu.array.acc_bits, min(roomy, ACC_BITS))}
    if npu.requantises:
        bits = npu.requantisation.multiplier_bits
        wider["multiplier_bits"] = next(width for width in MULTIPLIERS if bits <= width)
    if npu.has_skip:
        in_luts = "addition" in npu.results.lut_products
        skip = present(npu.stores.skip)
        wider |= roomy_add_widths(skip.factor_bits, skip.bias_bits, npu.value_bits, in_luts=in_luts)
    return wider


def roomy_add_widths(factor_bits: int, bias_bits: int, value_bits: int, *, in_luts: bool) -> dict[str, int]:
    """Widths of a design's additions.

    Parameters
    ----------
    factor_bits, bias_bits
        Of the network's factors and biases.
    value_bits
        Of the values that are added.
    in_luts
        Whether LUTs multiply.

    Returns
    -------
    dict of str to int
        ``add_factor_bits`` and ``add_bias_bits``.
    """
    if factor_bits <= PLAIN and bias_bits <= PLAIN:
        return {"add_factor_bits": factor_bits, "add_bias_bits": bias_bits}
    factor = min(factor_bits + FACTOR_MARGIN[in_luts], ADD_FACTOR_BITS)
    return {"add_factor_bits": factor, "add_bias_bits": min(max(bias_bits, value_bits + factor), ADD_BIAS_BITS)}
