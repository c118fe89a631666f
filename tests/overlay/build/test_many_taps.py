"""Pool units that take many taps in a beat, whose sums are wider than those of the network's windows, in designs that
are sized for it."""

import pytest

from bitloom.golden.encoding import signed
from bitloom.golden.network import Network
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.npu import Npu
from tests.graph_text import network_of
from tests.networks import model_of
from tests.simulated import compare

BYTES = signed(8)
SIZES = {"engine": "integer", "feature_bits": 8, "weight_bits": 8, "acc_bits": 32, "shift_bits": 0, "depthwise": True}
NPU = Npu.of(kfp=4, kgp=4, ol=4, pfp=16, **SIZES)
CHOICES = CompileChoices(map_order="raster")


def network(kernel: str, side: int) -> Network:
    """A channel that meets a depthwise kernel."""
    layers = f"conv_1 1 1x1 s8, requantise_1 s8, depthwise conv_2 1 {kernel} s8, requantise_2 s8"
    return network_of(f"{side}x{side}x3 s8", layers, name="taps")


@pytest.mark.parametrize(
    ("kernel", "values"),
    [
        ("3x3", {"pool_line_taps": 3, "pool_lane_lines": 4}),
        pytest.param("9x1", {"pool_lines": 9}, marks=pytest.mark.slow),
        pytest.param("7x7", {"pool_line_taps": 16, "pool_lane_lines": 16}, marks=pytest.mark.slow),
    ],
    ids=["lines that share lanes", "lines", "whole kernel"],
)
def test_sums_of_a_beat_may_be_wider_than_those_of_a_window(kernel: str, values: dict[str, int]) -> None:
    npu = NPU.changed(**values)
    model = model_of(network(kernel, 12), 1, npu)
    design = size_memories("taps", [model], npu, CHOICES)
    sums = 8 + 8 + (design.npus[0].pool_unit.beat.most_rows * design.npus[0].pool_unit.beat.columns - 1).bit_length()
    assert design.npus[0].array.acc_bits < sums
    compare(design, model, CHOICES, batches=(1, 3))
