"""Chains of NPUs with window formers: words of maps of several bits a channel, and windows that come a beat each."""

import numpy as np

from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.flow import simulate
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.compiler.weight_order import whole_system
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import pipeline
from bitloom.overlay.build.reference_designs import binary_npu
from tests.cases import random_model
from tests.graph_text import network_of
from tests.simulated import compare


def test_maps_of_several_bits_a_channel_come_level_after_level() -> None:
    """A position's lanes are then in another order than its channels, and so are the lanes of a window."""
    network = network_of("9x8x3", "conv_1 4 3x3, act_1 levels=2, conv_2 9 3x3, act_2, dense 5", name="levels")
    model = random_model(network, np.random.default_rng(3))
    folding = Npu.of(kfp=24, kgp=4, ol=2, pool=False, pfp=1, window_former=True)
    design = size_memories("levels", [model], pipeline([folding] * 3))
    formed = plan(model, design.npus).formed(1)
    assert formed is not None
    assert formed.words == 3
    compare(design, model, batches=(2,))


def test_a_window_a_beat() -> None:
    """Formers that give a word a window, and tuple memories in which the next word has a place while that of the word
    before is given back: a frame takes as many cycles as it has positions."""
    network = network_of("12x12x2 u4", "conv_1 4 3x3, act_1, conv_2 5 3x3, act_2, dense 5", name="beats")
    model = random_model(network, np.random.default_rng(3))
    formed = {"window_former": True, "accumulators": 8}
    first, second = binary_npu(108, 4, 4, planes=5, **formed), binary_npu(36, 5, 5, **formed)
    choices = CompileChoices(chunk="rows:1")
    design = size_memories("beats", [model], pipeline([first, second, binary_npu(10, 5)]), choices, stream_bits=64)
    assert [npu.sequencer.tuple_words for npu in design.npus] == [4, 4, 4]
    compared = compare(design, model, choices, batches=(2,))
    assert [count for _, count in compared.plan.ideal] == [100, 64, 64]
    assert simulate(whole_system(compared.plan, design), 4).cycles_per_frame == 12 * 12
