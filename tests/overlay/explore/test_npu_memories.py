"""The search and sizing make memories of one size, field by field."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.sizing import Sizing, size_memories
from bitloom.hls_gen.design.copy_names import is_copy
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.explore import npu_memories
from bitloom.overlay.explore.chain import Chain
from bitloom.overlay.explore.connections import Connections
from bitloom.overlay.explore.one_npu import MOST_LUT_ROWS, NpuChoices
from bitloom.overlay.explore.price import Price
from bitloom.overlay.explore.ring import cheapest_ring
from bitloom.overlay.explore.task import Connection, candidate_of
from bitloom.overlay.explore.variations import SETTINGS, MapSetting
from bitloom.overlay.fuzz.pick import Pick
from tests.networks import random_model
from tests.replay.networks import KINDS

FLOW = {"skip_words"}
"""Sizes that the flow model alone says: how many words wait in a skip store. The spill store of a ring is no NPU's."""
NEIGHBOUR = {"lanes_per_weight", "lane_step", "tuple_parts", "kernel_rows", "aheads", "taps"}
"""Sizes that depend on the order of lanes in maps of the NPU before, which is chosen after their reader: which lanes
share a weight, and which words have weights for a kernel group. Sizing also lets all NPUs share weights, or none, where
some layer of some NPU would take longer."""
STREAMED = MapSetting("raster", counters=True, streamed=True)


def random_of(kind: str, number: int) -> Model:
    pick = Pick("memories", kind, number)
    network = KINDS[kind].network(pick)
    return random_model(network, number, 24, 16)


def is_copying(choices: NpuChoices) -> bool:
    """Whether maps are copied. Which ones are, where one NPU's two stores can't hand them on in order, depends on the
    NPU's lanes: those copies are taken that need the fewest beats. The search knows one order."""
    return any(is_copy(layer.name) for layer in choices.layers)


def connections_of(*models: Model) -> Connections:
    return Connections(models, SETTINGS, (False, True), 64, MOST_LUT_ROWS)


def sized(models: Sequence[Model], npus: Sequence[Npu], mapping: Any, setting: MapSetting) -> Sequence[Npu]:
    """The NPUs as sizing makes them."""
    first, *also = models
    name = first.network.name
    candidate = replace(candidate_of(name, (), 64, setting.map_order), npus=tuple(npus), mapping=mapping)
    candidate = replace(candidate, also=tuple(model.network.name for model in also))
    sizing = Sizing(stream_weights=setting.streamed, skip_words=2, spill_words=2)
    return size_memories(name, models, npus, candidate.choices, stream_bits=64, sizing=sizing).npus


def differences(
    models: Sequence[Model],
    choices: NpuChoices,
    connection: Connection,
    setting: MapSetting,
    interval: int,
    most_npus: int = 9,
) -> set[str] | None:
    """Fields in which some NPU differs from what sizing makes of it; None where no NPUs are so fast."""
    if connection.mapping is None:
        mapped_npus = Chain(choices, most_npus=most_npus).cheapest(interval, Price(npu=-900))
    else:
        mapped_npus = cheapest_ring(choices, connection.mapping, interval, Price(), closed=connection.closed)
    if mapped_npus is None:
        return None
    candidate = candidate_of("net", mapped_npus, 64, setting.map_order)
    own = len(choices.networks[0]) if choices.networks else len(candidate.mapping)
    sized_npus = sized(models, candidate.npus, candidate.mapping[:own], setting)
    pairs = zip((npu.flat() for npu in candidate.npus), (npu.flat() for npu in sized_npus), strict=True)
    return {key for ours, theirs in pairs for key in ours if ours[key] != theirs[key]}


@pytest.fixture(autouse=True)
def _no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tuple memories have no more words than they need: room is a choice of the search."""
    monkeypatch.setattr(npu_memories, "_roomy_words", lambda layers: 0)


@pytest.mark.sample(3)
@pytest.mark.parametrize("setting", [*SETTINGS, STREAMED], ids=lambda setting: setting.words)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("mixed", "graph")])
def test_one_npu_has_the_memories_that_sizing_makes(kind: str, setting: MapSetting) -> None:
    tried = 0
    for number in range(2):
        model = random_of(kind, number)
        connections = connections_of(model)
        connection = Connection(connections.engines[0])
        choices = connections.of(connection, setting)
        if is_copying(choices):
            continue
        fastest = max(layer.taps for layer in choices.layers)
        keys = differences([model], choices, connection, setting, 50 * fastest, most_npus=1)
        assert keys is None or keys <= FLOW, number
        tried += keys is not None
    assert tried


@pytest.mark.sample(2)
@pytest.mark.parametrize("setting", [SETTINGS[0], STREAMED], ids=lambda setting: setting.words)
@pytest.mark.parametrize("kind", ["binary deep", "binary residual", "integer deep", "residual", "depthwise", "mixed"])
def test_npus_have_the_memories_that_sizing_makes(kind: str, setting: MapSetting) -> None:
    tried = 0
    for number in range(2):
        model = random_of(kind, number)
        connections = connections_of(model)
        for connection in connections.possible:
            choices = connections.of(connection, setting)
            fastest = max(layer.taps for layer in choices.layers)
            keys = differences([model], choices, connection, setting, 15 * fastest)
            assert keys is None or keys <= FLOW | NEIGHBOUR, (number, connection.mapping)
            tried += keys is not None
    assert tried


@pytest.mark.sample(1)
@pytest.mark.parametrize("kinds", [("integer", "integer deep"), ("residual", "integer"), ("binary", "binary deep")])
def test_an_npu_of_several_networks_has_the_memories_that_sizing_makes(kinds: Sequence[str]) -> None:
    models = [random_of(kind, 0) for kind in kinds]
    connections = connections_of(*models)
    for setting in SETTINGS:
        choices = connections.of(connections.possible[0], setting)
        fastest = sum(layer.taps for layer in choices.layers)
        keys = differences(models, choices, connections.possible[0], setting, 30 * fastest, most_npus=1)
        assert keys is not None
        assert keys <= FLOW, setting


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", ["integer deep", "residual", "depthwise"])
def test_an_npu_that_takes_lines_has_the_memories_that_sizing_makes(kind: str) -> None:
    setting = MapSetting("raster", counters=True)
    formed = shared = 0
    for number in range(8):
        model = random_of(kind, number)
        connections = connections_of(model)
        choices = connections.of(Connection(connections.engines[0]), setting)
        indices = tuple(range(len(choices.layers)))
        bare = next(npu for npu in choices.bare(indices) if npu.former is None and not npu.array.planes)
        npu = bare.unchecked(kfp=12, line_taps=3, kgp=4, ol=4, pfp=4, pool_line_taps=3, pool_lane_lines=2)
        try:
            npu = choices.sized(indices, npu)
        except ValueError:  # a map that is added doesn't lie as its results leave
            continue
        (sized_npu,) = sized([model], [npu], (0,) * len(indices), setting)
        assert {key for key, value in npu.flat().items() if sized_npu.flat()[key] != value} <= FLOW, number
        seen = [layer.seen_by(npu) for layer in choices.layers]
        pools = [pool for layer in seen if (pool := layer.formed_pool(npu))]
        formed += len(pools) + sum(layer.lines is not None for layer in seen)
        shared += sum(pool.lines.window.kernel[0] > 1 for pool in pools)
    assert formed
    assert shared or kind != "depthwise"
