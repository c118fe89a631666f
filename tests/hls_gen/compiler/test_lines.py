"""Lines of kernels: what a line former is told to make are the taps of the layer's own windows. Whole networks on
hardware with line formers are in tests/overlay/build/board_cases.py."""

from unittest.mock import patch

import numpy as np
import pytest

from bitloom.golden.window import Window
from bitloom.golden.zoo import mlperf_tiny
from bitloom.hls_gen.compiler import lines
from bitloom.hls_gen.compiler.layout import split_pool
from bitloom.hls_gen.compiler.lines import form_array_lines, form_pool_lines
from bitloom.hls_gen.compiler.lowering import lowered_for
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.fuzz.pick import Pick
from bitloom.overlay.fuzz.random_networks import IntegerChoices, binary_network, depthwise_network, integer_network
from tests.networks import model_of
from tests.simulated import tally

LINES = {
    "line_taps": 3,
    "pool_line_taps": 3,
    "pool_lines": 2,
    "depthwise": True,
    "half_even": 1,
    "bias_fraction_bits": 6,
}
BITS = {"feature_bits": 9, "weight_bits": 8, "shift_bits": 0, "acc_bits": 32}
INTEGER = Npu.of(engine="integer", kfp=9, kgp=4, pfp=2, ol=2, **BITS, **LINES)
BINARY = Npu.of(kfp=10, kgp=6, pfp=3, ol=2, line_taps=5, pool_line_taps=3)


def columns_read(window: Window, height: int, width: int) -> np.ndarray:
    """(windows, taps): the column of the map that each tap of a window reads, -1 beside the map."""
    _, columns = window.reads(height, width)
    return np.where((columns >= 0) & (columns < width), columns, -1)


@pytest.mark.sample(1)
@pytest.mark.parametrize("npu", [INTEGER, BINARY], ids=["integer", "binary"])
@pytest.mark.parametrize("order", ["pull", "raster"])
def test_line_formers_make_the_taps_of_windows(npu: Npu, order: str) -> None:
    def same(pick: Pick) -> list[str]:
        binary = npu.engine == "binary"
        maker = pick.of((integer_network, depthwise_network))
        network = binary_network(pick, 8) if binary else maker(pick, IntegerChoices.of(npu))
        lowered = lowered_for(model_of(network, pick.seed(), npu), [npu])
        windows = dict[tuple[str, str], tuple[Window, int, int]]()
        for layer, workload in zip(lowered.layers, lowered.workloads):
            windows["array", layer.name] = workload.window.window, layer.height, layer.width
            if layer.pool is not None:
                split = split_pool(npu, layer.out_channels, layer.levels, layer.pool.window, layer.reduction)
                windows["pool", layer.name] = split.formed, *workload.window.output_size(layer.height, layer.width)
        with patch.object(lines, "pays", lambda *_: True):
            behind, of_array = form_array_lines(lowered, [npu], order)
        _, of_pools = form_pool_lines(behind, [npu], order)
        formed = {("array", name): each for name, each in of_array.items()}
        formed |= {("pool", name): each for name, each in of_pools.items()}
        words = []
        for place, each in formed.items():
            window, height, width = windows[place]
            read = columns_read(window, height, width)[: each.windows]
            np.testing.assert_array_equal(each.columns(), read)
            if each.window.kernel[0] > 1:
                words.append("lines")
                last = np.minimum(window.kernel[0], each.window.kernel[0]) - 1
                ends = np.flatnonzero(each.line_hits())
                assert {*window.reads(height, width)[0][:, last].tolist()} & {*range(height)} <= {*ends.tolist()}
            words += [place[0], f"{place[0]} behind padding"] if (read[0] < 0).any() else [place[0]]
        return words or ["none"]

    words = tally(same, 40)
    assert words["array"] >= 3
    assert npu.engine == "binary" or words["lines"] >= 3
    assert words["pool behind padding"] >= 3
    assert npu.engine == "binary" or words["array behind padding"] >= 3


def test_a_tuple_memory_in_front_of_a_skip_store_fills_its_blocks() -> None:
    """So that words of a map come while another one is read: 512 words take as many blocks of RAM as 128."""
    model = mlperf_tiny.seeded(mlperf_tiny.ic())
    npu = INTEGER.changed(kfp=24, kgp=16, pfp=16, ol=8)
    sizes = {
        lines: size_memories("residual", [model], npu.changed(line_taps=lines)).npus[0].sequencer.tuple_words
        for lines in (1, 3)
    }
    assert sizes[1] < 512 == sizes[3]
