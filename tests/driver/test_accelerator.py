"""The driver on a fake board: real pynq, a Device that answers as DMA and core do, with faults where a test wants them.

The same driver on generated hardware: tests/driver/test_simulation.py.
"""

import dataclasses
import gc

import numpy as np
import pynq
import pytest

from bitloom.driver.accelerator import Accelerator
from bitloom.driver.errors import DesignMismatch, DeviceError, DigestMismatch, PacketError, Timeout, TransferError
from bitloom.hls_gen.design.packets import load_packet, packets
from tests.errors import value_error

from . import design
from .fake_bench import Bench, raises, recovers
from .fake_device import DMA_BASE

KERNELS = design.manifest().memory(0, "kernels").id


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


# Results


@pytest.mark.sample(8)
@pytest.mark.parametrize("stream_bits", [32, 64])
@pytest.mark.parametrize("thresholds", [False, True])
@pytest.mark.parametrize("batch", [None, 1, 4, 11, 20])
def test_equals_golden(tmp_path, stream_bits, thresholds, batch):
    bench = Bench(tmp_path, stream_bits, thresholds)
    with bench.loaded() as accelerator:
        outputs = accelerator.predict(bench.images, batch=batch)
        assert outputs.dtype == np.int64
        np.testing.assert_array_equal(outputs, bench.expected)
        rows = bench.expected.reshape(11, -1)
        last_set = [max(np.flatnonzero(row > 0), default=0) for row in rows]  # single bits: as BNN-PYNQ's boards do
        wanted = last_set if thresholds else rows.argmax(axis=1)
        np.testing.assert_array_equal(accelerator.classify(bench.images), wanted)


def test_no_images(bench):
    with bench.loaded() as accelerator:
        assert accelerator.predict(bench.images[:0]).shape == (0, 1, 1, 7)
        assert accelerator.classify(bench.images[:0]).shape == (0,)


def test_images_may_have_any_layout(bench):
    with bench.loaded() as accelerator:
        for images in (np.asfortranarray(bench.images), bench.images[::-1][::-1], bench.images.astype(np.int8)):
            np.testing.assert_array_equal(accelerator.predict(images), bench.expected)


def test_an_overlay_that_exists_and_a_manifest_elsewhere(bench, tmp_path):
    (tmp_path / "fake.manifest.json").rename(tmp_path / "other.json")
    overlay = pynq.Overlay(str(bench.path), device=bench.device)
    for manifest in (tmp_path / "other.json", bench.manifest):
        with Accelerator(overlay, manifest=manifest) as accelerator:
            accelerator.load(bench.program)
            np.testing.assert_array_equal(accelerator.predict(bench.images), bench.expected)
    assert bench.device.downloads == 1


def test_another_program(bench):
    other = design.model(seed=9)
    with bench.loaded() as accelerator:
        accelerator.load(design.program(other, bench.manifest))
        np.testing.assert_array_equal(accelerator.predict(bench.images), other.forward(bench.images))
        assert accelerator.program.name == "dense"


def test_transfers_fit_the_dma(bench):
    bench.device.cores["axi_dma_0"]["parameters"]["c_sg_length_width"] = "6"  # 63 bytes: 2 frames, 2 results
    with bench.loaded() as accelerator:
        np.testing.assert_array_equal(accelerator.predict(bench.images), bench.expected)
        with value_error("dense: batch must be 1..2 (DMA transfers), got 3"):
            accelerator.predict(bench.images, batch=3)
        with value_error("dense: batch must be 1..2 (DMA transfers), got 0"):
            accelerator.predict(bench.images, batch=0)
        for batch in (1.5, True, "2"):
            with value_error(f"dense: batch must be an integer, got {batch!r}"):
                accelerator.predict(bench.images, batch=batch)
        accelerator.predict(bench.images, batch=np.int64(2))
    assert max(bench.device.dma.sizes) <= 60


def test_buffers_are_freed(bench):
    with bench.loaded() as accelerator:
        accelerator.predict(bench.images, batch=2)
        assert len(bench.device.allocated) == 4
        accelerator.predict(bench.images, batch=5)
        assert len(bench.device.allocated) == 4
    gc.collect()
    assert not bench.device.allocated
    with raises(DeviceError, "fake: a program must be loaded before images, got none"):
        accelerator.predict(bench.images)


def test_an_accelerator_that_nobody_has_any_more_frees_its_buffers_at_once(bench):
    """Without the garbage collector, whose time nobody knows: buffers are memory that a board has little of."""
    accelerator = bench.loaded()
    accelerator.predict(bench.images)
    gc.disable()
    try:
        del accelerator
        assert not bench.device.allocated
    finally:
        gc.enable()


def test_counters(bench):
    with bench.loaded() as accelerator:
        assert set(accelerator.counters().values()) == {0}
        accelerator.predict(bench.images, batch=4)
        counters = accelerator.counters()
        assert counters["frames"] == 11
        assert counters["words_in"] == 11 * (4 + 3)
        assert counters["words_out"] == 11 * 7
        assert counters["npu0_beats"] == 11 * 7 * 3
        assert accelerator.utilisation == (231 / counters["cycles"],)
        for _ in range(50):
            accelerator.registers.read("STATUS")  # cycles between transfers don't count
        assert accelerator.counters() == counters
        accelerator.predict(bench.images[:1])
        assert accelerator.counters()["frames"] == 12
        accelerator.clear_counters()
        assert set(accelerator.counters().values()) == {0}
        assert accelerator.registers.read("FRAMES") == 0


def test_counters_wrap(bench):
    with bench.loaded() as accelerator:
        bench.device.core.regs |= {"FRAMES": 0xFFFFFFFE, "CYCLES": 0xFFFFFFF0}
        accelerator.predict(bench.images, batch=3)
        assert accelerator.counters()["frames"] == 11
        assert bench.device.core.regs["FRAMES"] == 9
        assert 231 < accelerator.counters()["cycles"] < 10000


# Refusals


def test_no_manifest(bench, tmp_path):
    (tmp_path / "fake.manifest.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"fake\.manifest\.json"):
        bench.accelerator()


OTHER = f"fake: the hardware must have the manifest's digest {design.DIGEST[:32]}, got {design.DIGEST[:24]}00000001"


@pytest.mark.parametrize(
    ("offset", "value", "kind", "message"),
    [
        (0x00, 0, DesignMismatch, "fake: IDENT must be 0x424C4D31, got 0x00000000"),
        (0x04, 0x010203, DesignMismatch, "fake: VERSION must be that of the manifest, 0.2, got 1.2.3"),
        (0x14, 1, DigestMismatch, OTHER),
    ],
)
def test_another_hardware(bench, offset, value, kind, message):
    bench.device.core.constants[offset] = value
    with raises(kind, message):
        bench.accelerator()


def test_digest_mismatch_says_both(bench):
    bench.device.core.constants[0x08] = 0xDEADBEEF
    with pytest.raises(DigestMismatch) as e:
        bench.accelerator()
    assert (e.value.expected, e.value.actual) == (design.DIGEST[:32], "deadbeef" + design.DIGEST[8:32])


def test_another_vlnv(bench):
    manifest = dataclasses.replace(bench.manifest, vlnv="a:b:c:2.0")
    with raises(DesignMismatch, "fake: the manifest's vlnv must be bitloom:bitloom:npu:0.2, got a:b:c:2.0"):
        bench.accelerator(manifest=manifest)


def test_finding_core_and_dma(bench):
    cores = bench.device.cores
    dma = cores.pop("axi_dma_0")
    with raises(DesignMismatch, "fake: the overlay must have exactly one AXI DMA, got npu_0 (bitloom:bitloom:npu:0.2)"):
        bench.accelerator()
    cores["stream"] = {**dma, "fullpath": "stream"}
    with bench.loaded() as accelerator:  # the only one, whatever its name
        np.testing.assert_array_equal(accelerator.predict(bench.images), bench.expected)
    cores["other"] = {**dma, "fullpath": "other", "phys_addr": DMA_BASE}
    names = "npu_0 (bitloom:bitloom:npu:0.2), stream (xilinx.com:ip:axi_dma:7.1), other (xilinx.com:ip:axi_dma:7.1)"
    with raises(DesignMismatch, f"fake: the overlay must have exactly one AXI DMA, got {names}"):
        bench.accelerator()
    bench.accelerator(dma="stream").close()
    with raises(DesignMismatch, f"fake: the overlay must have one named x: core bitloom:bitloom:npu:0.2, got {names}"):
        bench.accelerator(dma="stream", core="x")


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("c_include_sg", "1", "the DMA must be in simple mode, got scatter-gather (c_include_sg = 1)"),
        ("c_micro_dma", "1", "the DMA must be in simple mode, got micro mode (c_micro_dma = 1)"),
        ("c_include_s2mm", "0", "the DMA must have a send and a receive channel, got one of them"),
        ("c_m_axis_mm2s_tdata_width", "64", "c_m_axis_mm2s_tdata_width must be 32, got 64"),
    ],
)
def test_an_unfit_dma(bench, parameter, value, message):
    bench.device.cores["axi_dma_0"]["parameters"][parameter] = value
    with raises(DesignMismatch, f"axi_dma_0: {message}"):
        bench.accelerator()


def test_unfit_programs(bench):
    accelerator = bench.loaded()
    other = dataclasses.replace(bench.program, design_digest="ab" * 32)
    rule = f"dense: the program must be for the design {design.DIGEST[:32]} (fake), got one for {'ab' * 16}"
    with raises(DigestMismatch, rule):
        accelerator.load(other)
    with value_error("dense: a frame's payload must be 3 words, got 4"):
        accelerator.load(dataclasses.replace(bench.program, stream_bits=64))
    nothing = load_packet(bench.manifest, 0, "kernels", 0, np.zeros((1, 3), np.uint32))
    with value_error("dense: parameters must load memory network of NPU 0, got packets for others only"):
        accelerator.load(dataclasses.replace(bench.program, parameters=nothing))
    parts = packets(bench.manifest, bench.program.parameters)
    others = [(head, m, rows) for head, m, rows in parts if m.name != "kernels"]
    rest = [load_packet(bench.manifest, 0, m.name, head.address, rows[:, : m.words]) for head, m, rows in others]
    with value_error("dense: parameters must load memory kernels of NPU 0, got packets for others only"):
        accelerator.load(dataclasses.replace(bench.program, parameters=np.concatenate(rest)))
    np.testing.assert_array_equal(accelerator.predict(bench.images), bench.expected)  # the old one is still there


def test_a_frame_longer_than_a_transfer(bench):
    bench.device.cores["axi_dma_0"]["parameters"]["c_sg_length_width"] = "4"
    with value_error("dense: a frame must fit a DMA transfer of 12 bytes (c_sg_length_width), got 28 bytes"):
        bench.loaded()


def test_images_are_checked_before_anything_is_sent(bench):
    accelerator = bench.loaded()
    sent = len(bench.device.dma.sizes)
    images = bench.images.copy()
    images[10, 0, 0, 0] = 0
    with value_error("dense: images: values must be bipolar 1 bit (-1..1 in steps of 2), got 0"):
        accelerator.predict(images, batch=1)
    assert len(bench.device.dma.sizes) == sent


# Faults. After each the next call must be right.


def test_packet_error(bench):
    accelerator = bench.loaded()
    bench.device.core.loaded = 0
    rule = "NOT_LOADED: the device needs that a network row was loaded since the last reset"
    frame = f"FRAME 0 of 3 input words for parameters 0x{bench.signature:08X} (header 0xB1000002)"
    with raises(PacketError, f"fake: {rule}, got {frame}") as e:
        accelerator.predict(bench.images)
    assert (e.value.code, e.value.name, e.value.header) == (8, "NOT_LOADED", (0xB1000002, bench.signature, 3))
    assert e.value.rule == "a network row was loaded since the last reset"
    assert accelerator.registers.field("STATUS", "ERROR") == 1  # left to be looked at
    recovers(bench, accelerator)


def test_an_error_beside_whole_results(bench):
    """All has come before the first look, and yet the error is seen."""
    accelerator = bench.loaded()
    bench.device.speed = 10_000
    bench.device.core.constants |= {0x24: 2, 0x28: 1, 0x2C: 7, 0x30: 8, 0x34: 9}
    with pytest.raises(PacketError, match="BAD_HEADER"):
        accelerator.predict(bench.images)


BAD_HEADER = "BAD_HEADER: the device needs that word 0 begins with 0xB1 and word 3 is the check, got no header"
UNKNOWN = "UNKNOWN: the device needs that the manifest knows the error code, got FRAME 127 of 3 input words for "
UNKNOWN += "parameters 0x000000AB, last (header 0xB1000012)"


@pytest.mark.parametrize(
    ("code", "header", "text"),
    [
        (1, (7, 8, 9), f"{BAD_HEADER} [0x00000007, 0x00000008, 0x00000009]"),
        (99, (0xB1000012, 0xAB, 0x7F000003), UNKNOWN),
    ],
)
def test_packet_errors_in_words(bench, code, header, text):
    accelerator = bench.loaded()
    bench.device.core.constants |= {0x24: 2, 0x28: code, 0x2C: header[0], 0x30: header[1], 0x34: header[2]}
    with raises(PacketError, f"fake: {text}"):
        accelerator.predict(bench.images)
    bench.device.core.constants = {}
    recovers(bench, accelerator)


@pytest.mark.parametrize("fault", ["stuck", "mute"])
def test_timeout(bench, fault):
    accelerator = bench.loaded()
    setattr(bench.device.core, fault, True)
    with pytest.raises(Timeout) as e:
        accelerator.predict(bench.images, batch=4)
    status = f"STATUS 0x00000005; {design.STATE_TEXT}"
    assert str(e.value) == f"fake: dense: 4 frames must be computed, got no progress for 0.2 s ({status})"
    assert set(e.value.registers) == {r.name for r in bench.manifest.registers}
    assert e.value.state == dict.fromkeys(design.STATE_NAMES, 0)
    assert e.value.report().splitlines()[1] == "  IDENT            0x424C4D31  1112296753"
    setattr(bench.device.core, fault, False)
    recovers(bench, accelerator)


def test_slow_is_not_stuck(bench, monkeypatch):
    accelerator = bench.loaded(timeout=2.0)
    clock = [0.0]

    def monotonic():  # each look at the clock is half a second; words move all the time
        clock[0] += 0.5
        return clock[0]

    monkeypatch.setattr("bitloom.driver.waiting.time.monotonic", monotonic)
    bench.device.speed = 1
    np.testing.assert_array_equal(accelerator.predict(bench.images), bench.expected)
    assert clock[0] > 4  # without progress it would have given up at 2


def test_results_too_long(bench):
    accelerator = bench.loaded()
    program = bench.program
    assert program.result_words == 7
    accelerator.program = accelerator._on_device = dataclasses.replace(program, name="dense")
    results = bench.manifest.memory(0, "results")
    core = bench.device.core
    last = {"groups_minus_1": 4, "last_units_minus_1": 2, "raw": 1}  # 7 outputs become 15
    core.memory[results.id][0] = sum(results.field(name).at(value) for name, value in last.items())
    core.memory[KERNELS] |= {row: 0 for row in range(9, 16)}
    error = "internal error (length 0, or a longer packet than the receive buffer)"
    with raises(TransferError, f"axi_dma_0: the receive must end without error, got {error}"):
        accelerator.predict(bench.images, batch=1)
    recovers(bench, accelerator)


@pytest.mark.parametrize(
    ("channel", "meaning"),
    [("send", "decode error (no memory at the address)"), ("receive", "slave error (memory refused the access)")],
)
def test_dma_error(bench, channel, meaning):
    accelerator = bench.loaded()
    bench.device.dma.broken = channel
    with raises(TransferError, f"axi_dma_0: the {channel} must end without error, got {meaning}"):
        accelerator.predict(bench.images)
    bench.device.dma.broken = ""
    recovers(bench, accelerator)


def test_a_dma_that_never_ends_its_reset(bench):
    accelerator = bench.loaded()
    bench.device.dma.broken = "reset"
    with raises(TransferError, "axi_dma_0: the DMA must end its reset within 1.0 s, got status 0x00000001, 0x00000001"):
        accelerator.reset()
    bench.device.dma.broken = ""
    np.testing.assert_array_equal(accelerator.predict(bench.images), bench.expected)


def test_interrupted_by_the_user(bench):
    accelerator = bench.loaded()

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        accelerator.predict(bench.images, batch=2, progress=stop)
    recovers(bench, accelerator)


def test_close_after_a_fault_frees_nothing_that_is_in_use(bench):
    accelerator = bench.loaded()
    bench.device.core.stuck = True
    with pytest.raises(Timeout):
        accelerator.predict(bench.images)
    accelerator.close()  # the fake's memory asserts that no transfer uses what is freed
    gc.collect()
    assert not bench.device.allocated


def test_load_fails_and_the_next_one_works(bench):
    accelerator = bench.accelerator()
    bench.device.core.stuck = True
    status = f"STATUS 0x00000001; {design.STATE_TEXT}"
    with raises(Timeout, f"fake: dense: parameters must be taken, got no progress for 0.2 s ({status})"):
        accelerator.load(bench.program)
    bench.device.core.stuck = False
    with raises(DeviceError, "fake: a program must be loaded before images, got none"):
        accelerator.predict(bench.images)
    accelerator.load(bench.program)
    np.testing.assert_array_equal(accelerator.predict(bench.images), bench.expected)


def test_reset_on_purpose(bench):
    accelerator = bench.accelerator()
    accelerator.reset()
    assert accelerator.program is None
    accelerator.load(bench.program)
    bench.device.core.memory[KERNELS][0] ^= 0xFFFF  # a bit flip in the device
    accelerator.reset()
    np.testing.assert_array_equal(accelerator.predict(bench.images), bench.expected)


def test_a_soft_reset_that_never_ends(bench):
    bench.device.core.constants[0x20] = 2
    status = f"STATUS 0x00000001; {design.STATE_TEXT}"
    with raises(Timeout, f"fake: a soft reset must end, got none for 0.2 s ({status})"):
        bench.accelerator()
