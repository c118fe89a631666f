"""What a lane takes is what a PE takes in the area of a whole NPU."""

import pytest

from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.area_model.estimate import coefficients, of_parts
from bitloom.overlay.area_model.parts import npu_parts
from bitloom.overlay.explore.lane_area import LANES, LUTS_OF_DSP, LaneArea, lane_area


@pytest.mark.parametrize(
    ("engine", "feature_bits", "weight_bits"), [("binary", 1, 1), ("integer", 3, 2), ("integer", 8, 8)]
)
def test_a_share_of_a_pe(engine, feature_bits, weight_bits):
    npu = Npu.of(engine=engine, feature_bits=feature_bits, weight_bits=weight_bits, kfp=LANES, kgp=5, acc_bits=24,
              shift_bits=0)  # fmt: skip
    made = coefficients()
    found = of_parts([part for part in npu_parts(npu, npu.array.word_bits, 64) if part.kind.startswith("pe_")], made)
    area = lane_area(engine, feature_bits, weight_bits, 24)
    assert area.lut * LANES * 5 == pytest.approx(found["lut"] * made["flat"]["lut"])
    assert area.dsp * LANES * 5 == found["dsp"] == (160 if feature_bits == 8 else 0)


def test_price():
    assert LUTS_OF_DSP == 53_200 / 220
    assert LaneArea(3.0, 0.5).price == 3 + LUTS_OF_DSP / 2


def test_planes_one_after_another_are_shifted():
    assert lane_area("binary", 1, 1, 16, 3).lut > lane_area("binary", 1, 1, 16).lut
