"""Several boards as one: on virtual boards in this process, and on servers, some of which are killed or stopped."""

import os
import signal
from contextlib import ExitStack
from dataclasses import replace
from importlib.metadata import version
from threading import Barrier, Event, current_thread
from types import SimpleNamespace

import numpy as np
import pytest

from bitloom.driver import accelerator_group
from bitloom.driver.accelerator import Accelerator
from bitloom.driver.accelerator_group import AcceleratorGroup
from bitloom.driver.errors import DeviceError, DigestMismatch, Timeout
from bitloom.golden import zoo
from bitloom.golden.zoo.digits import load_digits
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.reference_designs import DIGITS
from bitloom.overlay.virtual.board import activate
from tests.errors import value_error


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """digits-cnn: its design, program, images and what golden makes of them."""
    model = zoo.load("digits-cnn")
    build = builds.build(tmp_path_factory.mktemp("digits"), size_memories("digits", [model], DIGITS), [model])
    images = load_digits().test_images[:40]
    program = Program.load(build.programs["digits-cnn"])
    expected = model.forward(images)
    classes = expected.reshape(40, -1).argmax(axis=1)
    return SimpleNamespace(
        bit=build.bit, folder=build.folder, program=program, images=images, expected=expected, classes=classes
    )


@pytest.fixture
def boards(digits):
    """boards(n) -> n virtual boards in this process, and an accelerator on each."""
    with ExitStack() as stack:

        def start(count):
            accelerators = []
            for number in range(count):
                device = activate(f"virtual {number}")
                stack.callback(device.close)
                accelerators.append((device, Accelerator(digits.bit, device=device, timeout=10.0)))
            return [device for device, _ in accelerators], [accelerator for _, accelerator in accelerators]

        yield start


@pytest.mark.sample(1)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_equals_golden(digits, boards, count):
    done = []
    with AcceleratorGroup(boards(count)[1]) as group:
        group.load(digits.program)
        outputs = group.predict(digits.images, batch=2, progress=lambda *at: done.append(at))
        np.testing.assert_array_equal(outputs, digits.expected)
        assert sum(group.frames) == 40
        assert done[-1] == (40, 40)
        assert done == sorted(set(done))
        np.testing.assert_array_equal(group.classify(digits.images), digits.classes)
        assert group.predict(digits.images[:0]).shape == digits.expected[:0].shape
        np.testing.assert_array_equal(group.predict(digits.images[:1]), digits.expected[:1])
        assert group.lost == {}


def test_a_board_that_stands_still_loses_no_frame(digits, boards):
    devices, accelerators = boards(3)
    with AcceleratorGroup(accelerators) as group:
        group.load(digits.program)
        devices[1].stall(sink=1.0)
        accelerators[1]._waiting.timeout = 0.1
        np.testing.assert_array_equal(group.predict(digits.images, share=3), digits.expected)
        assert list(group.lost) == [1]
        assert isinstance(group.lost[1], Timeout)
        assert group.frames[1] == 0
        devices[1].stall()  # it would answer again, but is lost until the next load
        accelerators[1]._waiting.timeout = 10.0
        np.testing.assert_array_equal(group.predict(digits.images), digits.expected)
        assert group.frames[1] == 0
        group.load(digits.program)
        np.testing.assert_array_equal(group.predict(digits.images), digits.expected)
        assert group.lost == {}
        assert group.frames[1] > 0


def test_when_all_boards_are_lost(digits, boards):
    devices, accelerators = boards(2)
    with AcceleratorGroup(accelerators) as group:
        with pytest.raises(DeviceError, match="a program must be loaded on the group before images, got none"):
            group.predict(digits.images)
        group.load(digits.program)
        for device, accelerator in zip(devices, accelerators):
            device.stall(sink=1.0)
            accelerator._waiting.timeout = 0.1
        for _ in range(2):
            with pytest.raises(DeviceError, match=r"^a board of the group must answer, got none: board 0: .*; board 1"):
                group.predict(digits.images)


def test_boards_work_at_the_same_time(digits, boards, monkeypatch):
    """No board's first share ends before all boards have begun one."""
    _, accelerators = boards(4)
    all_begun = Barrier(4, timeout=60)
    with AcceleratorGroup(accelerators) as group:
        group.load(digits.program)
        for accelerator in accelerators:

            def together(images, *given, answer=accelerator.predict, begun=[]):  # noqa: B006
                if not begun:
                    all_begun.wait()
                    begun.append(True)
                return answer(images, *given)

            monkeypatch.setattr(accelerator, "predict", together)
        np.testing.assert_array_equal(group.predict(digits.images), digits.expected)
        assert min(group.frames) > 0


def test_a_silent_board_is_given_up(digits, boards, monkeypatch):
    """As over a network that takes requests and never answers; what comes late counts for nothing."""
    _, accelerators = boards(2)
    asked = []
    late = Event()
    with AcceleratorGroup(accelerators, patience=3) as group:
        group.load(digits.program)
        answer = accelerators[0].predict

        def silent(*given):
            asked.append(current_thread())
            late.wait(60)
            return answer(*given) + 1

        monkeypatch.setattr(accelerators[0], "predict", silent)
        outputs = group.predict(digits.images)
        late.set()
        asked[0].join(60)
        np.testing.assert_array_equal(outputs, digits.expected)
        assert {number: str(error) for number, error in group.lost.items()} == {
            0: "a batch must be computed in 3 s, got no answer"
        }


def test_each_batch_shows_that_a_board_is_at_work(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(accelerator_group, "time", SimpleNamespace(monotonic=lambda: now[0]))
    call = accelerator_group._GroupCall(frames=8, share=4, shape=(1, 1, 10), boards=2, patience=10.0)
    assert (call.take(0), call.take(1)) == (slice(0, 4), slice(4, 8))
    for _ in range(5):
        now[0] += 9.0
        call.answered(0)
    call._give_up_late()
    assert list(call.failed) == [1]
    assert call.take(1) is None
    call.finish(0, np.zeros((4, 1, 1, 10)))
    assert call.take(0) == slice(4, 8)


def test_a_call_may_be_stopped(digits, boards):
    def stop(*_):
        raise KeyboardInterrupt

    with AcceleratorGroup(boards(2)[1]) as group:
        group.load(digits.program)
        with pytest.raises(KeyboardInterrupt):
            group.predict(digits.images, share=1, progress=stop)
        assert sum(group.frames) < 40
        np.testing.assert_array_equal(group.predict(digits.images), digits.expected)


def test_what_is_refused(digits, boards):
    _, (first, second) = boards(2)
    with value_error("accelerators must be one or more, each once, got 0"):
        AcceleratorGroup([])
    with value_error("accelerators must be one or more, each once, got 2"):
        AcceleratorGroup([first, first])
    with value_error("patience must be > 0 seconds, got 0"):
        AcceleratorGroup([first], patience=0)
    with AcceleratorGroup([first, second]) as group:
        group.load(digits.program)
        with value_error("share must be >= 1 frame, got 0"):
            group.predict(digits.images, share=0)
        with pytest.raises(ValueError, match="images must have shape"):
            group.predict(digits.images[0])
        changed = digits.images.copy()
        second.predict = first.predict = lambda *_: (_ for _ in ()).throw(ValueError("images were changed"))
        with value_error("images were changed"):
            group.predict(changed)
        assert group.lost == {}
    second.manifest = replace(second.manifest, digest="0" * 64)
    with pytest.raises(DigestMismatch, match="board 1: all boards of"):
        AcceleratorGroup([first, second])


@pytest.mark.slow  # three servers
def test_servers_of_which_one_is_killed_and_one_is_stopped(digits):
    """pynq's own remote devices, each with a server in another process."""
    if int(version("pynq").partition(".")[0]) < 4:
        pytest.skip("PYNQ's remote protocol comes with pynq 4")
    from tests.overlay.virtual.remote import remote_devices
    from tests.overlay.virtual.serve.test_stock_pynq import free_address, serving

    with ExitStack() as stack:
        processes, addresses = [], []
        for _ in range(3):
            addresses.append(free_address())
            processes.append(stack.enter_context(serving(digits.folder, "--host", addresses[-1]))[0])
        devices = stack.enter_context(remote_devices(addresses))
        group = AcceleratorGroup([Accelerator(digits.bit, device=device) for device in devices], patience=3)
        group.load(digits.program)
        harm = iter([lambda: processes[0].kill(), lambda: os.kill(processes[1].pid, signal.SIGSTOP)])
        outputs = group.predict(digits.images, batch=1, share=2, progress=lambda *_: next(harm, lambda: None)())
        np.testing.assert_array_equal(outputs, digits.expected)
        assert sorted(group.lost) == [0, 1]
        assert sum(group.frames) == 40
        os.kill(processes[1].pid, signal.SIGCONT)
