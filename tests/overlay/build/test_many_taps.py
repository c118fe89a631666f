"""Pool units that take many taps in a beat, whose sums are wider than those of the network's windows, in designs that
are sized for it."""

import pytest

from bitloom.golden.encoding import signed
from bitloom.golden.layer import Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.grouped import DepthwiseConv
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.network import Network
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.npu import Npu
from tests.networks import model_of
from tests.simulated import compare

BYTES = signed(8)
SIZES = {"engine": "integer", "feature_bits": 8, "weight_bits": 8, "acc_bits": 32, "shift_bits": 0, "depthwise": True}
NPU = Npu.of(kfp=4, kgp=4, ol=4, pfp=16, **SIZES)
CHOICES = CompileChoices(map_order="raster")


def network(kernel: tuple[int, int], side: int) -> Network:
    """A channel that meets a depthwise kernel."""
    layers = (
        Conv(name="conv_1", out_channels=1, kernel=(1, 1), weight=BYTES),
        Requantise(name="requantise_1", encoding=BYTES),
        DepthwiseConv(name="conv_2", out_channels=1, kernel=kernel, weight=BYTES),
        Requantise(name="requantise_2", encoding=BYTES),
    )
    return Network(name="taps", input=Map(height=side, width=side, channels=3, encoding=BYTES), layers=layers)


@pytest.mark.parametrize(
    ("kernel", "values"),
    [
        ((3, 3), {"pool_line_taps": 3, "pool_lane_lines": 4}),
        pytest.param((9, 1), {"pool_lines": 9}, marks=pytest.mark.slow),
        pytest.param((7, 7), {"pool_line_taps": 16, "pool_lane_lines": 16}, marks=pytest.mark.slow),
    ],
    ids=["lines that share lanes", "lines", "whole kernel"],
)
def test_sums_of_a_beat_may_be_wider_than_those_of_a_window(kernel: tuple[int, int], values: dict[str, int]) -> None:
    npu = NPU.changed(**values)
    model = model_of(network(kernel, 12), 1, npu)
    design = size_memories("taps", [model], npu, CHOICES)
    sums = 8 + 8 + (design.npus[0].pool_unit.beat.most_rows * design.npus[0].pool_unit.beat.columns - 1).bit_length()
    assert design.npus[0].array.acc_bits < sums
    compare(design, model, CHOICES, batches=(1, 3))
