"""A lane takes as much as a PE takes in the area of a whole NPU."""

from bitloom.overlay.explore.lane_area import lane_area


def test_planes_one_after_another_are_shifted():
    assert lane_area("binary", 1, 1, 16, 3).lut > lane_area("binary", 1, 1, 16).lut
