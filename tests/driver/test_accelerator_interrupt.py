"""predict on a fake board whose interrupts are wired: it waits for them where this thread's loop stands still."""

import asyncio
import threading

import numpy as np
import pynq
import pytest

from bitloom.driver import waiting
from bitloom.driver.errors import PacketError, Timeout

from .fake_bench import Bench, recovers

LOOKS_FIRST = waiting.LOOKS_FIRST
"""As the driver has it; the bench here has fewer."""


@pytest.fixture
def loop():
    """This thread's event loop, as a script has one that pynq asked for."""
    event_loop = asyncio.new_event_loop()
    asyncio.set_event_loop(event_loop)
    yield event_loop
    asyncio.set_event_loop(None)
    event_loop.close()


@pytest.fixture
def bench(tmp_path, loop, monkeypatch):
    """A slow device, with fewer looks first than a transfer takes."""
    monkeypatch.setattr(waiting, "LOOKS_FIRST", 1)
    bench = Bench(tmp_path)
    pynq.Device.active_device = bench.device  # pynq's interrupts look nowhere else
    bench.dma, bench.core = bench.device.connect_interrupt(), bench.device.connect_core_interrupt()
    bench.device.speed = 1
    return bench


def events(bench):
    """How often each interrupt was waited for and came."""
    return bench.dma.events, bench.core.events


def test_predict_waits_for_both_interrupts(bench):
    with bench.loaded() as accelerator:
        np.testing.assert_array_equal(accelerator.predict(bench.images), bench.expected)
        assert events(bench) == (1, 1)
        np.testing.assert_array_equal(accelerator.predict(bench.images, batch=6), bench.expected)
        assert events(bench) == (3, 3), "one for each transfer"
        assert bench.device.core.irq_enable == 0


def test_a_short_transfer_has_ended_before(bench, monkeypatch):
    monkeypatch.setattr(waiting, "LOOKS_FIRST", LOOKS_FIRST)
    bench.device.speed = 64
    with bench.loaded() as accelerator:
        np.testing.assert_array_equal(accelerator.predict(bench.images), bench.expected)
        assert events(bench) == (0, 0)


def test_while_the_loop_runs_nobody_can_wait_in_it(bench, loop):
    async def main():
        return accelerator.predict(bench.images)

    with bench.loaded() as accelerator:
        np.testing.assert_array_equal(loop.run_until_complete(main()), bench.expected)
        assert events(bench) == (0, 0)


def test_another_thread_has_no_loop(bench):
    predictions = []
    with bench.loaded() as accelerator:
        thread = threading.Thread(target=lambda: predictions.append(accelerator.predict(bench.images)))
        thread.start()
        thread.join()
        np.testing.assert_array_equal(predictions[0], bench.expected)
        assert events(bench) == (0, 0)


def test_a_closed_loop_is_none(bench, loop):
    loop.close()
    with bench.loaded() as accelerator:
        np.testing.assert_array_equal(accelerator.predict(bench.images), bench.expected)
        assert events(bench) == (0, 0)


def test_each_loop_has_events_of_its_own(bench):
    """pynq's are of the first loop that waits for them, and no other one could."""
    with bench.loaded() as accelerator:
        np.testing.assert_array_equal(accelerator.predict(bench.images), bench.expected)
        for count in (2, 3):
            result = asyncio.run(accelerator.predict_async(bench.images))
            np.testing.assert_array_equal(result, bench.expected)
            assert events(bench) == (count, count)


def test_where_no_interrupt_ever_came_the_device_is_looked_at_often(bench, monkeypatch):
    """As on a board in a loop that isn't the one in which the overlay was made. Else each batch took seconds."""
    bench.dma.lost = bench.core.lost = True
    waits = []
    wait = asyncio.wait

    def waits_noted(tasks, *, timeout, **given):
        waits.append(timeout)
        return wait(tasks, timeout=timeout, **given)

    monkeypatch.setattr(asyncio, "wait", waits_noted)
    with bench.loaded(timeout=800) as accelerator:
        np.testing.assert_array_equal(accelerator.predict(bench.images), bench.expected)
        assert set(waits) == {waiting.LOOK_AGAIN}
        bench.dma.lost = bench.core.lost = False
        for _ in range(100):  # and now one comes, unless results are seen long before
            waits.clear()
            accelerator.predict(bench.images)
            if waits[0] == 100:
                break
        assert waits[0] == 100


@pytest.mark.parametrize("line", ["dma", "core"])
def test_one_of_both_may_get_lost(bench, line):
    getattr(bench, line).lost = True
    with bench.loaded() as accelerator:
        for count in (1, 2):
            np.testing.assert_array_equal(accelerator.predict(bench.images), bench.expected)
            assert sum(events(bench)) == count


def test_a_refused_packet_ends_the_wait(bench, monkeypatch):
    monkeypatch.setattr(waiting, "LOOKS_FIRST", 0)  # which would see it before
    accelerator = bench.loaded()
    bench.device.core.loaded = 0
    with pytest.raises(PacketError):
        accelerator.predict(bench.images)
    assert events(bench) == (0, 1)
    assert bench.device.core.irq_enable == 0
    recovers(bench, accelerator)


def test_a_stuck_device_ends_in_a_time_out(bench):
    accelerator = bench.loaded()
    bench.device.core.stuck = True
    with pytest.raises(Timeout, match=r"11 frames must be computed, got no progress for 0\.2 s"):
        accelerator.predict(bench.images)
    bench.device.core.stuck = False
    recovers(bench, accelerator)


def test_ctrl_c_ends_the_wait(bench, loop, monkeypatch):
    """The loop stops at once; nothing of the call is left in it, and the DMA is halted."""
    accelerator = bench.loaded()

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(bench.core, "high", interrupted)
    with pytest.raises(KeyboardInterrupt):
        accelerator.predict(bench.images)
    assert bench.device.core.irq_enable == 0
    assert bench.device.dma.target is None
    assert [task for task in asyncio.all_tasks(loop) if "results_async" in repr(task)] == []
    monkeypatch.undo()
    recovers(bench, accelerator)
