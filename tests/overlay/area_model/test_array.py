"""The area of PEs that share multipliers, by rule, beside what Yosys made of them."""

import pytest

from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.area_model.array import multiplier_bits, sharing, sum_bits
from tests.npus import integer_npu


def npu(kfp: int, kgp: int, feature_bits: int, acc_bits: int) -> Npu:
    return integer_npu(feature_bits, 8, acc_bits, kfp=kfp, kgp=kgp, kernels_per_multiplier=2)


@pytest.mark.parametrize(("one", "luts"), [(npu(8, 4, 8, 22), (152, 147)), (npu(16, 4, 9, 24), (318, 307))])
def test_sums(one, luts):
    """Within 4 % of Yosys 0.70 (`synth_xilinx -abc9`), without carries and with them."""
    adders, _ = sum_bits(one)
    assert [round(adders / lut, 1) for lut in luts] == [1, 1]
    assert all(abs(adders / lut - 1) < 0.04 for lut in luts)


def test_multipliers():
    """A DSP block takes the addition of two weights; where products lie close, smallest operands cost LUTs.

    Flip-flops are those of `multipliers` by Yosys 0.70: 32 of 4 lanes with 8-bit features, 104 with 9 bits and 416 of
    16 lanes, 9 a lane of these for the feature, which all groups share.
    """
    assert multiplier_bits(npu(8, 4, 8, 22), 2) == (0, 8 * 8)
    assert multiplier_bits(npu(8, 4, 9, 22), 2) == (8 * 4, 8 * 17)


def test_one_that_is_left_over_has_its_own():
    assert sharing(npu(8, 5, 8, 22)) == [2, 2, 1]
