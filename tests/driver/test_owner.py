"""Two users of one device, on a fake board: nobody gets the other's results."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count

import numpy as np
import pynq
import pytest

from bitloom.driver.accelerator import Accelerator
from bitloom.driver.errors import DeviceError, DeviceTaken, DigestMismatch, TransferError
from bitloom.driver.overlay import BitloomOverlay

from . import design
from .fake_bench import Bench, raises, signature_of


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


class Two:
    """Two accelerators of one overlay, each with a program of its own."""

    def __init__(self, bench):
        overlay = pynq.Overlay(str(bench.path), device=bench.device)
        self.bench = bench
        self.other_model = design.model(seed=9)
        self.other = design.program(self.other_model, bench.manifest)
        self.other_signature = signature_of(self.other, bench.manifest)
        self.a, self.b = (Accelerator(overlay, timeout=0.2) for _ in "ab")
        self.a.load(bench.program)

    def taken(self, got: str, remedy: str = "load the program again"):
        mine = f"program dense (parameters 0x{self.bench.signature:08X})"
        return raises(DeviceTaken, f"fake: the device must hold {mine}, got {got}: {remedy}")

    @property
    def by_b(self) -> str:
        return f"dense (parameters 0x{self.other_signature:08X}), loaded by somebody else"

    @contextmanager
    def b_loads(self, moment: int) -> Iterator[None]:
        """B loads its program when registers are read for that time from now on, the first being 1."""
        device = self.bench.device
        reads = count(1)
        read = device.read_registers

        def hooked(address, length):
            if next(reads) == moment:
                device.read_registers = read
                self.b.load(self.other)
                device.read_registers = hooked
            return read(address, length)

        device.read_registers = hooked
        try:
            yield
        finally:
            device.read_registers = read

    def right(self) -> None:
        np.testing.assert_array_equal(self.a.predict(self.bench.images, batch=3), self.bench.expected)

    def b_is_right(self) -> None:
        images = self.bench.images
        np.testing.assert_array_equal(self.b.predict(images, batch=3), self.other_model.forward(images))


@pytest.fixture
def two(bench):
    return Two(bench)


def test_another_program(two):
    """The error says both, comes again and sends nothing; a load takes the device back, and the other one notices."""
    two.right()
    two.b.load(two.other)
    sent = len(two.bench.device.dma.sizes)
    for _ in range(2):
        with two.taken(two.by_b):
            two.a.predict(two.bench.images)
    assert len(two.bench.device.dma.sizes) == sent
    two.b_is_right()
    two.a.load(two.bench.program)
    two.right()
    with pytest.raises(DeviceTaken):
        two.b.predict(two.bench.images)


def test_the_same_program(two):
    two.b.load(two.bench.program)
    with two.taken(f"dense (parameters 0x{two.bench.signature:08X}), loaded by somebody else"):
        two.a.predict(two.bench.images)
    two.a.reset()
    two.right()


def test_a_reset_by_another_one(two):
    Accelerator(two.a.overlay)
    with two.taken("none: somebody has reset it"):
        two.a.predict(two.bench.images)


@pytest.mark.sample(6)
@pytest.mark.parametrize("moment", range(1, 400, 23))
def test_a_load_while_frames_are_computed(two, moment):
    """At whatever access to a register: right results, or the error; never a time-out or wrong results."""
    with two.b_loads(moment), suppress(DeviceTaken):
        two.right()
    two.b.load(two.other)
    with two.taken(two.by_b):
        two.right()
    two.b_is_right()


def test_an_idle_dma_is_left_to_who_has_taken_it(two, monkeypatch):
    """Between two transfers of A, B loads its program: A ends with the error and no reset of the DMA."""
    link = two.a._link
    states = []

    def reset(*given):
        states.append(link.busy)
        return type(link).reset(link, *given)

    two.right()
    monkeypatch.setattr(link, "reset", reset)
    idle = 0
    for moment in range(1, 40, 2):
        states.clear()
        with two.b_loads(moment), suppress(DeviceTaken):
            two.right()
            continue
        assert all(states), moment
        idle += not states
        two.a.load(two.bench.program)
    assert idle > 0


def test_no_transfer_goes_on_after_the_device_was_taken(two):
    """Where frames came after B's load, the device refuses them, and A's receive waits for ever: A halts it.

    The fake's memory asserts that no transfer uses what is freed.
    """
    running = 0
    for moment in range(1, 60, 2):
        with two.b_loads(moment), suppress(DeviceTaken):
            two.right()
        running += two.bench.device.dma.target is not None
        two.a.close()
        two.a.load(two.bench.program)
    assert running == 0


@pytest.mark.sample(4)
@pytest.mark.parametrize("moment", range(1, 60, 5))
def test_two_loads_at_once(two, moment):
    """Whoever is the loser hears of it, at the latest with the first frame."""
    with two.b_loads(moment), suppress(DeviceError):
        two.a.load(two.bench.program)
        two.right()
    for one, program in ((two.a, two.bench.program), (two.b, two.other)):
        with suppress(DeviceError):
            one.predict(two.bench.images)
        one.load(program)
        if one is two.a:
            two.right()
    two.b_is_right()


def test_another_overlay_in_this_process(bench, tmp_path):
    """pynq knows of a download by somebody else, even of the same file."""
    with BitloomOverlay(bench.path, device=bench.device, timeout=0.2) as a:
        a.load(bench.program)
        BitloomOverlay(bench.path, device=bench.device, timeout=0.2)
        remedy = "download it again, and load the program"
        with raises(DeviceTaken, f"fake: the device must hold design fake, got fake.bit: {remedy}"):
            a.predict(bench.images)
        a.download()
        a.load(bench.program)
        np.testing.assert_array_equal(a.predict(bench.images), bench.expected)


OTHERS = [({0x08: 0xDEADBEEF}, f"another design (deadbeef{design.DIGEST[8:32]})")]
OTHERS.append(({0x00: 7}, f"no design of bitloom ({design.DIGEST[:32]})"))


@pytest.mark.parametrize(("constants", "owner"), OTHERS)
def test_another_bitstream_by_another_process(two, constants, owner):
    two.bench.device.core.reset()
    two.bench.device.core.constants |= constants
    wanted = f"design fake ({design.DIGEST[:32]})"
    remedy = "download it again, and load the program"
    with raises(DeviceTaken, f"fake: the device must hold {wanted}, got {owner}: {remedy}"):
        two.a.predict(two.bench.images)


def test_parameters_that_change_on_the_way(two):
    """The device's signature is another one, and nobody has interfered."""
    give = two.bench.device.core.give
    words = [0]

    def change(word, last):
        words[0] += 1
        give(word ^ (words[0] == 6), last)

    two.bench.device.core.give = change
    with pytest.raises(TransferError, match=r"^fake: parameters of dense must arrive with signature 0x\w{8}, got 0x\w"):
        two.a.load(two.bench.program)
    two.bench.device.core.give = give
    two.a.load(two.bench.program)
    two.right()


def test_a_device_that_was_taken_keeps_its_errors_apart(two):
    """A digest of another build is still told as such when an accelerator is made."""
    two.bench.device.core.constants[0x08] = 0xDEADBEEF
    with pytest.raises(DigestMismatch):
        Accelerator(two.a.overlay)
