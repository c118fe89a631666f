"""The flow model's addition where what is added is still on its way: maps of one tuple. Against hardware it is tried in
overlay/build/test_residual.py."""

from dataclasses import replace

import pytest

from bitloom.hls_gen.compiler.flow import FlowLayer, Reading, System, simulate, smooth_skips

from .flows import UNIT

ADDING = replace(UNIT, skip_words=4, addition_latency=8, activation_latency=6)


def layer(name, **more):
    return FlowLayer(name=name, reading=Reading.straight(1, 1), **more)


@pytest.mark.parametrize("pfp", [0, 8])
def test_steps_behind_the_one_that_waits_go_on(pfp):
    """The last layer's step waits for the map of the layer before, which is in the stages behind."""
    layers = (layer("fork"), layer("other", reads="fork", from_skip=True), layer("joins", reads="fork", adds="other"))
    system = System(units=(replace(ADDING, pfp=pfp),), layers=layers, mapping=(0, 0, 0))
    assert smooth_skips(system, 2) == [2]
    tight = replace(system, units=(replace(ADDING, pfp=pfp, skip_words=2),))
    assert simulate(tight, 4).left == simulate(system, 4).left
    shorter = replace(system, layers=(layers[0], layer("alone", reads="fork")), mapping=(0, 0))
    assert simulate(system, 4).latency > simulate(shorter, 4).latency
