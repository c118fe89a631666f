"""Residual networks on the simulated board whose maps wait in ways of their own. Random ones are in board_cases.py."""

import pytest

from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.sizing import size_memories
from tests.graph_text import network_of
from tests.networks import random_model
from tests.simulated import compare

from .board_cases import GRAPH_NPU


@pytest.mark.slow
@pytest.mark.parametrize("aheads", [0, 2])
def test_more_comes_by_than_the_tuple_memory_holds(aheads: int) -> None:
    """Tuples of 16 words, of which one layer reads every fourth: between two of its windows 8 others come by."""
    long = "conv_1 64 1x1 s8, act_1 s8, conv_2 4 1x1 s8, act_2 s8, conv_3 4 2x2 s8 stride=2 padding=0/0/1/1, act_3 s8"
    short = "conv_4 act_1 4 1x1 s8 stride=2, act_4 s8"
    model = random_model(network_of("5x7x4 s8", long, short, "add_5 act_3 act_4 s8", name="wide"), 1, 32)
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
    same = "16 3x3 s8 padding=0/0/2/2"
    first = f"conv_0 16 1x1 s8, act_0 s8, conv_1 {same}, act_1 s8, conv_2 {same}, act_2 s8, add_3 act_2 act_0 s8"
    second = f"conv_4 {same}, act_4 s8, conv_5 {same}, act_5 s8, add_6 act_5 add_3 s8"
    model = random_model(network_of("5x4x3 s8", first, second, name="blocks"), 1, 32)
    name = "_".join(f"{key}_{value}" for key, value in folding.items())
    compare(size_memories(name, [model], GRAPH_NPU.changed(**folding)), model)
