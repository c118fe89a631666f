"""Results at a place that is fixed when a program is loaded: one buffer, frame after frame, whatever the batches."""

import asyncio

import numpy as np
import pynq
import pytest

from bitloom.driver.overlay import BitloomOverlay

from .fake_bench import Bench, raises


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def raw(bench, accelerator, count=None):
    """Contents of the memory at the place that the buffer names, as others would read it, in golden's values."""
    words = accelerator.program.result_words * (count or len(bench.images))
    memory = bench.device.view(accelerator.results.physical_address, 4 * words)
    return accelerator.program.unpack_results(np.frombuffer(memory, "<u4"))


@pytest.mark.parametrize("batch", [None, 1, 4])
def test_results_lie_frame_after_frame(bench, batch):
    with bench.loaded() as accelerator:
        assert accelerator.results is None
        accelerator.load(bench.program, results=len(bench.images))
        place = accelerator.results.physical_address
        np.testing.assert_array_equal(accelerator.predict(bench.images, batch=batch), bench.expected)
        np.testing.assert_array_equal(raw(bench, accelerator), bench.expected)
        outputs = asyncio.run(accelerator.predict_async(bench.images[::-1], batch=batch))
        np.testing.assert_array_equal(outputs, bench.expected[::-1])
        np.testing.assert_array_equal(raw(bench, accelerator), bench.expected[::-1])
        accelerator.reset()
        accelerator.predict(bench.images[:2])
        np.testing.assert_array_equal(raw(bench, accelerator, 2), bench.expected[:2])
        assert accelerator.results.physical_address == place
        assert isinstance(accelerator.results, pynq.buffer.PynqBuffer)


def test_no_call_may_have_more_results_than_fit(bench):
    with bench.loaded() as accelerator:
        accelerator.load(bench.program, results=10)
        with raises(ValueError, f"{bench.program.name}: images must be at most 10, as load was told, got 11"):
            accelerator.predict(bench.images)
        np.testing.assert_array_equal(accelerator.predict(bench.images[:10]), bench.expected[:10])


def test_it_lasts_until_the_next_load(bench):
    accelerator = bench.loaded()
    for frames in (3, 20):
        accelerator.load(bench.program, results=frames)
        assert accelerator.results.shape == (frames * bench.program.result_words,)
    accelerator.load(bench.program)
    assert accelerator.results is None
    np.testing.assert_array_equal(accelerator.predict(bench.images), bench.expected)
    accelerator.load(bench.program, results=3)
    with raises(ValueError, "fake: results must be >= 0 frames, got -1"):
        accelerator.load(bench.program, results=-1)
    with raises(ValueError, "fake: results must be an integer, got 2.5"):
        accelerator.load(bench.program, results=2.5)
    assert accelerator.results.size == 3 * bench.program.result_words
    accelerator.close()
    assert accelerator.results is None
    assert bench.device.allocated == {}


def test_an_overlay_tells_it_too(bench):
    with BitloomOverlay(bench.path, device=bench.device) as overlay:
        overlay.load(bench.program, results=11)
        overlay.predict(bench.images)
        np.testing.assert_array_equal(raw(bench, overlay.accelerator), bench.expected)
        assert overlay.results is overlay.accelerator.results
