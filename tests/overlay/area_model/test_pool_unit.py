"""The area of a pool unit with weights, by rule, beside what Yosys made of it."""

from bitloom.hls_gen.design.parts import present
from bitloom.overlay.area_model.pool_unit import unit_bits
from tests.npus import integer_npu


def test_unit():
    """Within 10 % of Yosys 0.70 (`synth_xilinx -abc9`): 385 LUTs and 147 flip-flops of two lanes."""
    npu = integer_npu(9, 8, 26, kfp=4, kgp=4, pfp=2, ol=1, depthwise=True, pool_tuple_words=16)
    lut, ff = unit_bits(npu, present(npu.pool_unit))
    assert abs(lut / 385 - 1) < 0.1
    assert abs(ff / 147 - 1) < 0.1
