"""The stages of an activation against a clocked model of their registers (hls_gen/rtl/results/results.py,
requantise.py)."""

import numpy as np
import pytest

from bitloom.hls_gen.compiler.flow.gearbox import Gearbox, Gears
from bitloom.hls_gen.compiler.flow.kahn import FlowProcess, Process, Stamps, run
from bitloom.hls_gen.compiler.flow.layer import FlowLayer, Reading
from bitloom.hls_gen.compiler.flow.results import ResultStages, ResultsUnit
from bitloom.hls_gen.compiler.flow.sequencer import Issuer
from bitloom.hls_gen.compiler.flow.streams import TupleMemory
from bitloom.hls_gen.compiler.flow.system import FlowNpu
from bitloom.hls_gen.design.timing import GIVE_BACK

from .flows import ALONE, NPU

WINDOWS, STEPS = 60, 5


def arrivals(seed: int) -> list[int]:
    """Cycles in which windows' results arrive: bursts, and gaps in which all stages run empty."""
    rng = np.random.default_rng(seed)
    return np.cumsum(rng.choice([1, 2, 3, 4, 9, 30], WINDOWS)).tolist()


def clocked(depth: int, source: int, target: int, arrived: list[int], freed: list[int]) -> tuple[list[int], list[int]]:
    """(cycle of each window's last step, cycle of each word), register by register.

    freed[k] : the cycle from which on the sink takes word k.
    """
    together = max(target // source, 1)
    pieces = -(-source // target)
    stages: list[bool | None] = [None] * (depth + 1)  # of a step: whether its tuple ends
    finished: list[int] = []
    words: list[int] = []
    held = place = left = cycle = 0
    queue: list[bool] = []
    while len(finished) < WINDOWS or any(s is not None for s in stages) or left:
        gives = left > 0 and cycle >= freed[len(words)]
        free = left == 0 or (gives and left == 1)
        move = stages[-1] is None or free
        taken = stages[-1] if free else None
        go = bool(queue) and (stages[0] is None or move)
        load = held < WINDOWS and cycle >= arrived[held] and (not queue or (go and len(queue) == 1))
        if gives:
            words.append(cycle)
            left -= 1
        if taken is not None:
            place += 1
            if taken or place == together:
                place = 0
                left = left + pieces
        if move:
            stages = [None, *stages[:-1]]
        if go:
            stages[0] = queue.pop(0)
            if not queue:
                finished.append(cycle)
        if load:
            held += 1
            queue = [False] * (STEPS - 1) + [True]
        cycle += 1
    return finished, words


@pytest.mark.sample(30)
@pytest.mark.parametrize("depth", [0, 1, 5])
@pytest.mark.parametrize(("source", "target"), [(4, 4), (4, 3), (8, 2), (2, 4), (1, 3), (1, 8)])
@pytest.mark.parametrize(("seed", "busy"), [(0, 1.0), (1, 0.5), (2, 0.25), (3, 0.8)])
@pytest.mark.parametrize(("backwards", "words"), [(False, 1), (True, 1), (False, 7), (True, 7)])
def test_stages(depth: int, source: int, target: int, seed: int, busy: float, backwards: bool, words: int) -> None:
    """Whether the sink's room is known early or late does not matter; ``words`` go in without a wait."""
    cycles = arrivals(seed)
    together = max(target // source, 1)
    pieces = -(-source // target)
    count = WINDOWS * -(-STEPS // together) * pieces
    room = np.cumsum(np.random.default_rng(seed + 10).geometric(busy, count)).tolist()
    arrived, credit, written, given = (Stamps(name) for name in ("sums", "room for results", "words", "room"))
    gearbox = Gearbox(source, target, TupleMemory(words, written, given))
    activation = ResultStages(depth, Gears([(WINDOWS * STEPS, gearbox)]))
    layer = FlowLayer(name="l", reading=Reading.straight(WINDOWS, 1), steps=STEPS, last_steps=STEPS, **ALONE)

    def array() -> Process:
        """Two windows' results fit."""
        for k, cycle in enumerate(cycles):
            if k >= 2 and len(credit) < k - 1:
                yield ((credit, k - 2),)
            late = max(cycle, credit[k - 2] + 1 if k >= 2 else 0)
            cycles[k] = max(late, cycles[k - 1] + 1 if k else 0)
            arrived.append(cycles[k])

    def reader() -> Process:
        """Gives the room of word k when word k is in, at its own time."""
        for k in range(count - 1):
            if len(written) <= k:
                yield ((written, k),)
            given.append(max(written[k], room[k + 1] - 1))

    unit = ResultsUnit(False, arrived, credit, activation, activation)
    processes = [
        FlowProcess("array", 0, array(), [arrived]),
        FlowProcess("results", 0, unit.process([layer], 1), [credit, written]),
        FlowProcess("reader", 0, reader(), [given]),
    ]
    run(processes[::-1] if backwards else processes)
    freed = [0] * words + [t + GIVE_BACK for t in given]
    assert clocked(depth, source, target, cycles, freed) == (list(credit), list(written))
    assert len(written) == count


def test_credits() -> None:
    """With one accumulator a PE two results may be on their way; with several as many as there are."""
    cycles = {}
    for accumulators in (1, 2, 8):
        written, given, arrived, credit = (Stamps(name) for name in ("words", "room", "sums", "credit"))
        written.extend(range(40))
        flow_npu = FlowNpu(npu=NPU.changed(accumulators=accumulators))
        issuer = Issuer(flow_npu, written, given, arrived, credit)
        layer = FlowLayer(name="l", reading=Reading.straight(40, 1), steps=4, last_steps=4, **ALONE)
        sink, free = Stamps("out"), Stamps("free")
        activation = ResultStages(0, Gears([(160, Gearbox(8, 8, TupleMemory(1000, sink, free)))]))
        results = ResultsUnit(accumulators > 1, arrived, credit, activation, activation)
        run(
            [
                FlowProcess("issuer", 0, issuer.process([layer], 1), [given, arrived]),
                FlowProcess("results", 0, results.process([layer], 1), [credit, sink]),
            ]
        )
        cycles[accumulators] = issuer.counts[0].at
        assert issuer.counts[0].wait_room > 0
    assert cycles[1] >= cycles[2] > cycles[8]
