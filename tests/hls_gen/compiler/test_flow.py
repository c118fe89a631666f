"""The flow model as a whole. That it equals hardware is held by tests/overlay/build/test_random_networks.py."""

import random
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from bitloom.hls_gen.compiler.flow import Deadlock, FlowLayer, FlowNpu, Reading, System, simulate
from bitloom.hls_gen.compiler.flow.kahn import run
from bitloom.hls_gen.compiler.flow.network import ProcessNetwork
from tests.errors import value_error

from .flows import ALONE, FLOW_NPU, NPU, connected, convolutions, ring

FOUR = convolutions(4)
IDEAL = sum(layer.beats for layer in FOUR) // 4
"""Beats of one of the four layers, which are alike: (3 * 10 - 2)^2 taps x 2 words x 2 groups."""


def test_ideal() -> None:
    assert IDEAL == 28 * 28 * 2 * 2


def test_a_single_npu_is_as_fast_as_its_beats() -> None:
    system = connected((FLOW_NPU,), FOUR, (0,) * 4)
    result = simulate(system)
    assert 4 * IDEAL <= result.cycles_per_frame <= 1.01 * 4 * IDEAL
    assert result.npus[0].beats == 4 * IDEAL
    assert len(result.left) == 8
    assert (np.diff(result.left) > 0).all()


SYSTEMS = {
    "single": connected((FLOW_NPU,), FOUR, (0,) * 4),
    "chain of 3": connected((FLOW_NPU,) * 3, FOUR, (0, 1, 1, 2)),
    "ring of 2": ring(2, FOUR, spill_words=None),
    "pipeline": ring(4, FOUR),
    "ring of 3 without pool units": ring(3, FOUR, spill_words=None, pool=False),
}


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)
class TestEverySystem:
    def test_cycles_add_up(self, system: System) -> None:
        result = simulate(system)
        for n, npu in result.npus.items():
            assert npu.beats == sum(system.layers[i].beats for i in system.of(n))
            assert sum(getattr(npu, f.name) for f in fields(npu)) == result.cycles_per_frame
        assert result.cycles_per_frame >= max(npu.beats for npu in result.npus.values())

    def test_every_word_comes_and_goes(self, system: System) -> None:
        network = ProcessNetwork(system, 2)
        run(network.processes)
        for n, issuer in network.issuers.items():
            words = 2 * sum(system.layers[i].input_words for i in system.of(n))
            results = 2 * sum(system.layers[i].reading.windows * system.layers[i].results for i in system.of(n))
            assert len(issuer.written) == len(issuer.given) == words
            assert len(issuer.arrived) == len(issuer.credit) == results
            assert (np.diff(issuer.written) > 0).all()
            assert (np.diff(issuer.given) >= 0).all()

    def test_stores_hold_no_more_than_they_can(self, system: System) -> None:
        stores = simulate(system).stores
        for n, flow_npu in enumerate(system.npus):
            for name in ("tuple_words", "pool_words", "map_words", "buffer_words"):
                assert stores.get(f"npu{n}.{name}", 0) <= flow_npu.npu.value(name)
        assert stores["npu0.tuple_words"] > 0

    def test_the_order_of_evaluation_does_not_matter(self, system: System) -> None:
        states = []
        for seed in range(2):
            network = ProcessNetwork(system, 2)
            random.Random(seed).shuffle(network.processes)
            run(network.processes)
            states.append((list(network.done), network.stores(), [i.counts for i in network.issuers.values()]))
        assert states == [states[0]] * 2

    def test_a_later_frame_delays_no_earlier_one(self, system: System) -> None:
        assert simulate(system, 8).left[:2] == simulate(system, 2).left


def test_a_frame_alone_goes_through_a_pipeline_layer_beside_layer() -> None:
    """D6: a layer begins with its first chunk, so four layers take less than two one after another."""
    result = simulate(ring(4, FOUR))
    assert IDEAL < result.latency < 2 * IDEAL


def test_deadlock_without_a_spill_store() -> None:
    """D8: NPU 1 fills both buffers towards NPU 0, which is busy with its first layer and waits for NPU 1."""
    with pytest.raises(Deadlock) as caught:
        simulate(ring(2, FOUR))
    assert set(caught.value.npus) == {0, 1}
    cycle = ("NPU 0 waits for room towards NPU 1", "NPU 1 for room towards NPU 0")
    other = ("NPU 1 waits for room towards NPU 0", "NPU 0 for room towards NPU 1")
    assert str(caught.value) in {f"flow: deadlock: {', '.join(told)}" for told in (cycle, other)}


def test_deadlock_of_three() -> None:
    with pytest.raises(Deadlock) as caught:
        simulate(ring(3, convolutions(4), tuple_words=48))
    assert set(caught.value.npus) == {0, 1, 2}
    assert all(f"NPU {n}" in str(caught.value) for n in range(3))


def test_deadlock_of_a_map_store_that_is_too_small() -> None:
    with pytest.raises(Deadlock) as caught:
        simulate(connected((FlowNpu(npu=NPU.changed(map_words=4)),), FOUR, (0,) * 4))
    assert caught.value.npus == (0,)
    assert "of NPU 0 for room in its map store" in str(caught.value).replace("waits for", "for")


def test_tuple_memory_too_small_for_a_window() -> None:
    """A window of tuples that do not fit at the same time."""
    with pytest.raises(Deadlock) as caught:
        simulate(connected((FlowNpu(npu=NPU.changed(tuple_words=8)),), FOUR[:1], (0,)))
    assert "words in its tuple memory" in str(caught.value)


GOOD = connected((FLOW_NPU,) * 3, FOUR, (0, 0, 1, 2))


def changed(n: int, **values: Any) -> dict[str, Any]:
    """The four layers, with other values of layer ``n``."""
    layers = GOOD.layers
    return {"layers": (*layers[:n], replace(layers[n], **values), *layers[n + 1 :])}


WITHOUT_POOL = (FlowNpu(npu=NPU.changed(pool=False)),) * 3
WITHOUT_RING = (FlowNpu(npu=NPU.changed(inlets=("host", "loop"))),) * 3
BAD: list[tuple[str, dict[str, Any]]] = [
    ("flow: mapping must name an NPU for each of 4 layers, got 3", {"mapping": (0, 0, 0)}),
    ("flow: mapping must name an NPU for each of 0 layers, got 0", {"mapping": (), "layers": ()}),
    ("flow: conv_0 must be on NPU 0, got NPU 1", {"mapping": (1, 1, 1, 1)}),
    ("flow: conv_1 must leave by outlet host to be raw, got ring", changed(1, raw=True)),
    (
        "flow: conv_0 needs an NPU with a pool unit, NPU 0 has none",
        {"npus": WITHOUT_POOL, **changed(0, pool=Reading.straight(100, 2))},
    ),
    ("flow: conv_2: a chunk must be 1..8 words, got 9", changed(2, chunk_words=9)),
    ("flow: conv_2: a chunk must be 1..0 words, got 8", {"npus": WITHOUT_RING}),
]


@pytest.mark.parametrize(("message", "change"), BAD, ids=lambda value: value if isinstance(value, str) else "")
def test_systems_that_do_not_go_together(message: str, change: dict[str, Any]) -> None:
    with value_error(message):
        replace(GOOD, **change)


@pytest.mark.parametrize("frames", [0, 3])
def test_frames_must_be_even(frames: int) -> None:
    with value_error(f"flow: frames must be an even number >= 2, got {frames}"):
        simulate(ring(4, FOUR), frames)


def test_raw_results_wait_for_no_pool() -> None:
    layers = (FOUR[0], replace(FOUR[1], raw=True))
    result = simulate(connected((FLOW_NPU,), layers, (0, 0)))
    values = layers[1].reading.windows * layers[1].tuple_steps * NPU.results.ol
    assert values == 1600
    assert result.cycles_per_frame >= max(2 * IDEAL, values)


def test_layer_figures() -> None:
    layer = FlowLayer(name="l", reading=Reading.straight(6, 3), groups=2, inner=2, steps=4, last_steps=1, **ALONE)
    assert (layer.results, layer.tuple_steps, layer.input_words, layer.output_windows, layer.beats) == (
        4,
        13,
        18,
        6,
        72,
    )


def test_systems_that_do_the_same_have_one_key() -> None:
    """Whatever layers are called; anything else makes another one, so that what is known of a system isn't taken for
    another's."""
    system = connected((FLOW_NPU,), FOUR, (0,) * 4)
    first, *others = system.layers
    renamed = tuple(replace(layer, name=f"other_{layer.name}") for layer in system.layers)
    assert replace(system, layers=renamed).key == system.key
    taps = replace(first.reading, taps=first.reading.taps + 1)
    for other in (
        replace(system, layers=(replace(first, map_words=first.map_words + 1), *others)),
        replace(system, layers=(replace(first, reading=taps), *others)),
        replace(system, layers=(replace(first, skips=True), *others)),
        replace(system, npus=(replace(FLOW_NPU, npu=NPU.changed(tuple_words=2 * NPU.value("tuple_words"))),)),
        replace(system, stream_bits=64),
    ):
        assert other.key != system.key
