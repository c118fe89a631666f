"""Pipelines in which binary and integer NPUs take turns: modules of equal NPUs. Random networks on them are in
board_cases.py."""

import pytest

from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.topology import pipeline
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.virtual.sim import lint

from .board_cases import MIXED_BINARY, MIXED_INTEGER


@pytest.mark.slow
def test_equal_npus_between_others() -> None:
    """NPU 1, 2 and 4 are equal, but for what comes and goes; on the way to NPU 3 words are as wide as their own."""
    npu = MIXED_INTEGER.changed(kfp=2, feature_bits=4, weight_bits=4)
    npus = pipeline([npu, npu, npu, MIXED_BINARY.changed(kfp=8), npu, npu])
    generated = generate(Design(name="equal", npus=npus))
    bits = ["npu_1_to_bits", "npu_2_to_2", "ping_pong_npu_2", "npu_1_from_bits", "ping_pong_npu_1_of_2"]
    names = ["npu_0", "npu_1", "ping_pong_npu_1", *bits, "npu_3", "ping_pong_npu_3"]
    assert [name for name in generated.modules if name.startswith(("npu_", "ping_pong"))] == names
    assert lint(generated.text) == []
