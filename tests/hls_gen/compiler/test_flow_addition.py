"""The flow model's addition where what is added is still on its way: maps of one tuple. Against hardware it is tried in
overlay/build/test_random_networks.py."""

from dataclasses import replace

import numpy as np
import pytest

from bitloom.hls_gen.compiler.flow import FlowLayer, FlowNpu, Reading, enough_skips, simulate, smooth_skips

from .flows import ALONE, NPU, connected

ADDING = NPU.changed(engine="integer", feature_bits=8, weight_bits=8, shift_bits=0, acc_bits=32, skip_words=4)


def adding(pfp: int, skip_words: int | None = 4, **folding: int) -> tuple[FlowNpu, ...]:
    """An NPU that adds, without a pool unit where ``pfp`` is 0."""
    npu = ADDING.unchecked(**folding, **({"pfp": pfp} if pfp else {"pool": False}))
    return (FlowNpu(npu=npu, skip_words=skip_words),)


def layer(name, **more):
    return FlowLayer(name=name, reading=Reading.straight(1, 1), **{**ALONE, **more})


@pytest.mark.parametrize("pfp", [0, 8])
def test_steps_behind_the_one_that_waits_go_on(pfp):
    """The last layer's step waits for the map of the layer before, which is in the stages behind."""
    layers = (
        layer("fork", skips=True),
        layer("other", inlet="skip", outlet="skip", skips=True, is_added=True),
        layer("adds", adds=True),
    )
    system = connected(adding(pfp), layers, (0, 0, 0))
    assert smooth_skips(system, 2) == [2]
    tight = replace(system, npus=adding(pfp, 2))
    assert simulate(tight, 4).left == simulate(system, 4).left
    shorter = connected(adding(pfp), (layer("first"), layer("alone")), (0, 0))
    assert simulate(system, 4).latency > simulate(shorter, 4).latency


@pytest.mark.parametrize("pfp", [0, 1, 4])
def test_words_are_collected_before_a_step_wants_them(pfp):
    """A layer adds the map that it reads, all of which it must have for its first window. By then the collector has
    taken a step's 2 words, and two more wait in the registers behind the store: 36 of 40 words are left."""
    tuples = 20
    claimed = {"claiming": np.arange(tuples), "claims": np.ones(tuples, np.int64)}
    reading = Reading(words=2, taps=np.full(tuples, tuples), hold_tuples=tuples, **claimed)
    layers = (
        FlowLayer(name="fork", reading=Reading.straight(tuples, 2), skips=True, is_added=True, **ALONE),
        FlowLayer(name="adds", reading=reading, adds=True, **ALONE),
    )
    system = connected(adding(pfp, kfp=2, ol=4), layers, (0, 0))
    assert smooth_skips(system, 2) == [36]
    tight, roomy = (replace(system, npus=adding(pfp, words, kfp=2, ol=4)) for words in (36, None))
    assert simulate(tight, 4).left == simulate(roomy, 4).left
    assert enough_skips(system, {0: 2}, 2) == {0: 35}
