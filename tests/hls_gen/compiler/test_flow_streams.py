"""The FIFO and the skip store of the flow model against clocked models of them, register by register, under random
stalls."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from bitloom.hls_gen.compiler.flow.kahn import Stamps
from bitloom.hls_gen.compiler.flow.stores import SkipFifo, SkipSide, SkipSource
from bitloom.hls_gen.compiler.flow.streams import Fifo, Sink, Source


def gaps(seed: int, busy: float, count: int) -> list[int]:
    """Cycles from one event to the earliest next one, >= 1."""
    rng = np.random.default_rng(seed)
    return (1 + rng.geometric(busy, count) - 1).tolist()


def drive(sink: Sink, source: Source, offers: Sequence[int], pauses: Sequence[int]) -> tuple[list[int], list[int]]:
    """(cycles in, cycles out): a producer that offers word k ``offers[k]`` cycles after word k - 1 went in, a consumer
    that is ready ``pauses[k]`` cycles after it took word k - 1. Both go as far as is known, in turn."""
    ins: list[int] = []
    outs: list[int] = []
    first: int | None = None
    while len(outs) < len(offers):
        before = len(ins), len(outs)
        while len(ins) < len(offers):
            put = sink.put((ins[-1] if ins else 0) + offers[len(ins)])
            if put is None:
                break
            ins.append(put)
        while len(outs) < len(offers):
            first = source.next() if first is None else first
            if first is None:
                break
            outs.append(max(first, (outs[-1] if outs else 0) + pauses[len(outs)]))
            source.taken(outs[-1])
            first = None
        assert (len(ins), len(outs)) != before, "neither side goes on"
    return ins, outs


Clocked = Callable[[int, bool, bool], tuple[bool, bool]]
"""A store's cycle: (cycle, a word is offered, one may leave) -> (it goes in, one leaves)."""


def clock(store: Clocked, offers: Sequence[int], pauses: Sequence[int]) -> tuple[list[int], list[int]]:
    """As ``drive``, cycle by cycle."""
    ins: list[int] = []
    outs: list[int] = []
    cycle = 0
    while len(outs) < len(offers):
        offered = len(ins) < len(offers) and cycle >= (ins[-1] if ins else 0) + offers[len(ins)]
        ready = cycle >= (outs[-1] if outs else 0) + pauses[len(outs)]
        went, left = store(cycle, offered, ready)
        if went:
            ins.append(cycle)
        if left:
            outs.append(cycle)
        cycle += 1
    return ins, outs


def clocked_fifo(depth: int, register: bool = False) -> Clocked:
    """hls_gen/rtl/primitives/fifo.py; and with a ``register`` behind it, hls_gen/rtl/shell/stores.py."""
    state = {"level": 0, "out": 0, "held": 0, "ready": 1}

    def cycle(_: int, offered: bool, may_leave: bool) -> tuple[bool, bool]:
        level, out, held = state["level"], state["out"], state["held"]
        ready = state["ready"] if depth > 64 else level != depth
        leaves = bool((held if register else out) and may_leave)
        onward = bool(out and (not held or leaves)) if register else leaves
        goes = bool(offered and ready)
        get = level > 0 and (not out or onward)
        state.update(level=level + goes - get, out=int(get or (out and not onward)), ready=int(level < depth - 1))
        state.update(held=int(register and (onward or (held and not leaves))))
        return goes, leaves

    return cycle


@pytest.mark.parametrize("depth", [1, 2, 5, 64, 65, 70])
@pytest.mark.parametrize(("fast_in", "fast_out"), [(1.0, 1.0), (1.0, 0.4), (0.4, 1.0), (0.6, 0.6), (1.0, 0.95)])
def test_fifo(depth: int, fast_in: float, fast_out: float) -> None:
    fifo = Fifo(depth, Stamps("words"), Stamps("room"))
    offers, pauses = gaps(1, fast_in, 400), gaps(2, fast_out, 400)
    pauses[0] += 150  # fills it
    assert drive(fifo, fifo, offers, pauses) == clock(clocked_fifo(depth), offers, pauses)
    assert fifo.level() <= depth


@pytest.mark.parametrize("depth", [1, 2, 5, 64, 65, 70])
@pytest.mark.parametrize(("fast_in", "fast_out"), [(1.0, 1.0), (1.0, 0.4), (0.4, 1.0), (0.6, 0.6), (1.0, 0.95)])
def test_skip_store(depth: int, fast_in: float, fast_out: float) -> None:
    """All words are for the addition."""
    store = SkipFifo(depth, [(1, True)], SkipSide(), SkipSide())
    offers, pauses = gaps(1, fast_in, 400), gaps(2, fast_out, 400)
    pauses[0] += 150
    expected = clock(clocked_fifo(depth, register=True), offers, pauses)
    assert drive(store, SkipSource(store, store.addition), offers, pauses) == expected
    assert store.level() <= depth
