"""Two virtual boards in one process: each has its own interrupts, whichever pynq looks at by default."""

import asyncio
import re

import numpy as np
import pytest

from bitloom.driver import waiting
from bitloom.driver.accelerator import Accelerator
from bitloom.driver.errors import DeviceTaken
from bitloom.driver.overlay import BitloomOverlay
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.virtual.board import activate
from bitloom.overlay.virtual.simulation_overlay import write_simulation_overlay
from tests.cases import random_images
from tests.driver import design


class Board:
    """A virtual board with an overlay, a program, images, and golden's outputs for them."""

    def __init__(self, tag, bit, manifest, seed):
        self.device = activate(tag)
        model = design.model(seed=seed)
        self.images = random_images(model, 6, np.random.default_rng(seed))
        self.expected = model.forward(self.images)
        self.overlay = BitloomOverlay(str(bit), device=self.device)
        self.program = compile_model(model, manifest)
        self.overlay.load(self.program)
        self.waits = self.count()

    def count(self):
        """A list that gets an entry for each interrupt that the board raises for somebody who waits."""
        levels = []
        advance = self.device.advance_to_interrupt

        def look():
            high = advance()
            levels.extend([True] * high)
            return high

        self.device.advance_to_interrupt = look
        return levels

    def right(self, batch=2):
        self.same(self.overlay.predict(self.images, batch=batch))

    def same(self, outputs):
        np.testing.assert_array_equal(outputs, self.expected)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    npu = Npu.of(kfp=24, kgp=4, pfp=4, ol=1, taps=64, olds=64, jumps=16, pool_taps=16, pool_olds=16, kernel_rows=64)
    text = generate(Design(name="driver_test", npus=(npu,)))  # as tests/driver/test_simulation.py has it
    bit = write_simulation_overlay(tmp_path_factory.mktemp("overlay"), text.manifest, text.text)
    return bit, Manifest.from_dict(text.manifest)


@pytest.fixture
def boards(built, monkeypatch):
    """Two boards, of which the second one is pynq's default; calls wait for interrupts at once."""
    monkeypatch.setattr(waiting, "LOOKS_FIRST", 0)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    both = [Board("first", *built, 1), Board("second", *built, 2)]
    yield both
    for board in both:
        board.device.close()
    asyncio.set_event_loop(None)
    loop.close()


def test_used_at_the_same_time(boards):
    async def both():
        return await asyncio.gather(*(board.overlay.predict_async(board.images, batch=1) for board in boards))

    for _ in range(2):
        for board, outputs in zip(boards, asyncio.get_event_loop_policy().get_event_loop().run_until_complete(both())):
            board.same(outputs)
    assert all(board.waits for board in boards)


def test_an_accelerator_that_is_made_while_the_other_board_is_the_default(boards):
    first, second = boards
    accelerator = Accelerator(first.overlay)
    accelerator.load(first.program)
    before = len(first.waits), len(second.waits)
    first.same(accelerator.predict(first.images, batch=3))
    assert len(first.waits) > before[0]
    assert len(second.waits) == before[1]
    second.right()


def test_a_second_download_to_the_same_board(boards):
    first, second = boards
    second.overlay.download()
    first.right()
    second.overlay.load(second.program)
    second.right()
    again = BitloomOverlay(second.overlay.bitfile_name, device=second.device)
    name = re.escape(again.bitfile_name.rpartition("/")[2])
    with pytest.raises(DeviceTaken, match=f"got {name}: download it again, and load the program$"):
        second.overlay.predict(second.images)
    first.right()
