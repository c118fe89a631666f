"""The driver on generated hardware: compiler, packets, pynq and DMA as on a board, the Verilog in Verilator.

Both forms of the virtual board: in this process, and through PYNQ's remote protocol.
"""

import asyncio
import dataclasses
import re
from contextlib import ExitStack
from importlib.metadata import version

import numpy as np
import pytest

from bitloom.driver import waiting
from bitloom.driver.accelerator import Accelerator
from bitloom.driver.errors import DeviceTaken, DigestMismatch, PacketError, Timeout, TransferError
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.headers import PacketHeader
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.packets import load_packet, packets
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.virtual.board import activate
from bitloom.overlay.virtual.sim import SimulationTimeout
from bitloom.overlay.virtual.simulation_overlay import write_simulation_overlay
from tests.cases import random_images
from tests.errors import REMOTE_ERRORS

from . import design


class Bench:
    """A design on a virtual board, a model, its program, images, and golden's outputs.

    device : pynq's.  system : the board behind it.  ``stack`` ends both.
    """

    def __init__(self, folder, form, stream_bits, stack):
        npu = Npu.of(kfp=24, kgp=4, pfp=4, ol=1, taps=64, olds=64, jumps=16, pool_taps=16, pool_olds=16, kernel_rows=64)
        verilog = generate(Design(name="driver_test", stream_bits=stream_bits, npus=(npu,)))
        self.manifest = Manifest.from_dict(verilog.manifest)
        self.bit = write_simulation_overlay(folder, verilog.manifest, verilog.text)
        if form == "remote":
            self.device, self.system = serve(self.bit, stack)
        else:
            self.device = self.system = activate()
            stack.callback(self.system.close)
        self.models = [design.model(thresholds=False), design.model(thresholds=True)]
        self.programs = [compile_model(model, self.manifest) for model in self.models]
        self.images = random_images(self.models[0], 7, np.random.default_rng(4))
        self.expected = [model.forward(self.images) for model in self.models]


def serve(bit, stack):
    """(pynq's RemoteDevice, the System behind the server that it talks to)."""
    pytest.importorskip("pynq.remote", reason="PYNQ's remote protocol comes with pynq 4")
    if version("pynq").startswith("3."):
        pytest.skip("pynq 3.1's remote protocol has no room for bit 31 of a register")
    from bitloom.overlay.virtual.serve.server import Server
    from tests.overlay.virtual.remote import remote_device

    server = stack.enter_context(Server(bit, port=0))
    return stack.enter_context(remote_device(server)), server.board


pytestmark = pytest.mark.sample(2)
FORMS = [("in process", 32), ("in process", 64), ("remote", 32)]


@pytest.fixture(scope="module", params=FORMS, ids=lambda form: f"{form[0]} {form[1]}")
def bench(request, tmp_path_factory):
    with ExitStack() as stack:
        yield Bench(tmp_path_factory.mktemp("overlay"), *request.param, stack)


@pytest.fixture
def accelerator(bench):
    bench.system.stall()
    with Accelerator(bench.bit, device=bench.device) as accelerator:
        accelerator.load(bench.programs[0])
        yield accelerator


def right(bench, accelerator, which=0, **options):
    np.testing.assert_array_equal(accelerator.predict(bench.images, **options), bench.expected[which])


@pytest.mark.sample(3)
@pytest.mark.parametrize("batch", [None, 1, 3])
def test_equals_golden(bench, accelerator, batch):
    right(bench, accelerator, batch=batch)
    accelerator.load(bench.programs[1])
    right(bench, accelerator, 1, batch=batch)
    accelerator.load(bench.programs[0])
    right(bench, accelerator, batch=batch)


def test_async(bench, accelerator):
    assert accelerator.has_interrupt == (bench.device is bench.system)
    outputs = asyncio.run(accelerator.predict_async(bench.images, batch=3))
    np.testing.assert_array_equal(outputs, bench.expected[0])


def test_predict_waits_for_interrupts(bench, accelerator, monkeypatch):
    """With pynq's interrupt controller in between; where the protocol has none, the device is looked at."""
    monkeypatch.setattr(waiting, "LOOKS_FIRST", 0)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        right(bench, accelerator, batch=3)
        assert accelerator._waiting.heard_in is (loop if accelerator.has_interrupt else None)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


@pytest.mark.sample(2)
@pytest.mark.parametrize("batch", [None, 3])
def test_results_at_a_place_that_load_fixes(bench, accelerator, batch):
    accelerator.load(bench.programs[0], results=len(bench.images))
    right(bench, accelerator, batch=batch)
    place = accelerator.results.physical_address
    nbytes = 4 * accelerator.results.size
    words = np.frombuffer(bytes(bench.system.ddr.view(place, nbytes)), "<u4")
    np.testing.assert_array_equal(accelerator.program.unpack_results(words), bench.expected[0])


@pytest.mark.sample(2)
@pytest.mark.parametrize("missing", ["flush", "invalidate"])
def test_a_missing_flush_is_noticed(bench, accelerator, missing, monkeypatch):
    """Neither form of the board forgives what a real one with its cache doesn't."""
    right(bench, accelerator)
    buffer = type(accelerator._link._buffers["send0"])
    monkeypatch.setattr(buffer, missing, lambda self: None)
    if missing == "flush":  # frames with the numbers of those before are sent again
        with pytest.raises(PacketError, match="BAD_ORDER"):
            accelerator.predict(-bench.images)
        return
    outputs = accelerator.predict(bench.images[::-1])
    np.testing.assert_array_equal(outputs, bench.expected[0])  # those of the images before
    assert not np.array_equal(outputs, bench.models[0].forward(bench.images[::-1]))


def damaged(bench, **header):
    """The program with the header of its first packet changed."""
    program = bench.programs[0]
    magic = bench.manifest.packet_magic
    words = program.parameters.copy()
    words[:4] = dataclasses.replace(PacketHeader.of(*(int(w) for w in words[:3])), **header).words(magic)
    return dataclasses.replace(program, parameters=words)


def send(accelerator, words):
    """Send words that the driver would never send, by the driver's own means."""
    accelerator._restart()  # a LOAD that is not the owner's is somebody else's
    with accelerator._transferring():
        accelerator._link.buffer("send0", len(words))[: len(words)] = words
        accelerator._send("send0", len(words), "test")
        accelerator._wait(lambda: False, "test")


BAD = [("BAD_KIND", {"kind": 7}), ("BAD_NPU", {"npu": 1}), ("BAD_MEMORY", {"memory": 200})]
BAD += [("BAD_RANGE", {"address": 1 << 31}), ("BAD_RANGE", {"length": 0}), ("TRUNCATED", {"memory": 6, "length": 64})]


@pytest.mark.sample(5)
@pytest.mark.parametrize(("name", "change"), BAD)
def test_the_device_refuses_and_recovers(bench, accelerator, name, change):
    with pytest.raises(PacketError) as e:
        send(accelerator, damaged(bench, **change).parameters[: 4 + 8])
    assert e.value.name == name
    right(bench, accelerator)


def test_a_bad_check_word(bench, accelerator):
    words = bench.programs[0].parameters.copy()
    words[3] ^= 1 << 17
    with pytest.raises(PacketError, match="BAD_HEADER"):
        send(accelerator, words)
    right(bench, accelerator)


def test_a_frame_of_another_length(bench, accelerator):
    program = bench.programs[0]
    positions = np.concatenate([program.frame.positions, program.frame.positions[:1]])
    longer = dataclasses.replace(program, frame=dataclasses.replace(program.frame, positions=positions))
    accelerator.program = accelerator._on_device = longer
    with pytest.raises(PacketError, match=rf"BAD_FRAME: .* got FRAME 0 of {longer.frame_words} input words"):
        accelerator.predict(bench.images)
    accelerator.program = accelerator._on_device = program
    right(bench, accelerator)


def test_results_that_nobody_expects(bench, accelerator):
    program = bench.programs[0]
    stream_words = bench.manifest.stream_words
    later = tuple(dataclasses.replace(each, first=each.first + stream_words) for each in program.results)
    accelerator.program = accelerator._on_device = dataclasses.replace(program, results=later)
    with pytest.raises(TransferError, match=r"results must be \d+ bytes, got \d+"):
        accelerator.predict(bench.images)
    accelerator.program = accelerator._on_device = program
    right(bench, accelerator)


def test_frames_for_other_parameters_are_refused_by_the_device(bench, accelerator, monkeypatch):
    """Also where nobody looks at the owner: the frame says which parameters it is for."""
    other = Accelerator(accelerator.overlay)
    other.load(bench.programs[1])
    monkeypatch.setattr(type(accelerator._owner), "check", lambda self: None)
    with pytest.raises(PacketError, match="BAD_PROGRAM"):
        accelerator.predict(bench.images)
    monkeypatch.undo()
    accelerator.load(bench.programs[0])
    right(bench, accelerator)


def test_nothing_of_another_program_is_left(bench, accelerator):
    """A program that leaves out thresholds computes what it computes on a board that was just switched on."""
    parts = packets(bench.manifest, bench.programs[1].parameters)
    parts = [(head, m, rows) for head, m, rows in parts if m.name != "thresholds"]
    kept = [load_packet(bench.manifest, head.npu, m.name, head.address, rows[:, : m.words]) for head, m, rows in parts]
    less = dataclasses.replace(bench.programs[1], parameters=np.concatenate(kept))
    bench.system.load(bench.bit)
    accelerator.load(less)
    fresh = accelerator.predict(bench.images)
    accelerator.load(bench.programs[1])
    right(bench, accelerator, 1)
    accelerator.load(less)
    np.testing.assert_array_equal(accelerator.predict(bench.images), fresh)
    assert (fresh != bench.expected[1]).any()


def test_another_bitstream(bench, accelerator, tmp_path):
    """Loaded behind our back, with the same program for it or none."""
    npu = Npu.of(kfp=8, kgp=4, pfp=4, ol=1, taps=64, olds=64, jumps=16, pool_taps=16, pool_olds=16, kernel_rows=64)
    verilog = generate(Design(name="another", stream_bits=bench.manifest.stream_bits, npus=(npu,)))
    bench.system.load(write_simulation_overlay(tmp_path, verilog.manifest, verilog.text))
    both = f"design driver_test ({bench.manifest.digest[:32]}), got another design ({verilog.manifest['digest'][:32]})"
    with pytest.raises(DeviceTaken, match=re.escape(f"the device must hold {both}: download it again")):
        accelerator.predict(bench.images)
    bench.system.load(bench.bit)
    with pytest.raises(DeviceTaken, match="got none: somebody has reset it: load the program again"):
        accelerator.predict(bench.images)
    accelerator.load(bench.programs[0])
    right(bench, accelerator)


def test_a_manifest_of_another_build(bench):
    manifest = dataclasses.replace(bench.manifest, digest="0" * 64)
    both = f"the manifest's digest {'0' * 32}, got {bench.manifest.digest[:32]}"
    with pytest.raises(DigestMismatch, match=both):
        Accelerator(bench.bit, device=bench.device, manifest=manifest)


def test_a_frame_may_take_longer_than_the_watchdog_waits(bench, accelerator):
    """While it is computed no word moves on the streams, but beats are counted."""
    bench.system.timeout_cycles = 600  # of the 1,000 or so that a frame takes without a word
    try:
        right(bench, accelerator)
    finally:
        bench.system.timeout_cycles = 2_000_000


def test_a_device_that_never_answers(bench, accelerator):
    """On a board the driver's time-out ends this; here the simulation may see first that nothing moves."""
    accelerator.registers.set("CONTROL", START=0)
    bench.system.timeout_cycles = 20_000
    with pytest.raises((Timeout, SimulationTimeout, *REMOTE_ERRORS), match="no progress for"):
        accelerator.predict(bench.images)
    bench.system.timeout_cycles = 2_000_000
    right(bench, accelerator)
