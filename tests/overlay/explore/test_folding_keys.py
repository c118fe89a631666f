"""Keys of the search have every value of a folding on which what is kept depends, and the others for a true reason."""

from dataclasses import replace
from typing import Any

import pytest

from bitloom.golden import zoo
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.design.flat import CHOSEN
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.area_model.estimate import estimate_outlets
from bitloom.overlay.build.small_npu import small_npu
from bitloom.overlay.explore import folding_keys
from bitloom.overlay.explore.candidate import Candidate
from bitloom.overlay.explore.figures import KnownFlows, figures
from bitloom.overlay.explore.folding_keys import ARRAY_CYCLES, FOLDING, LAYER_NEEDS, OUTLETS, POOL_WORK
from bitloom.overlay.explore.npu_memories import NpuMemories
from bitloom.overlay.explore.one_npu import OUT, NpuChoices
from bitloom.overlay.explore.task import Connection
from bitloom.overlay.explore.variations import SETTINGS

from .test_npu_memories import connections_of, random_of

BINARY = Npu.of(kfp=28, kgp=8, pfp=4, ol=2, planes=6, acc_bits=32)
PLAIN = BINARY.changed(planes=0, shift_bits=0)
INTEGER = Npu.of(engine="integer", feature_bits=8, weight_bits=8, shift_bits=0, kfp=8, kgp=8, pfp=4, ol=2, acc_bits=32)
OTHERS: dict[str, tuple[Npu, Any]] = {
    "engine": (INTEGER, None),
    "feature_bits": (INTEGER, 9),
    "weight_bits": (INTEGER, 6),
    "kfp": (BINARY, 32),
    "line_taps": (PLAIN.changed(kfp=8), 2),
    "kgp": (BINARY, 16),
    "pfp": (BINARY, 8),
    "ol": (BINARY, 4),
    "accumulate": (BINARY, "both"),
    "word_lanes": (BINARY, 7),
    "collect": (PLAIN, 56),
    "accumulators": (BINARY, 4),
    "planes": (BINARY, 5),
    "shift_bits": (BINARY, 4),
    "binariser_bits": (PLAIN, 8),
    "buffer_words": (BINARY, 32),
    "kernel_ram": (BINARY, "block"),
    "inlets": (BINARY, ("host", "ring", "loop")),
    "outlets": (BINARY, ("ring", "loop", "host")),
    "pool": (BINARY, False),
    "raster": (BINARY, True),
    "stream_weights": (BINARY, True),
    "kernels_per_multiplier": (INTEGER, 2),
    "one_memory": (BINARY, True),
    "kernel_binariser": (BINARY, True),
    "depthwise": (INTEGER.changed(multiplier_bits=31), True),
    "window_former": (BINARY, True),
    "lut_products": (INTEGER, ("addition",)),
    "pool_line_taps": (BINARY, 3),
    "pool_lines": (BINARY, 2),
    "pool_lane_lines": (BINARY, 2),
    "pool_scale_ram": (INTEGER.changed(multiplier_bits=31, depthwise=True), "distributed"),
}
"""An NPU and another value for it, by name: a new value of a folding needs one, too."""
KEYS = {
    "folding": (FOLDING, {}),
    "array cycles": (ARRAY_CYCLES, folding_keys.BESIDE_ARRAY),
    "layer needs": (LAYER_NEEDS, folding_keys.BESIDE_NEEDS),
    "pool work": (POOL_WORK, folding_keys.BESIDE_POOL_WORK),
    "outlets": (OUTLETS, folding_keys.BESIDE_OUTLETS),
}


def pair(name: str) -> tuple[Npu, Npu]:
    """Two NPUs that differ in a value."""
    npu, value = OTHERS[name]
    return npu, PLAIN if name == "engine" else npu.changed(**{name: value})


@pytest.fixture(scope="module")
def choices() -> NpuChoices:
    connections = connections_of(zoo.load("digits-cnn"))
    return connections.of(Connection(connections.engines[0]), SETTINGS[0])


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("name", CHOSEN)
def test_a_value_is_in_a_key_or_left_out_for_a_reason(name: str, key: str) -> None:
    key_of, without = KEYS[key]
    one, other = pair(name)
    if name in without:
        assert without[name]
    assert (key_of(one) == key_of(other)) == (name in without)


def test_only_values_of_a_folding_are_left_out() -> None:
    assert all(without.keys() <= {*CHOSEN} for _, without in KEYS.values())
    assert OTHERS.keys() == {*CHOSEN}


@pytest.mark.sample(8)
@pytest.mark.parametrize(("key", "name"), [(key, name) for key, (_, without) in KEYS.items() for name in without])
def test_what_is_left_out_changes_nothing(choices: NpuChoices, key: str, name: str) -> None:
    one, other = pair(name)
    if key == "outlets":
        assert estimate_outlets(one, 24) == estimate_outlets(other, 24)
        return
    if one.engine == "integer":
        connections = connections_of(random_of("integer", 0))
        choices = connections.of(Connection(connections.engines[0]), SETTINGS[0])
    if key == "layer needs":
        own = tuple(range(len(choices.layers)))
        fresh = (NpuMemories(choices.layers, [range(len(own))], streamed=False) for _ in range(2))
        first, second = (
            [layer.needs for layer in memories.planned(own, npu)] for memories, npu in zip(fresh, (one, other))
        )
        assert first == second
        return
    if key == "pool work":
        connections = connections_of(random_of("depthwise", 2))
        for layer in connections.of(Connection(connections.engines[0]), SETTINGS[0]).layers:
            first, second = (replace(layer).pool_work(npu) for npu in (one, other))
            assert first == second
        return
    for layer in choices.layers:
        first, second = (layer.seen_by(npu).array_cycles_by_ol(npu, OUT) for npu in (one, other))
        assert [first(ol) for ol in (1, 2, 4)] == [second(ol) for ol in (1, 2, 4)]


def test_candidates_that_differ_in_area_alone_have_one_run_of_the_flow_model() -> None:
    """Their figures are those of the designs that they make."""
    model = random_of("integer", 0)
    npu = small_npu(model).changed(
        kgp=4, kernels_per_multiplier=1, kernel_ram="auto", depthwise=True, multiplier_bits=31
    )
    others = {"kernel_ram": "distributed", "kernels_per_multiplier": 2, "pool_scale_ram": "block"}
    assert others.keys() == folding_keys.AREA_ALONE.keys()
    known: KnownFlows = {}
    areas = set()

    def candidate_with(**values: Any) -> Candidate:
        npus = (npu.unchecked(**values),)
        return Candidate(model.network.name, npus, (0,) * len(plan(model, (npu,)).layers))

    for value in ({}, *({name: value} for name, value in others.items())):
        candidate = candidate_with(**value)
        estimated = figures(model, candidate, known=known)
        assert estimated == figures(model, candidate, candidate.design(model))
        areas.add(estimated.area)
    assert (len(known), len(areas)) == (1, 4)
    assert figures(model, candidate_with(kernels_per_multiplier=5), known=known) is None  # kgp is 4
