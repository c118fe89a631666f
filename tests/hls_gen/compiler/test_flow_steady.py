"""A steady stream: what follows from frames that repeat is what a run of all frames gives."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from bitloom.hls_gen.compiler.flow import Deadlock, FlowNpu, System, kernel, steady
from bitloom.hls_gen.compiler.flow.kahn import run
from bitloom.hls_gen.compiler.flow.loader import WeightPacket
from bitloom.hls_gen.compiler.flow.network import ProcessNetwork
from bitloom.hls_gen.compiler.flow.steady import SteadyStream
from bitloom.hls_gen.design.timing import FRAMES_IN_FLIGHT

from .flows import FLOW_NPU, NPU, connected, convolutions, ring

FRAMES = 3 * FRAMES_IN_FLIGHT
"""More than may be under way."""


def run_all(system: System, frames: int) -> ProcessNetwork:
    """The same frames, each of which is run."""
    network = ProcessNetwork(system, frames)
    run(network.processes)
    return network


def deadlock_of(work: Callable[[], object]) -> str:
    """The message of a deadlock; "" where there is none."""
    try:
        work()
    except Deadlock as deadlock:
        return str(deadlock)
    return ""


def streams(system: System, frames: int) -> list[SteadyStream]:
    """The stream as C++ runs it, and as Python does."""
    with pytest.MonkeyPatch.context() as patch:
        in_cpp = SteadyStream(system, frames)
        patch.setattr(kernel, "library", lambda: None)
        return [in_cpp, SteadyStream(system, frames)]


def check(system: System, frames: int = FRAMES) -> int:
    """Compare streams with a run of all frames; gives how many frames of a stream were run."""
    network = run_all(system, frames)
    both = streams(system, frames)
    for stream in both:
        assert stream.done == list(network.done)
        assert stream.accepted == network.frame_source.accepted
        assert stream.counts == {n: issuer.counts for n, issuer in network.issuers.items()}
        assert stream.stores == network.stores()
    assert both[0].ran == both[1].ran
    return both[0].ran


def random_system(seed: int) -> System:
    """A chain or a ring of NPUs with stores that are just large enough, or have room for many frames."""
    pick = random.Random(seed)
    npus = pick.choice((1, 1, 2, 3))
    layers = convolutions(pick.randint(npus, 4), side=pick.choice((1, 2, 3, 5)), channels=pick.choice((8, 16)))
    steps = pick.choice((1, 2, 4))
    layers = tuple(
        replace(layer, steps=steps, last_steps=pick.randint(1, steps), raw=pick.random() < 0.2 and layer is layers[-1])
        for layer in layers
    )
    npu = NPU.unchecked(
        ol=8 // steps,
        pfp=pick.choice((1, 4, 8)),
        tuple_words=pick.choice((16, 32, 64, 1024)),
        pool_words=pick.choice((16, 64)),
        buffer_words=pick.choice((4, 8, 64)),
        accumulators=pick.choice((1, 1, 4)),
        pool=pick.random() < 0.7,
    )
    starts = sorted(pick.sample(range(1, len(layers)), npus - 1))
    mapping = tuple(sum(i >= start for start in starts) for i in range(len(layers)))
    weights = ()
    if pick.random() < 0.3:
        i = pick.randrange(len(layers))
        weights = (WeightPacket(i, pick.randint(0, 2), pick.choice((3, 70, 900))),)
        layers = tuple(replace(layer, streamed=i == k) for k, layer in enumerate(layers))
    return connected(
        (FlowNpu(npu=npu),) * npus,
        layers,
        mapping,
        spill_words=None,
        weights=weights,
        weights_before=pick.randint(0, len(weights)),
    )


@pytest.mark.sample(6)
@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed >= 40)) for seed in range(400)])
def test_frames_that_repeat_need_no_run(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    system = random_system(seed)
    deadlock = deadlock_of(lambda: run_all(system, FRAMES))
    if deadlock:
        assert deadlock_of(lambda: SteadyStream(system, FRAMES)) == deadlock
        monkeypatch.setattr(kernel, "library", lambda: None)
        assert deadlock_of(lambda: SteadyStream(system, FRAMES)) == deadlock
    else:
        check(system)


SEVEN = convolutions(4, side=7)
SYSTEMS = {
    "single": (connected((FLOW_NPU,), SEVEN, (0,) * 4), 4),
    "chain of 3": (connected((FLOW_NPU,) * 3, SEVEN, (0, 1, 1, 2)), 6),
    "ring of 2": (ring(2, SEVEN, spill_words=None), 6),
}


@pytest.mark.parametrize(("system", "most"), SYSTEMS.values(), ids=SYSTEMS)
def test_few_frames_are_run(system: System, most: int) -> None:
    assert check(system) <= most


def test_frames_that_are_under_way_must_repeat_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small frames in a long chain: they repeat from the second one on, until as many are under way as may be."""
    system = ring(8, convolutions(8, side=1, channels=8))
    assert check(system) == FRAMES
    monkeypatch.setattr(steady, "_apart", lambda system: -(1 << 60))
    assert [stream.ran for stream in streams(system, FRAMES)] == [2, 2]
    with pytest.raises(AssertionError):
        check(system)
