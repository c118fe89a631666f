"""Layers that are alike whatever the engines of other layers, and NPUs for them, which are sized once."""

from dataclasses import replace

import pytest

from bitloom.golden import zoo
from bitloom.overlay.explore.alike import alike
from bitloom.overlay.explore.connections import Connections
from bitloom.overlay.explore.one_npu import NpuChoices
from bitloom.overlay.explore.variations import SETTINGS


@pytest.fixture(scope="module")
def pairs() -> list[tuple[NpuChoices, NpuChoices]]:
    """Choices of an NPU where all layers are binary, and where the first one has an integer NPU, in each setting."""
    connections = Connections((zoo.load("digits-cnn"),), SETTINGS, (False, True), 64, 128)
    binary, mixed = connections.engines
    assert mixed.names == ("integer", *binary.names[1:])
    return [
        (connections.choices[binary, setting], connections.choices[mixed, setting]) for setting in connections.settings
    ]


def test_all_layers_but_the_first_are_alike(pairs: list[tuple[NpuChoices, NpuChoices]]) -> None:
    for elder, younger in pairs:
        assert younger.elder is elder
        assert younger.alike == frozenset(range(1, len(elder.layers)))


def test_what_differs_is_not_alike(pairs: list[tuple[NpuChoices, NpuChoices]]) -> None:
    layers = pairs[0][0].layers
    last = len(layers) - 1
    conv = replace(layers[last].conv, index=layers[last].conv.index[::-1])
    others = (replace(layers[last], feature_bits=2), replace(layers[last], conv=conv), replace(layers[last], taker=0))
    assert [last in alike(layers, [*layers[:last], other]) for other in (layers[last], *others)] == [True] + [False] * 3


def test_npus_for_layers_that_are_alike_have_the_same_memories(pairs: list[tuple[NpuChoices, NpuChoices]]) -> None:
    count = 0
    for elder, younger in pairs:
        runs = [tuple(range(i, j)) for i in sorted(younger.alike) for j in range(i + 1, len(elder.layers) + 1)]
        for run in runs:
            assert elder.bare(run) == younger.bare(run)
            for bare in elder.bare(run)[::3]:
                npu = bare.unchecked(kgp=4, ol=2, pfp=2)
                sized = younger.sized(run, npu)  # which asks nobody
                assert sized == elder.sized(run, npu)
                assert younger.asked(run) is elder.asked(run) is not younger
                assert younger.kept == 0
                count += 1
    assert count > 50
