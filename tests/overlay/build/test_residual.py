"""Residual networks on the simulated board whose maps wait in ways of their own. Random ones are in board_cases.py."""

import pytest

from bitloom.golden.encoding import signed
from bitloom.golden.graph import INPUT
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.sizing import size_memories
from tests.networks import random_model
from tests.simulated import compare

from .board_cases import GRAPH_NPU


def conv(name: str, reads: str, channels: int, side: int = 1, stride: int = 1) -> tuple[Layer, Layer]:
    """A convolution and its requantisation, which is called after it."""
    act = name.replace("conv", "act")
    padding = (0, 0, side - 1, side - 1)
    window = {"kernel": (side, side), "stride": (stride, stride), "padding": padding}
    layer = Conv(name=name, out_channels=channels, weight=signed(8), inputs=(reads,), **window)
    return layer, Requantise(name=act, encoding=signed(8), inputs=(name,))


def model_of(name: str, shape: tuple[int, int, int], layers: list[Layer]) -> Model:
    height, width, channels = shape
    source = Map(height=height, width=width, channels=channels, encoding=signed(8))
    return random_model(Network(name=name, input=source, layers=tuple(layers)), 1, 32)


@pytest.mark.slow
@pytest.mark.parametrize("aheads", [0, 2])
def test_more_comes_by_than_the_tuple_memory_holds(aheads: int) -> None:
    """Tuples of 16 words, of which one layer reads every fourth: between two of its windows 8 others come by."""
    long = [*conv("conv_1", INPUT, 64), *conv("conv_2", "act_1", 4), *conv("conv_3", "act_2", 4, 2, 2)]
    add = Add(name="add_5", encoding=signed(8), inputs=("act_3", "act_4"))
    model = model_of("wide", (5, 7, 4), [*long, *conv("conv_4", "act_1", 4, 1, 2), add])
    choices = CompileChoices(map_order="raster")
    npu = GRAPH_NPU.changed(kfp=4, kgp=4, pfp=4, ol=2, aheads=aheads)
    design = size_memories(f"wide_{aheads}", [model], npu, choices)
    assert design.npus[0].sequencer.tuple_words <= 32 < 8 * 16
    compare(design, model, choices)


@pytest.mark.parametrize(
    "folding",
    [
        {"kfp": 2, "kgp": 4, "ol": 4, "pfp": 1},
        *(
            pytest.param(folding, marks=pytest.mark.slow)
            for folding in (
                {"kfp": 8, "kgp": 16, "ol": 16, "pfp": 1},
                {"kfp": 1, "kgp": 8, "ol": 4, "pfp": 2, "accumulators": 4},
                {"kfp": 4, "kgp": 8, "ol": 8, "pfp": 4, "raster": True},
                {"kfp": 2, "kgp": 16, "ol": 16, "pool": False},
            )
        ),
    ],
    ids=str,
)
def test_steps_of_several_words(folding: dict[str, int]) -> None:
    """Twice in turn a map waits for what two convolutions make of it, in stores of the sizes that are found."""
    layers: list[Layer] = [*conv("conv_0", INPUT, 16)]
    for k, read in ((1, "act_0"), (4, "add_3")):
        layers += [*conv(f"conv_{k}", read, 16, 3), *conv(f"conv_{k + 1}", f"act_{k}", 16, 3)]
        layers.append(Add(name=f"add_{k + 2}", encoding=signed(8), inputs=(f"act_{k + 1}", read)))
    model = model_of("blocks", (5, 4, 3), layers)
    name = "_".join(f"{key}_{value}" for key, value in folding.items())
    compare(size_memories(name, [model], GRAPH_NPU.changed(**folding)), model)
