"""predict_async on a fake board: with an interrupt, with a lost one, without; other coroutines go on meanwhile."""

import asyncio

import numpy as np
import pynq
import pytest

from bitloom.driver.errors import PacketError, Timeout

from .fake_bench import Bench, recovers


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def awaited(bench):
    pynq.Device.active_device = bench.device  # pynq's interrupts look nowhere else
    return bench.device.connect_interrupt()


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
    awaited(bench)
    bench.device.speed = 1
    with bench.loaded() as accelerator:
        assert accelerator.has_interrupt
        outputs, turns = run_beside_others(accelerator.predict_async(bench.images, batch=4))
        np.testing.assert_array_equal(outputs, bench.expected)
        assert accelerator.counters()["frames"] == 11
        assert turns > 20


def test_async_after_polling_waits_for_a_new_interrupt(bench, monkeypatch):
    """The one left over from polling is cleared before the transfer begins that shall raise the next."""
    awaited(bench)
    with bench.loaded() as accelerator:
        accelerator.predict(bench.images)
        dma, channel, pending = bench.device.dma, accelerator._link.dma._dma.recvchannel, []
        assert dma.regs[0x34] & 0x1000
        transfer = channel.transfer
        monkeypatch.setattr(
            channel, "transfer", lambda *given: (pending.append(dma.regs[0x34] & 0x1000), transfer(*given))
        )
        np.testing.assert_array_equal(asyncio.run(accelerator.predict_async(bench.images)), bench.expected)
        assert pending == [0]
        np.testing.assert_array_equal(accelerator.predict(bench.images), bench.expected)


def test_async_with_a_lost_interrupt(bench):
    awaited(bench).lost = True
    with bench.loaded() as accelerator:
        np.testing.assert_array_equal(asyncio.run(accelerator.predict_async(bench.images)), bench.expected)


def test_async_without_an_interrupt(bench):
    bench.device.speed = 1
    with bench.loaded() as accelerator:
        assert not accelerator.has_interrupt
        outputs, turns = run_beside_others(accelerator.predict_async(bench.images, batch=4))
        np.testing.assert_array_equal(outputs, bench.expected)
        assert turns > 20


def test_async_without_an_interrupt_gives_up_too(bench):
    accelerator = bench.loaded()
    bench.device.core.stuck = True
    with pytest.raises(Timeout):
        asyncio.run(accelerator.predict_async(bench.images))
    bench.device.core.stuck = False
    recovers(bench, accelerator)


def test_async_faults(bench):
    awaited(bench)
    accelerator = bench.loaded()
    bench.device.core.stuck = True
    with pytest.raises(Timeout):
        asyncio.run(accelerator.predict_async(bench.images))
    bench.device.core.stuck = False
    recovers(bench, accelerator)
    bench.device.core.loaded = 0
    with pytest.raises(PacketError):
        asyncio.run(accelerator.predict_async(bench.images))
    recovers(bench, accelerator)
