"""predict_async on a fake board: with an interrupt, with a lost one, without; other coroutines go on meanwhile."""

import asyncio

import numpy as np
import pynq
import pytest

from tests.errors import value_error

from .fake_bench import Bench, recovers


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def awaited(bench):
    pynq.Device.active_device = bench.device  # pynq's interrupts look nowhere else
    return bench.device.connect_interrupt()


def awaited_core(bench):
    pynq.Device.active_device = bench.device
    return bench.device.connect_core_interrupt()


def run_beside_others(coroutine):
    """(its result, turns that another coroutine had meanwhile)."""
    turns = 0

    async def others():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def main():
        other = asyncio.ensure_future(others())
        result = await coroutine
        other.cancel()
        return result

    return asyncio.run(main()), turns


def test_async(bench):
    line = awaited(bench)
    bench.device.speed = 1
    with bench.loaded() as accelerator:
        assert accelerator.has_interrupt
        outputs, turns = run_beside_others(accelerator.predict_async(bench.images, batch=4))
        np.testing.assert_array_equal(outputs, bench.expected)
        assert accelerator.counters()["frames"] == 11
        assert turns > 20
        assert line.events == 3, "one for each transfer"


def test_async_after_polling_waits_for_a_new_interrupt(bench, monkeypatch):
    """The one left over from polling is cleared before the transfer begins that shall raise the next."""
    awaited(bench)
    with bench.loaded() as accelerator:
        accelerator.predict(bench.images)
        dma = bench.device.dma
        channel = accelerator._link._dma.recvchannel
        pending = []
        assert dma.regs[0x34] & 0x1000
        transfer = channel.transfer
        monkeypatch.setattr(
            channel, "transfer", lambda *given: (pending.append(dma.regs[0x34] & 0x1000), transfer(*given))
        )
        np.testing.assert_array_equal(asyncio.run(accelerator.predict_async(bench.images)), bench.expected)
        assert pending == [0]
        np.testing.assert_array_equal(accelerator.predict(bench.images), bench.expected)


def test_what_the_core_has_pending_is_cleared_before_the_next_transfer(bench, monkeypatch):
    awaited_core(bench)
    with bench.loaded() as accelerator:
        accelerator.predict(bench.images)
        core = bench.device.core
        link = accelerator._link
        pending = []
        assert core.irq_status == 1
        exchange = link.exchange
        monkeypatch.setattr(link, "exchange", lambda *given: (pending.append(core.irq_status), exchange(*given)))
        np.testing.assert_array_equal(asyncio.run(accelerator.predict_async(bench.images)), bench.expected)
        assert pending == [0]


def test_images_that_are_changed_before_they_are_packed_are_refused(bench):
    awaited(bench)
    with bench.loaded() as accelerator:
        images = bench.images.copy()

        async def change():
            images[-1, 0, 0, 0] = 5

        async def both():
            return await asyncio.gather(accelerator.predict_async(images, batch=2), change())

        with value_error("dense: images: values must be bipolar 1 bit (-1..1 in steps of 2), got 5"):
            asyncio.run(both())
        recovers(bench, accelerator)

        def during(done, total):
            images[-1, 0, 0, 0] = 7

        images[:] = bench.images
        with value_error("dense: images: values must be bipolar 1 bit (-1..1 in steps of 2), got 7"):
            accelerator.predict(images, batch=2, progress=during)
        recovers(bench, accelerator)


def test_the_interrupt_of_the_core_ends_the_wait(bench):
    """Where it alone is wired. It is enabled only while somebody waits."""
    irq = awaited_core(bench)
    with bench.loaded() as accelerator:
        assert accelerator.has_interrupt
        bench.device.speed = 1

        async def three_times():
            first = await accelerator.predict_async(bench.images, batch=4)
            assert irq.events == 3, "one for each transfer"
            assert bench.device.core.irq_enable == 0
            accelerator.predict(bench.images)
            assert bench.device.core.irq_status == 1
            assert irq.events == 3
            return first, await accelerator.predict_async(bench.images)

        outputs, turns = run_beside_others(three_times())
        for output in outputs:
            np.testing.assert_array_equal(output, bench.expected)
        assert irq.events == 4
        assert turns > 20


def test_both_interrupts_are_used(bench):
    dma = awaited(bench)
    core = awaited_core(bench)
    with bench.loaded() as accelerator:
        bench.device.speed = 1
        outputs = asyncio.run(accelerator.predict_async(bench.images, batch=4))
        np.testing.assert_array_equal(outputs, bench.expected)
        assert (dma.events, core.events) == (3, 3)


def test_async_without_an_interrupt(bench):
    bench.device.speed = 1
    with bench.loaded() as accelerator:
        assert not accelerator.has_interrupt
        outputs, turns = run_beside_others(accelerator.predict_async(bench.images, batch=4))
        np.testing.assert_array_equal(outputs, bench.expected)
        assert turns > 20
