"""libbitloom when something goes wrong on the Verilated device: every error code, a stuck device, a wrong DMA, somebody
else. The call says so with the rule's text, and the next one is right."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import numpy as np
import pytest

from bitloom.driver.errors import DeviceTaken
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.design import headers
from bitloom.hls_gen.design.headers import PacketHeader
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.packet_text import describe_header
from bitloom.hls_gen.design.program import Program
from bitloom.hls_gen.design.registers import COMMON
from bitloom.overlay.build.images import random_images
from bitloom.overlay.build.reference_designs import REFERENCE_DESIGNS
from tests.simulated import overlay

from .bench import CDevice, CError, on_board
from .test_device import right, streamed

REGISTERS = {register.name: register.offset for register in COMMON}


class Rig:
    """A device with a program loaded, its manifest, and images."""

    def __init__(self, device: CDevice, manifest: Manifest, program: Program, model: Model) -> None:
        self.device = device
        self.manifest = manifest
        self.program = program
        self.model = model
        self.images = random_images(model.network, 3, 1)
        device.load(program)

    def right(self) -> None:
        right(self.device, self.model, self.images)

    def predict(self) -> None:
        self.device.predict(self.images, self.model.network.output.shape)

    def refused(self, status: str, text: str, code: int = 0) -> None:
        """Frames end with this error."""
        with pytest.raises(CError) as caught:
            self.predict()
        assert (caught.value.status, caught.value.code, str(caught.value)) == (status, code, text)


@pytest.fixture(scope="module", params=["resident 32", "streamed 32", "streamed 64"])
def rigs(request) -> Iterator[Rig]:
    kind, bits = request.param.split()
    if kind == "streamed":
        bit, manifest, program, model = streamed(int(bits))
    else:
        reference = REFERENCE_DESIGNS["digits-cnn"]
        (model,) = reference.models()
        bit, manifest = overlay(reference.design("digits-cnn", [model]))
        program = compile_model(model, manifest)
    with on_board(bit) as board:
        data = bit.with_suffix(".manifest.json").read_bytes()
        with CDevice(board, data, timeout_ms=5_000, interrupts=True) as device:
            yield Rig(device, manifest, program, model)


@pytest.fixture
def rig(rigs) -> Iterator[Rig]:
    """With the program loaded, and nothing that is broken on purpose."""
    rigs.device.load(rigs.program)
    yield rigs
    rigs.device.mend()
    rigs.device.board.stall()


def frame_of(data: np.ndarray) -> np.ndarray:
    """The words of the first FRAME header in what is about to be sent."""
    words = data.view("<u4")
    place = next(i for i in range(len(words)) if words[i] >> 24 == headers.MAGIC and words[i] & 15 == headers.FRAME)
    return words[place : place + 4]


def changed(change: Callable[[np.ndarray, Rig], None]) -> Callable[[Rig], None]:
    """Break the first FRAME's header on its way to the device; the check is right, where the change isn't its own."""

    def use(rig: Rig) -> None:
        def hook(data: np.ndarray) -> None:
            frame = frame_of(data)
            check = int(frame[3])
            change(frame, rig)
            if frame[3] == check:
                frame[3] = headers.check(*map(int, frame[:3]))
            rig.device.flush_hook = lambda data: None

        rig.device.flush_hook = hook

    return use


def as_load(npu: int, memory: int, row: int, rows: int) -> Callable[[np.ndarray, Rig], None]:
    """A FRAME's header becomes a LOAD's."""

    def change(frame: np.ndarray, rig: Rig) -> None:
        frame[:] = PacketHeader(headers.LOAD, npu, memory, row, rows).words()

    return change


def cut(rig: Rig) -> None:
    """The transfer of the frames ends before their last stream word."""

    def hook(unit: int, offset: int, value: int) -> int | None:
        if (unit, offset) == (1, 0x28):
            rig.device.write_hook = lambda unit, offset, value: None
            return value - rig.manifest.stream_bits // 8
        return None

    rig.device.write_hook = hook


def not_loaded(rig: Rig) -> None:
    """Somebody resets the core in front of the frames, and nobody sees it in OWNER."""
    owner = rig.device.register(REGISTERS["OWNER"])

    def hook(unit: int, offset: int, value: int) -> None:
        if (unit, offset) == (1, 0x28):
            rig.device.write_hook = lambda unit, offset, value: None
            for bits in (2, 1):
                rig.device._write(0, 0, REGISTERS["CONTROL"], bits)

    rig.device.write_hook = hook
    rig.device.read_hook = lambda unit, offset, value: owner if (unit, offset) == (0, REGISTERS["OWNER"]) else None


def set_word(number: int, bits: int) -> Callable[[np.ndarray, Rig], None]:
    def change(frame: np.ndarray, rig: Rig) -> None:
        frame[number] ^= np.uint32(bits)

    return change


FAULTS = {
    "BAD_HEADER": changed(set_word(3, 1)),
    "BAD_KIND": changed(set_word(0, headers.FRAME ^ 9)),
    "BAD_NPU": changed(as_load(7, 0, 0, 1)),
    "BAD_MEMORY": changed(as_load(0, 200, 0, 1)),
    "BAD_RANGE": changed(as_load(0, 0, 1, 1)),
    "BAD_FRAME": changed(set_word(2, 1)),
    "TRUNCATED": cut,
    "NOT_LOADED": not_loaded,
    "BAD_ORDER": changed(set_word(2, 1 << 24)),
    "BAD_PROGRAM": changed(set_word(1, 1)),
}
"""Name of a code -> what provokes it."""


@pytest.mark.parametrize("error", headers.ERRORS, ids=lambda error: error.name)
def test_every_error_code(rig, error):
    """The text is the manifest's, with the packet at fault in words; then the device is reset and all is right."""
    rig.right()
    FAULTS[error.name](rig)
    with pytest.raises(CError) as caught:
        rig.predict()
    rig.device.mend()
    words = [rig.device.register(REGISTERS[f"ERROR_{name}"]) for name in ("HEADER", "ADDRESS", "LENGTH")]
    code = rig.device.register(REGISTERS["ERROR_CODE"])
    told = rig.manifest.error(code)
    assert (caught.value.status, caught.value.code, code) == ("PACKET", error.code, error.code), str(caught.value)
    shown = describe_header(rig.manifest, *words)
    assert str(caught.value) == f"c: {told.name}: the device needs that {told.rule}, got {shown}"
    if error.name == "NOT_LOADED":  # whoever has reset it is told of, and not disturbed
        with pytest.raises(CError, match="got none: somebody has reset it: load the program again"):
            rig.predict()
        rig.device.load(rig.program)
    rig.right()


def test_there_is_a_fault_for_every_code():
    assert [*FAULTS] == [error.name for error in headers.ERRORS]


def test_a_stuck_device(rig):
    """Nobody takes the results: a time-out that tells where the device stands; then all is right again."""
    rig.right()
    rig.device.board.stall(sink=1.0)
    rig.device.board.simulation.timeout_cycles = 1 << 40
    with pytest.raises(CError) as caught, limited(rig):
        rig.predict()
    rig.device.board.stall()
    rule = f"c: {rig.model.network.name}: 3 frames must be computed, got no progress for 5000 ms"
    assert caught.value.status == "TIMEOUT"
    assert re.fullmatch(rf"{rule}; STATUS 0x[0-9A-F]{{8}}, NPU0_STATE 0x[0-9A-F]{{8}}", str(caught.value))
    rig.right()


def limited(rig: Rig) -> ExitStack:
    """Simulated time is short: the clock of the platform runs a thousand times as fast as ours."""
    stack = ExitStack()
    device = rig.device
    before = rig.device.microseconds
    device.microseconds = lambda: 1000 * before()
    stack.callback(setattr, device, "microseconds", before)
    return stack


@pytest.mark.parametrize(
    ("offset", "shift", "what"),
    [
        (0x18, 0x8000_0000, "the send must end without error, got decode error (no memory at the address)"),
        (0x48, 0x8000_0000, "the receive must end without error, got decode error (no memory at the address)"),
    ],
)
def test_an_error_of_the_dma(rig, offset, shift, what):
    def hook(unit: int, at: int, value: int) -> int | None:
        return value + shift if (unit, at) == (1, offset) else None

    rig.device.write_hook = hook
    rig.refused("TRANSFER", f"c: {what}")
    rig.device.mend()
    rig.right()


def test_results_that_are_cut(rig):
    """The DMA says that less came than was due."""
    rig.device.read_hook = lambda unit, offset, value: value - 8 if (unit, offset) == (1, 0x58) else None
    size = 12 * rig.program.result_words
    text = f"c: {rig.model.network.name}: 3 frames must be computed: results must be {size} bytes, got {size - 8}"
    rig.refused("TRANSFER", text)
    rig.device.mend()
    rig.right()


def test_parameters_that_change_on_the_way(rig):
    def hook(data: np.ndarray) -> None:
        data[-4] ^= 1

    rig.device.flush_hook = hook
    rule = r"^c: parameters of \S+ must arrive with signature 0x[0-9A-F]{8}, got 0x[0-9A-F]{8}$"
    with pytest.raises(CError, match=rule) as caught:
        rig.device.load(rig.program)
    assert caught.value.status == "TRANSFER"
    rig.device.mend()
    rig.device.load(rig.program)
    rig.right()


def test_a_reset_between_calls(rig):
    rig.device.reset()
    rig.right()


def test_two_users(rig):
    """Each has a device of its own on one board, as two processes have: nobody gets the other's results."""
    name = rig.model.network.name
    signature = rig.device.register(REGISTERS["SIGNATURE"])
    mine = f"c: the device must hold program {name} (parameters 0x{signature:08X})"
    data = rig_manifest(rig)
    with CDevice(rig.device.board, data, name="other") as other:
        rig.refused("TAKEN", f"{mine}, got none: somebody has reset it: load the program again")
        other.load(rig.program)
        by_other = f"another program (parameters 0x{signature:08X}), loaded by somebody else"
        for _ in range(2):
            rig.refused("TAKEN", f"{mine}, got {by_other}: load the program again")
        right(other, rig.model, rig.images)
        rig.device.load(rig.program)
        rig.right()
        with pytest.raises(CError, match=r"^other: the device must hold program") as caught:
            right(other, rig.model, rig.images)
        assert caught.value.status == "TAKEN"
        rig.right()


def rig_manifest(rig: Rig) -> bytes:
    return json.dumps(rig.manifest.to_dict()).encode()


@contextmanager
def as_taken() -> Iterator[None]:
    """An error of status TAKEN becomes the one of the driver in Python."""
    try:
        yield
    except CError as e:
        if e.status == "TAKEN":
            raise DeviceTaken(str(e)) from e
        raise


@pytest.mark.sample(6)
@pytest.mark.parametrize("moment", range(1, 120, 17))
def test_a_load_by_somebody_else_while_frames_are_computed(rig, moment):
    """At whatever access to a register: right results, or the error; the other one's are right."""
    rig.device.load(rig.program)
    left = [moment]
    with CDevice(rig.device.board, rig_manifest(rig), name="other") as other:
        rig.device.load(rig.program)

        def hook(unit: int, offset: int, value: int) -> None:
            left[0] -= 1
            if left[0] == 0:
                other.load(rig.program)

        rig.device.read_hook = hook
        with suppress(DeviceTaken), as_taken():
            rig.right()
        rig.device.mend()
        other.load(rig.program)
        right(other, rig.model, rig.images)
        rig.device.load(rig.program)
        rig.right()
