"""Formed taps and formed lines: rewritten layers against golden. Whole networks on hardware with a window former are in
tests/overlay/build/board_cases.py."""

from unittest.mock import patch

import numpy as np
import pytest

from bitloom.golden.layers.conv import Weighted
from bitloom.hls_gen.compiler import lines
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.formed_taps import formable_taps
from bitloom.hls_gen.compiler.host_tail import split
from bitloom.hls_gen.compiler.lines import form_array_lines
from bitloom.hls_gen.compiler.lowering import lowered_for
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import pipeline
from bitloom.overlay.fuzz.pick import Pick
from bitloom.overlay.fuzz.random_networks import IntegerChoices, binary_network, integer_network
from tests.graph_text import network_of
from tests.networks import few_and_many, model_of, random_images, random_model
from tests.random_networks.first_layers import first_layer_network
from tests.simulated import tally

from .agreement import device_results

INTEGER = Npu.of(engine="integer", feature_bits=9, weight_bits=8, shift_bits=0, kfp=16, acc_bits=32, window_former=True)
BITS = Npu.of(kfp=12, kgp=4, shift_bits=0, window_former=True)
PLANES = Npu.of(kfp=20, kgp=4, planes=4, shift_bits=0, window_former=True)
LINES = INTEGER.changed(kfp=15, line_taps=5, window_former=False)
LINES_OF_BITS = Npu.of(kfp=10, line_taps=5)


@few_and_many(20, 60)
@pytest.mark.parametrize("npu", [INTEGER, BITS, PLANES], ids=["integer", "bits", "planes"])
def test_the_rewritten_layer_computes_the_same(npu: Npu, count: int) -> None:
    """Each layer behind a window former, wherever a former can feed it."""

    def same(pick: Pick) -> list[str]:
        network = first_layer_network(pick, npu)
        seed = pick.seed()
        model = model_of(network, seed, npu)
        images = random_images(network, 2, seed)
        others = sum(isinstance(layer, Weighted) for layer in network.layers) - 1
        npus = pipeline([npu, *[npu.changed(planes=0)] * others])
        formed, windows = formable_taps(lowered_for(model, npus), npus, "raster")
        np.testing.assert_array_equal(device_results(formed, images), model.forward(images))
        return sorted(windows)

    words = tally(same, count)
    assert words["conv_1"] >= count // 3
    assert words["conv_2"] >= count // 20


@few_and_many(20, 60)
@pytest.mark.parametrize("npu", [LINES, LINES_OF_BITS], ids=["integer", "bits"])
def test_a_layer_behind_a_line_former_computes_the_same(npu: Npu, count: int) -> None:
    """Each layer behind a line former, wherever a former can feed it."""

    def same(pick: Pick) -> str:
        network = binary_network(pick, 8) if npu.engine == "binary" else integer_network(pick, IntegerChoices.of(npu))
        seed = pick.seed()
        model = model_of(network, seed, npu)
        images = random_images(network, 2, seed)
        with patch.object(lines, "pays", lambda *_: True):
            behind, formed = form_array_lines(lowered_for(model, [npu]), [npu], "raster")
        np.testing.assert_array_equal(device_results(behind, images), split(model)[0].forward(images))
        return "lines" if formed else "none"

    assert tally(same, count)["lines"] >= count // 20


def test_bits_on_an_npu_with_bit_planes() -> None:
    """An array with bit planes takes integers from its former: of a layer of bits taps are read one by one."""
    model = random_model(network_of("8x8x3", "conv_1 8 3x3", name="bits"), 1)
    design = size_memories("bits", [model], Npu.of(kfp=64, planes=8, window_former=True))
    compile_model(model, Manifest.of(design, "0" * 64))


@pytest.mark.parametrize(
    ("stride", "sizes", "together", "ahead"),
    [
        ("2x2", {}, 2, True),
        ("4x1", {}, 2, False),  # four rows are more than the kernel has
        ("1x2", {}, 1, True),
        ("2x2", {"former_channels": 3, "former_column": 12, "former_columns": 3, "former_line": 40}, 1, False),
        ("2x2", {"former_channels": 6, "former_column": 12, "former_columns": 3, "former_line": 40}, 2, False),
    ],
)
def test_rows_that_come_side_by_side(stride: str, sizes: dict[str, int], together: int, ahead: bool) -> None:
    """As many as make a frame faster, of those that divide the stride and that a former with sizes has room for."""
    network = network_of("32x32x3 s8", f"conv_1 8 3x3 s8 stride={stride} padding=0/0/1/1", name="rows")
    plans = plan(random_model(network, 1), [INTEGER.changed(kgp=8, **sizes)])
    formed = plans.formed(0)
    assert formed is not None
    assert (formed.together, formed.ahead) == (together, ahead)


def test_words_are_as_wide_as_those_of_the_npu_that_reads_them() -> None:
    """A map of 16 channels is a word a position where NPU 1 reads it, and would be four for the NPU behind that."""
    model = random_model(network_of("9x8x3", "conv_1 16 3x3, act_1, conv_2 5 3x3, act_2, dense 4", name="words"), 1)
    former = Npu.of(kfp=48, kgp=4, ol=2, pool=False, shift_bits=0, window_former=True)
    npus = pipeline([former, former, former.changed(kfp=4, window_former=False)])
    assert plan(model, size_memories("words", [model], npus).npus).formed(1) is not None
