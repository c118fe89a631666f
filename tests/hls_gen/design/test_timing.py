"""Timing is said once: what is changed there changes the hardware and the flow model, or the hardware's own tests fail.

That the latencies are those of the hardware is measured by the tests of the modules (tests/hls_gen/rtl) and by those of
the flow model against whole designs (tests/overlay/build/test_random_networks.py).
"""

from collections.abc import Callable
from typing import Any

import pytest

from bitloom.golden import zoo as networks
from bitloom.hls_gen.compiler.flow import simulate
from bitloom.hls_gen.compiler.flow.kahn import Stamps
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.flow.ports import FrameSource, MapResults
from bitloom.hls_gen.compiler.flow.streams import Fifo
from bitloom.hls_gen.compiler.flow.system import FlowNpu
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design import gearbox, timing
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl import generate as generation
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.build.reference_designs import DIGITS
from bitloom.overlay.build.small_npu import INTEGER

BINARY = Npu.of().changed(shift_bits=0, acc_bits=24)


def npus(cycles: int, base: Npu, *changes: dict[str, Any]) -> list[tuple[Npu, int]]:
    """Changes of an NPU with which a PE has a latency of ``cycles``."""
    return [(base.changed(**change), cycles) for change in changes]


def lanes(*counts: int, **more: Any) -> list[dict[str, Any]]:
    return [{"kfp": count, **more} for count in counts]


LATENCIES = [
    *npus(2, BINARY, {"kfp": 96, "collect": 96, "accumulate": "or"}, {"kfp": 200, "accumulate": "or"}),
    *npus(3, BINARY, {}, *lanes(64), *lanes(96, planes=2), *lanes(130, planes=8), *lanes(32, collect=64)),
    *npus(4, BINARY, *lanes(65), *lanes(200, 99, planes=2), *lanes(640, planes=8), *lanes(32, collect=96)),
    *npus(4, BINARY, {"kfp": 96, "collect": 96, "accumulate": "both"}),
    *npus(4, INTEGER, *lanes(1, 4)),
    *npus(5, INTEGER, *lanes(5, 16)),
    *npus(6, INTEGER, *lanes(17, 64)),
    *npus(7, INTEGER, *lanes(65)),
]


@pytest.mark.parametrize(("npu", "cycles"), LATENCIES)
def test_latency_of_a_pe(npu: Npu, cycles: int) -> None:
    assert timing.pe_latency(npu) == cycles
    assert FlowNpu(npu=npu).latencies.array == timing.array_latency(npu) == 1 + cycles


def test_latencies_and_depths_of_the_units() -> None:
    """The numbers that hardware was measured to have, in tests of the modules."""
    binary, integer = (FlowNpu(npu=npu) for npu in (Npu.of(), INTEGER))
    assert binary.latencies == timing.Latencies(array=4, activation=1, pool=1)
    assert integer.latencies == timing.Latencies(array=6, activation=6, pool=6)
    weighted = timing.latencies(INTEGER.changed(depthwise=True, skip_words=2))
    assert weighted == timing.Latencies(array=6, activation=6, addition=8, pool=3, pool_activation=6)
    assert (timing.pool_fifo(binary.npu).room, timing.pool_fifo(integer.npu).room) == (11, 13)
    assert (timing.room_words(4, 4), timing.room_words(16, 4)) == (1, 11)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"depthwise": True},
        {"pool_line_taps": 3},
        {"depthwise": True, "pool_line_taps": 2},
        {"pool_line_taps": 9, "pfp": 8, "pool_lane_lines": 2},
        {"depthwise": True, "pool_line_taps": 3, "pool_lines": 3},
    ],
)
def test_what_is_inside_the_pool_unit_has_room_behind_it(values: dict[str, int]) -> None:
    """A word a cycle of the unit's latency, and one for the register ``room``."""
    for npu in (INTEGER.changed(**values), *([] if "depthwise" in values else [BINARY.changed(**values)])):
        assert timing.latencies(npu).pool + 1 <= timing.pool_fifo(npu).margin


def asked(npu: Npu) -> tuple[timing.Latencies, int]:
    """The times of an NPU that the flow model asks for."""
    return FlowNpu(npu=npu).latencies, timing.pool_fifo(npu).room


def digits() -> list[int]:
    """Cycles in which frames leave an NPU whose results leave slowly."""
    model = networks.load("digits-cnn")
    npu = DIGITS.changed(kgp=16, ol=1)
    design = size_memories("digits", [model], npu)
    network_plan = plan(model, design.npus)
    return list(simulate(system(network_plan, design.npus), 2).left)


def put(sink: Fifo | MapResults) -> list[int | None]:
    """Cycles in which a store takes words, one after another, while nobody takes one out."""
    return [sink.put(0) for _ in range(9)]


def accepted() -> int:
    """Frames that are accepted while none has left."""
    done = Stamps("a frame to leave")
    frames = FrameSource(1, 32, 32, False, done)
    while frames.next() is not None:
        frames.taken(0)
    return len(frames.accepted)


NPU = BINARY.changed(kfp=40, map_words=9, pool_words=64)
FLOW: dict[str, tuple[int, Callable[[], object]]] = {
    "CREDITS": (1, digits),
    "ARRAY_READ": (2, lambda: asked(NPU)),
    "POPCOUNT_LANES": (32, lambda: asked(NPU)),
    "SUM_TERMS": (2, lambda: asked(INTEGER.changed(kfp=40))),
    "FIFO_MARGIN": (7, lambda: asked(NPU)),
    "LUT_RAM_WORDS": (8, lambda: put(Fifo(NPU.stores.map_words, Stamps("words"), Stamps("room")))),
    "FRAMES_IN_FLIGHT": (9, accepted),
    "MAP_HELD": (2, lambda: put(MapResults([1 << 20], 64, 32, Stamps("a frame to leave")))),
}
"""Name of a number -> another number, and what the flow model makes of it."""


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", FLOW)
def test_a_changed_number_changes_hardware_and_flow_model(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    number, flow = FLOW[name]
    npu = INTEGER.changed(kfp=40) if name == "SUM_TERMS" else NPU
    design = Design(name="timing", npus=(npu,))
    text = generate(design, checked=False).text
    before = flow()
    monkeypatch.setattr(timing, name, number)
    generation._blank.cache_clear()
    assert generate(design, checked=False).text != text
    assert flow() != before


GEARS = [(1, 1, 1, 1), (3, 10, 3, 1), (8, 64, 8, 1), (10, 3, 1, 4), (64, 8, 1, 8), (32, 33, 1, 1), (33, 32, 1, 2)]


@pytest.mark.parametrize(("source", "target", "together", "pieces"), GEARS)
def test_gear(source: int, target: int, together: int, pieces: int) -> None:
    assert gearbox.gear(source, target) == (together, pieces)
    assert gearbox.geared(7, source, target) == -(-7 // together) * pieces
