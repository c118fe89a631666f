"""A raw stream, the packetizer and a device behind it: results are golden's."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from veriloggen.core import vtypes as vt

from bitloom.driver.errors import DeviceError
from bitloom.driver.frames import loads
from bitloom.golden.kernels import packed
from bitloom.hls_gen.design.packetizer import NUMBER, SIGNATURE, STATUS, TRANSFER_FRAMES, Packetizer
from bitloom.hls_gen.design.registers import CONTROL, register_map
from bitloom.hls_gen.rtl.packetizer.packetizer import packetizer
from bitloom.hls_gen.rtl.primitives.block import Block
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.shell.top import top
from tests.errors import value_error

from ..bench import Bench, Sink
from .test_packetizer import PIXELS, RESET, RUN, SHORT, VIDEO, Camera, Shape, by_tier, compiled, stream_words

SHAPES = {
    "bits, a stream with tlast": Shape("conv_strides", 32, PIXELS),
    "planes, a video": Shape("signed_8_input", 64, VIDEO),
    "integers": Shape("int_small_cnn", 64, PIXELS),
}
START, SOFT_RESET = (CONTROL.field(name).at(1) for name in ("START", "SOFT_RESET"))


def system(core: Block, device: Block) -> Block:
    """A packetizer in front of a device, whose registers are at ``device_axi``."""
    b = Block("camera_system")
    widths = core.port_widths
    packets = {
        part: b.wire(f"packets_t{part}", widths[f"m_axis_t{part}"]) for part in ("data", "valid", "ready", "last")
    }
    for block, stream, outside in (
        (core, "m_axis_t", {}),
        (device, "s_axis_t", {"s_axi_": "device_axi_", "irq": "device_irq"}),
    ):
        ports = {}
        for port, w in block.port_widths.items():
            make = b.input if isinstance(block.m.io_variable[port], vt.Input) else b.output
            inside = next((name for name in outside if port.startswith(name)), "")
            if port.startswith(stream):
                ports[port] = packets[port.removeprefix(stream)]
            elif port not in ("clk", "rst"):
                ports[port] = make(outside.get(inside, "") + port.removeprefix(inside), w)
        b.instance(block, block.m.name, **ports)
    return b


@pytest.fixture(scope="module", params=by_tier(SHAPES, "planes, a video"))
def built(request):
    shape = SHAPES[request.param]
    model, design, manifest, program = compiled(shape.network, shape.stream_bits)
    sizes = Packetizer.of(program, shape.stream_bits, shape.raw)
    core = packetizer(Library(shape.stream_bits), sizes)
    with Bench(system(core, top(design, "0" * 64))) as bench:
        yield (model, manifest, program, sizes, bench), {r.name: r.offset for r in register_map(design)}


class Device(Camera):
    """A packetizer and a device, with the program loaded."""

    def __init__(self, built, stall: float, seed: int):
        fixture, self.registers = built
        for name in ("awvalid", "wvalid", "arvalid", "bready", "rready"):
            fixture[-1][f"device_axi_{name}"] = 0
        super().__init__(fixture, stall, seed)
        self.load()

    def of_device(self, register: str) -> int:
        return self.read(self.registers[register], "device_axi")

    def load(self) -> None:
        """The program as the driver sends it, past the packetizer; then frames may come."""
        words = [stream_words(part, self.sizes.stream_bits) for part in loads(self.program, self.manifest, 1 << 16)]
        host = self.host(words)
        self.until(lambda: host.done)
        self.step()  # no word is offered any more
        self.agents.remove(host)
        self.write(self.registers["CONTROL"], START, "device_axi")
        self.write(SIGNATURE.offset, self.of_device("SIGNATURE"))
        self.write(NUMBER.offset, 0)

    def results(self, frames: list[int]) -> None:
        """The results of these frames come, and nothing else."""
        words = len(frames) * self.program.result_words * 32 // self.sizes.stream_bits
        self.until(lambda: len(self.sink.words) >= words)
        self.settle()
        words = np.array([word for word, _ in self.sink.words], f"<u{self.sizes.stream_bits // 8}").view("<u4")
        np.testing.assert_array_equal(
            self.program.unpack_results(words), packed.forward(self.model, self.images[frames])
        )


@pytest.mark.parametrize("stall", [0, 0.4])
def test_results_are_goldens(built, stall):
    device = Device(built, stall, seed=7)
    device.write(TRANSFER_FRAMES.offset, 2)
    device.give(*map(device.beats, range(6)))
    device.control(RUN)
    device.results(list(range(6)))
    words = len(device.sink.words)
    ends = [place for place, (_, last) in enumerate(device.sink.words) if last]
    assert ends == [words // 3 - 1, 2 * words // 3 - 1, words - 1]  # every second frame's
    assert device.of_device("FRAMES") == 6


def test_a_wrong_frame_and_then_good_ones(built):
    """The device stays in step: the frames before and behind a short one are right, and no error comes up there."""
    device = Device(built, 0.2, seed=8)
    cut = device.beats(1)[:-1]
    if "user" not in cut[-1]:
        cut[-1]["last"] = 1
    device.give(device.beats(0), cut, device.beats(2), device.beats(3))
    device.control(RUN)
    device.until(lambda: device.status == SHORT)
    device.write(STATUS.offset, SHORT)
    device.control(RUN)
    device.until(lambda: device.of_device("FRAMES") == 4)
    device.settle()
    each = device.program.result_words * 32 // device.sizes.stream_bits
    del device.sink.words[each : 2 * each]  # of the frame that was filled up
    device.results([0, 2, 3])
    assert device.of_device("ERROR_CODE") == 0


def test_reset_in_a_frame(built):
    device = Device(built, 0.2, seed=9)
    source = device.give(*map(device.beats, range(3)))
    device.control(RUN)
    device.until(lambda: len(source.taken) > device.sizes.beats // 2)
    device.agents.remove(device.sink)
    device.bench["m_axis_tready"] = 0
    device.control(RESET)
    device.write(device.registers["CONTROL"], SOFT_RESET, "device_axi")
    device.settle(50)
    device.sink = Sink(device.bench, "m_axis_t", ("data", "last"), stall=0.2)
    device.agents.append(device.sink)
    device.load()
    device.control(RUN)
    device.results([1, 2])


def device_error(message: str):
    return pytest.raises(DeviceError, match=rf"^{re.escape(message)}\Z")


def core_of(device: Device):
    """The driver, as pynq makes it, on the simulated registers."""
    pytest.importorskip("pynq")
    from bitloom.driver.raw_stream import PacketizerCore

    core = object.__new__(PacketizerCore)
    core.mmio = SimpleNamespace(read=device.read, write=device.write)
    return core


def test_the_driver(built):
    device = Device(built, 0.2, seed=10)
    core = core_of(device)
    signature = device.of_device("SIGNATURE")
    for register in (SIGNATURE, NUMBER):
        device.write(register.offset, 7)
    source = device.give(*map(device.beats, range(3)))
    core.run(signature, transfer_frames=3)
    device.results([0, 1, 2])
    assert [last for _, last in device.sink.words].count(1) == 1
    core.check()
    assert source.done
    assert core.stop() == 3
    device.give(device.beats(0))
    device.settle()
    assert device.of_device("FRAMES") == 3  # nothing comes any more


@pytest.mark.parametrize(("error", "count"), [("SHORT", "fewer"), ("LONG", "more")])
def test_the_driver_tells_wrong_frames(built, error, count):
    """Each kind of wrong frame stops the packetizer; ``run`` and ``reset`` clear the error."""
    device = Device(built, 0, seed=11)
    core = core_of(device)
    signature = device.of_device("SIGNATURE")
    wrong = device.beats(1)[:-1] if error == "SHORT" else device.beats(1) + device.beats(1)[-1:]
    if "user" not in wrong[-1]:
        for beat in wrong:
            beat["last"] = 0
        wrong[-1]["last"] = 1
    frames = device.beats(0), wrong, device.beats(2)
    message = f"packetizer: frame 1 must have {device.sizes.beats} beats, got {count}: call run again"
    device.give(*frames)
    core.run(signature)
    device.until(lambda: device.status == STATUS.field(error).at(1))
    with device_error(message):
        core.check()
    core.run(signature)
    core.check()
    device.until(lambda: device.read(NUMBER.offset) == 1)  # the good frame behind
    device.give(*frames)
    core.run(signature)
    device.until(lambda: device.status == STATUS.field(error).at(1))
    with device_error(message):
        core.check()
    core.reset()
    core.check()


def test_the_driver_stops_in_a_frame(built):
    device = Device(built, 0, seed=12)
    core = core_of(device)
    device.give(device.beats(0)[:1])
    core.run(device.of_device("SIGNATURE"))
    device.settle()
    with device_error("packetizer: the frame under way must end within 0 s, got none"):
        core.stop(timeout=0)


def test_the_driver_sets_any_number_of_frames(built):
    """As many as the register holds; where a number is refused, nothing is written."""
    device = Device(built, 0, seed=13)
    core = core_of(device)
    core.run(0, transfer_frames=65_535)
    for wrong in (-1, 65_536):
        with value_error(f"packetizer: transfer_frames must be 0..65535, got {wrong}"):
            core.run(0, wrong)
    assert device.read(TRANSFER_FRAMES.offset) == 65_535
