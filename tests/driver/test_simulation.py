"""The driver on generated hardware: compiler, packets, pynq and DMA as on a board, the Verilog in Verilator."""

import asyncio
import dataclasses

import numpy as np
import pytest

from driver.accelerator import Accelerator
from driver.compile import compile_model
from driver.errors import DigestMismatch, PacketError, Timeout, TransferError
from driver.manifest import Manifest
from driver.packets import Header
from hls_gen.design import Design, Npu
from hls_gen.verilog import generate
from overlay.bitstream import write_simulation_overlay
from overlay.board import VirtualDevice, activate
from overlay.sim import SimulationTimeout
from tests.cases import random_images
from tests.driver import design


class Bench:
    """A design on a virtual board, a model, its program, images, and golden's outputs."""

    def __init__(self, folder, stream_bits):
        npu = Npu(kfp=24, kgp=4, pfp=4, ol=1, taps=64, olds=64, jumps=16, pool_taps=16, pool_olds=16, kernel_rows=64)
        made = generate(Design(name="driver_test", stream_bits=stream_bits, npus=(npu,)))
        self.manifest = Manifest.from_dict(made.manifest)
        self.bit = write_simulation_overlay(folder, made.manifest, made.text)
        self.device: VirtualDevice = activate()
        self.models = [design.model(thresholds=False), design.model(thresholds=True)]
        self.programs = [compile_model(model, self.manifest) for model in self.models]
        self.images = random_images(self.models[0], 7, np.random.default_rng(4))
        self.expected = [model.forward(self.images) for model in self.models]


@pytest.fixture(scope="module", params=[32, 64])
def bench(request, tmp_path_factory):
    made = Bench(tmp_path_factory.mktemp("overlay"), request.param)
    yield made
    made.device.close()


@pytest.fixture
def accelerator(bench):
    bench.device.stall()
    with Accelerator(bench.bit, device=bench.device) as made:
        made.load(bench.programs[0])
        yield made


def right(bench, accelerator, which=0, **options):
    np.testing.assert_array_equal(accelerator.predict(bench.images, **options), bench.expected[which])


@pytest.mark.parametrize("batch", [None, 1, 3])
def test_equals_golden(bench, accelerator, batch):
    right(bench, accelerator, batch=batch)
    accelerator.load(bench.programs[1])
    right(bench, accelerator, 1, batch=batch)
    accelerator.load(bench.programs[0])
    right(bench, accelerator, batch=batch)


@pytest.mark.parametrize("seed", range(3))
def test_equals_golden_with_stalls(bench, accelerator, seed):
    bench.device.stall(source=0.4, sink=0.4, seed=seed)
    accelerator.reset()
    right(bench, accelerator, batch=3)


def test_async(bench, accelerator):
    outputs = asyncio.run(accelerator.predict_async(bench.images, batch=3))
    np.testing.assert_array_equal(outputs, bench.expected[0])


def test_counters(bench, accelerator):
    right(bench, accelerator, batch=3)
    counters, program, count = accelerator.counters(), bench.programs[0], len(bench.images)
    per_word = bench.manifest.stream_words
    assert counters["frames"] == count
    assert counters["words_in"] == count * (4 + program.payload_words) // per_word
    assert counters["words_out"] == count * program.result_words // per_word
    assert counters["npu0_beats"] == count * program.ideal_cycles
    waits = sum(count for key, count in counters.items() if key.startswith("npu0_wait_"))
    assert abs(counters["cycles"] - counters["npu0_beats"] - waits) < 0.3 * counters["cycles"]


def damaged(bench, **header):
    """The program with the header of its first packet changed."""
    program, magic = bench.programs[0], bench.manifest.packet_magic
    words = program.parameters.copy()
    words[:4] = dataclasses.replace(Header.of(*(int(w) for w in words[:3])), **header).words(magic)
    return dataclasses.replace(program, parameters=words)


def send(accelerator, words):
    """What the driver would never send, by the driver's own means."""
    link = accelerator._link
    with link.transferring():
        link.buffer("send0", len(words))[: len(words)] = words
        link.send("send0", len(words), "test")
        link.wait(lambda: False, "test")


@pytest.mark.parametrize(("name", "change"), [
    ("BAD_KIND", {"kind": 7}), ("BAD_NPU", {"npu": 1}), ("BAD_MEMORY", {"memory": 200}),
    ("BAD_RANGE", {"address": 1 << 31}), ("BAD_RANGE", {"length": 0}), ("TRUNCATED", {"memory": 6, "length": 64}),
])  # fmt: skip
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
    accelerator.program = dataclasses.replace(program, frame_words=program.frame_words + 1)
    with pytest.raises(PacketError, match=rf"BAD_FRAME: .* got FRAME of {program.frame_words + 1} input words"):
        accelerator.predict(bench.images)
    accelerator.program = program
    right(bench, accelerator)


def test_results_that_nobody_expects(bench, accelerator):
    program, stream_words = bench.programs[0], bench.manifest.stream_words
    accelerator.program = dataclasses.replace(program, result_words=program.result_words + stream_words)
    with pytest.raises(TransferError, match=r"results must be \d+ bytes, got \d+"):
        accelerator.predict(bench.images)
    accelerator.program = program
    right(bench, accelerator)


def test_interrupted_half_way(bench, accelerator):
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        accelerator.predict(bench.images, batch=2, progress=stop)
    right(bench, accelerator)


def test_a_manifest_of_another_build(bench):
    manifest = dataclasses.replace(bench.manifest, digest="0" * 64)
    both = f"the manifest's digest {'0' * 32}, got {bench.manifest.digest[:32]}"
    with pytest.raises(DigestMismatch, match=both):
        Accelerator(bench.bit, device=bench.device, manifest=manifest)


def test_a_device_that_never_answers(bench, accelerator):
    """On a board the driver's time-out ends this; here the simulation may see first that nothing moves."""
    accelerator.registers.set("CONTROL", START=0)
    bench.device.timeout_cycles = 20_000
    with pytest.raises((Timeout, SimulationTimeout)):
        accelerator.predict(bench.images)
    bench.device.timeout_cycles = 2_000_000
    right(bench, accelerator)
