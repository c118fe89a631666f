"""Cycles of a layer by formula against the flow model, where results need longer to leave than beats come."""

import pytest

from bitloom.golden.network import Model
from bitloom.golden.window import Window
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.flow import simulate
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.layer_cycles import ReadTuple, workload_cycles
from bitloom.hls_gen.compiler.mapping import placed
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.split_window import SplitWindow
from tests.graph_text import network_of
from tests.networks import random_model

POSITIONS = 144
LATENCY = 6
"""Cycles from the last beat of a window to its results, on the NPU of 8 lanes."""
ROWS = SplitWindow(Window(kernel=(3, 3)), columns=3)
"""Three taps of a row side by side."""


def model(kernels: int, channels: int = 8) -> Model:
    return random_model(network_of(f"12x12x{channels} s4", f"conv {kernels} 1x1 s4, act s4"), 0, 24, 16)


def npu(**values: int) -> Npu:
    return Npu.of(
        engine="integer", feature_bits=4, weight_bits=4, shift_bits=0, acc_bits=24, kfp=8, pfp=8, raster=True, **values
    )


@pytest.mark.parametrize(
    ("kernels", "folding", "window"),
    [
        (16, {"kgp": 16, "ol": 8, "accumulators": 4}, 2),  # the steps
        (6, {"kgp": 8, "ol": 4, "accumulators": 4}, 2),
        (6, {"kgp": 8, "ol": 4}, (2 + LATENCY + 1) / 2),  # two windows may be on their way
        (5, {"kgp": 8, "ol": 2}, (3 + LATENCY + 1) / 2),
        (20, {"kgp": 16, "ol": 2}, 8 + LATENCY + 1),  # the first group of a window waits for that of the one before
        (24, {"kgp": 8, "ol": 4}, (2 + 2 + 2 + 3 * (LATENCY + 1)) / 2),
    ],
)
def test_windows_take_as_long_as_results_and_credits(kernels: int, folding: dict[str, int], window: float) -> None:
    """A window has a beat for each kernel group."""
    network = model(kernels)
    folding = npu(**folding)
    cycles = workload_cycles(placed(network, [folding]).workloads[0], folding)
    assert cycles == POSITIONS * window
    choices = CompileChoices(map_order="raster")
    design = size_memories("d", [network], folding, choices, stream_bits=64)
    flow = simulate(system(plan(network, design.npus, choices), design.npus, stream_bits=64))
    assert flow.cycles_per_frame == pytest.approx(cycles, rel=0.01)


def test_words_of_a_tuple() -> None:
    """With 12 lanes for three taps, words of maps have 4 lanes."""
    plain, lined = Npu.of(kfp=12), Npu.of(kfp=12, line_taps=3)
    joined = ReadTuple(channels=(10, 5))
    assert (joined.words(plain), joined.map_words(lined), joined.words(lined)) == (2, 5, 2)
    assert ReadTuple(channels=(10,), lines=ROWS).words(lined) == 3
    assert ReadTuple(channels=(10,), from_host=True).words(lined) == 1
    planes = ReadTuple(channels=(10,), planes=3, from_host=True)
    assert (planes.words(plain), planes.words(Npu.of(kfp=12, planes=3))) == (4, 4)


@pytest.mark.parametrize(
    ("read", "line_taps"),
    [
        (ReadTuple(channels=(10, 5)), 1),
        (ReadTuple(channels=(10, 5)), 3),
        (ReadTuple(channels=(10,), from_host=True), 3),
        (ReadTuple(channels=(10,), lines=ROWS), 3),
    ],
    ids=["plain", "gathered", "from the host", "lines"],
)
def test_layouts_have_as_many_words(read: ReadTuple, line_taps: int) -> None:
    folding = Npu.of(kfp=12, line_taps=line_taps)
    layout = read.layout(folding)
    taps = read.lines.tuple_taps if read.lines else 1
    assert layout.shape == (read.words(folding), 12)
    assert sorted(layout[layout >= 0]) == list(range(sum(read.channels) * taps))
