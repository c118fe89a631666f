"""Calls that come while another one waits for the device: refused, and the one under way is right."""

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pynq
import pytest

from bitloom.driver.accelerator import Accelerator
from bitloom.driver.errors import DeviceError, TransferError
from bitloom.driver.overlay import BitloomOverlay

from .fake_bench import Bench, raises

BUSY = "fake: one call at a time must use the device: await or cancel the one that is under way, got another one"
CLOSED = "fake: the device must stay open until a call has ended, got a close"


@pytest.fixture(params=["interrupt", "no interrupt"])
def bench(request, tmp_path):
    """A slow device, whose end of transfer is awaited or looked for."""
    bench = Bench(tmp_path)
    if request.param == "interrupt":
        pynq.Device.active_device = bench.device  # pynq's interrupts look nowhere else
        bench.device.connect_interrupt()
    bench.device.speed = 1
    return bench


def meanwhile(bench: Bench, user: Any, turns: int, other: Callable[[], Any]) -> list[Any]:
    """The result of a prediction, or its error, and that of ``other``, which is called while the first waits."""

    async def later() -> Any:
        for _ in range(turns):
            await asyncio.sleep(0)
        answer = other()
        return await answer if asyncio.iscoroutine(answer) else answer

    async def both() -> list[Any]:
        return await asyncio.gather(user.predict_async(bench.images, batch=4), later(), return_exceptions=True)

    return asyncio.run(both())


OTHERS = {
    "predict_async": lambda bench, a: a.predict_async(bench.images[::-1]),
    "predict": lambda bench, a: a.predict(bench.images[::-1]),
    "load": lambda bench, a: a.load(bench.program),
    "reset": lambda bench, a: a.reset(),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("turns", [0, 1, 9])
@pytest.mark.parametrize("other", OTHERS)
def test_a_second_call_is_refused(bench, other, turns):
    """So nobody gets the other one's results, and both calls are right one after the other."""
    with bench.loaded() as accelerator:
        first, second = meanwhile(bench, accelerator, turns, lambda: OTHERS[other](bench, accelerator))
        assert (type(second), str(second)) == (DeviceError, BUSY)
        np.testing.assert_array_equal(first, bench.expected)
        np.testing.assert_array_equal(accelerator.predict(bench.images[::-1]), bench.expected[::-1])


@pytest.mark.parametrize("turns", [0, 1, 9])
def test_a_close_ends_the_call_and_its_transfers(bench, turns):
    """The DMA is halted before buffers are freed, which it would write to; a load makes all right again."""
    with bench.loaded() as accelerator:
        first, second = meanwhile(bench, accelerator, turns, accelerator.close)
        assert (type(first), str(first), second) == (TransferError, CLOSED, None)
        accelerator.load(bench.program)
        np.testing.assert_array_equal(accelerator.predict(bench.images), bench.expected)


def test_a_download_under_a_call_of_ones_own(bench):
    """The overlay's next call may begin before the first one has noticed, which disturbs nothing then."""
    with BitloomOverlay(bench.path, device=bench.device) as overlay:
        overlay.load(bench.program)

        def anew():
            overlay.download()
            overlay.load(bench.program)
            return overlay.predict_async(bench.images[::-1], batch=3)

        first, second = meanwhile(bench, overlay, 3, anew)
        assert (type(first), str(first)) == (TransferError, CLOSED)
        np.testing.assert_array_equal(second, bench.expected[::-1])


def test_a_cancelled_call_makes_room(bench):
    with bench.loaded() as accelerator:

        async def cancelled():
            task = asyncio.ensure_future(accelerator.predict_async(bench.images))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task})
            return await accelerator.predict_async(bench.images)

        np.testing.assert_array_equal(asyncio.run(cancelled()), bench.expected)


def test_an_overlay_that_is_not_loaded(bench):
    """pynq's own words would be a RuntimeError."""
    overlay = pynq.Overlay(str(bench.path), device=bench.device)
    pynq.Overlay(str(bench.path), device=bench.device)
    with raises(DeviceError, "fake: the overlay must be loaded, got another one: call download()"):
        Accelerator(overlay)
