"""Designs on a virtual board whose DMA is the generated one: its Verilog reads and writes the board's memory."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pynq = pytest.importorskip("pynq")

from bitloom.driver.accelerator import Accelerator  # noqa: E402
from bitloom.driver.errors import DeviceError, TransferError  # noqa: E402
from bitloom.driver.pynq_api import BitloomDma  # noqa: E402
from bitloom.hls_gen.design.dma import ADDRESS, CONTROL, LENGTH, MM2S, S2MM, SYSTEM_TOP, VLNV  # noqa: E402
from bitloom.hls_gen.design.registers import CONTROL as DEVICE_CONTROL  # noqa: E402
from bitloom.overlay.build.build import Build, build, load  # noqa: E402
from bitloom.overlay.build.reference_designs import REFERENCE_DESIGNS  # noqa: E402
from bitloom.overlay.build.run import Conditions, run  # noqa: E402
from bitloom.overlay.platform.dma_core import AMD, OWN, DmaCore  # noqa: E402
from bitloom.overlay.platform.target import BoardTarget  # noqa: E402
from bitloom.overlay.virtual.board import activate  # noqa: E402
from bitloom.overlay.virtual.board.device import VirtualDevice  # noqa: E402
from bitloom.overlay.virtual.sim import ProtocolError, Simulation, SimulationTimeout  # noqa: E402
from bitloom.overlay.virtual.sim.registers import DMA  # noqa: E402
from bitloom.overlay.virtual.sim.verilator import lint  # noqa: E402
from bitloom.overlay.virtual.simulation_overlay import (  # noqa: E402
    read_simulation_overlay,
    simulation_overlay_files,
    write_simulation_overlay,
)
from tests.commands import call  # noqa: E402
from tests.driver.c.bench import CError, c_device  # noqa: E402
from tests.networks import random_images  # noqa: E402
from tests.overlay.conftest import loop_verilog  # noqa: E402
from tests.overlay.platform.manifest import ADDEND, loop_manifest  # noqa: E402

from .transfer import transfer  # noqa: E402

SIZES = [("zynq", 32), ("zynqmp", 64)]


@pytest.fixture(params=SIZES, ids=lambda sizes: sizes[0])
def board(request, tmp_path):
    """A virtual board and its overlay, with the loop between the DMA's streams."""
    arch, stream_bits = request.param
    target = BoardTarget(arch=arch, dma=OWN)
    bit = write_simulation_overlay(tmp_path, loop_manifest(stream_bits), loop_verilog(stream_bits), target)
    board = activate()
    yield board, pynq.Overlay(str(bit))
    board.close()


@pytest.mark.parametrize("stall", [0, 0.4])
def test_words_come_back(board: tuple, stall: float) -> None:
    device, overlay = board
    assert overlay.ip_dict["axi_dma_0"]["type"] == VLNV
    device.stall(source=stall, sink=stall, seed=5)
    overlay.bitloom_0.write(ADDEND, 7)
    words = np.random.default_rng(1).integers(0, 1 << 30, 700, dtype="u4")
    stream_words = words.view(f"u{device.simulation.stream_bits // 8}")
    sums = (stream_words + stream_words.dtype.type(7)).view("u4")
    for count in (2, 34, 700):
        assert (transfer(overlay, words[:count]) == sums[:count]).all()
    assert (transfer(overlay, words[:34], room=100) == sums[:34]).all()  # the packet ends before the buffer


@pytest.mark.parametrize(
    ("trouble", "message"),
    [("refused", "DMA Slave Error"), ("nowhere", "DMA Decode Error"), ("long", "DMA Internal Error")],
)
def test_errors_as_pynq_tells_them(board: tuple, trouble: str, message: str) -> None:
    device, overlay = board
    ddr = device.ddr
    channel = overlay.axi_dma_0.sendchannel
    if trouble == "refused":
        device.simulation.connect_memory(ddr.content, ddr.base, range(ddr.base, ddr.base + ddr.size))
    elif trouble == "nowhere":
        device.simulation.connect_memory(ddr.content, 0xF000_0000)
    with pynq.allocate(64, "u4") as source, pynq.allocate(32, "u4") as target:
        if trouble == "long":
            channel.transfer(source)
            channel = overlay.axi_dma_0.recvchannel
            channel.transfer(target)
        else:
            channel.transfer(source)
        with pytest.raises(RuntimeError, match=message):
            channel.wait()


def test_a_packet_that_never_comes(board: tuple) -> None:
    device, overlay = board
    device.timeout_cycles = 3000
    with pynq.allocate(8, "u4") as target:
        overlay.axi_dma_0.recvchannel.transfer(target)
        with pytest.raises(SimulationTimeout, match="bitloom_dma S2MM: no progress for 3000 cycles"):
            overlay.axi_dma_0.recvchannel.wait()


def test_what_the_files_say(tmp_path: Path) -> None:
    bit = write_simulation_overlay(tmp_path, loop_manifest(), loop_verilog(), BoardTarget(dma=OWN))
    files = read_simulation_overlay(bit)
    assert (files.dma, files.top) == (OWN, SYSTEM_TOP)
    assert f"module {SYSTEM_TOP} " in files.verilog
    plain = simulation_overlay_files(loop_manifest(), loop_verilog())
    assert not any(b"bitloom_dma" in content for content in plain.values())


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """The smallest reference design."""
    return built("digits-cnn", tmp_path_factory.mktemp("digits"))


@pytest.fixture(scope="module")
def digits_amd(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """The same with AMD's DMA."""
    return built("digits-cnn", tmp_path_factory.mktemp("digits_amd"), AMD)


def built(name: str, folder: Path, dma: DmaCore = OWN) -> Build:
    """The build of a reference design, with our DMA or another."""
    reference = REFERENCE_DESIGNS[name]
    models = reference.models()
    return build(folder, reference.design(name, models), models, choices=reference.choices, target=BoardTarget(dma=dma))


def check_results(done: Build, name: str, frames: int, stall: float) -> None:
    """Results are golden's."""
    model = REFERENCE_DESIGNS[name].models()[0]
    images = random_images(model.network, frames, 1)
    result = run(done, model, images, conditions=Conditions(stall=stall, seed=3))
    assert result.bit_exact_frames == frames


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_a_design_is_bit_exact(digits: Build, stall: float) -> None:
    check_results(digits, "digits-cnn", 5, stall)


def test_as_fast_as_with_amds(digits: Build, digits_amd: Build) -> None:
    """A calm memory costs no cycle: neither between frames, nor from a frame's first word to its result."""
    model = REFERENCE_DESIGNS["digits-cnn"].models()[0]
    images = random_images(model.network, 4, 1)
    own, amd = (run(b, model, images, conditions=Conditions(first_alone=True)) for b in (digits, digits_amd))
    assert (own.cycles_between_frames, own.latency) == (amd.cycles_between_frames, amd.latency)


def wrong_packet(board: VirtualDevice, accelerator: Accelerator) -> None:
    """Somebody sends a packet of no known kind."""
    channel = accelerator.overlay.axi_dma_0.sendchannel
    buffer = pynq.allocate(16, "u4")
    buffer[:] = 0xDEADBEEF
    channel.transfer(buffer)
    channel.wait()


def reset_half_way(board: VirtualDevice, accelerator: Accelerator) -> None:
    """Somebody resets the device when frames begin to come in."""
    write = board.write_registers

    def hooked(address: int, data: bytes) -> None:
        write(address, data)
        if address & 0xFFFF == MM2S + LENGTH.offset:
            board.write_registers = write
            accelerator.core.write(DEVICE_CONTROL.offset, DEVICE_CONTROL.field("SOFT_RESET").at(1))

    board.write_registers = hooked


@pytest.mark.parametrize(("spoil", "kind"), [(wrong_packet, "PacketError"), (reset_half_way, "DeviceTaken")])
def test_errors_are_those_with_amds(digits: Build, digits_amd: Build, spoil: Callable, kind: str) -> None:
    model = REFERENCE_DESIGNS["digits-cnn"].models()[0]
    images = random_images(model.network, 3, 1)
    messages = []
    for done in (digits, digits_amd):
        board = activate()
        try:
            with Accelerator(done.bit, timeout=60.0) as accelerator:
                accelerator.load(done.program("digits-cnn"))
                spoil(board, accelerator)
                with pytest.raises(DeviceError) as caught:
                    accelerator.predict(images)
                messages.append(str(caught.value).removeprefix(done.bit.stem))
                assert type(caught.value).__name__ == kind
                accelerator.load(done.program("digits-cnn"))
                np.testing.assert_array_equal(accelerator.predict(images), model.forward(images))
        finally:
            board.close()
    assert messages[0] == messages[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", REFERENCE_DESIGNS)
def test_reference_designs_are_bit_exact(name: str, tmp_path: Path) -> None:
    check_results(built(name, tmp_path), name, 2, 0.3)


def test_the_driver_recovers(digits: Build) -> None:
    """From memory that refuses, or is not there."""
    model = REFERENCE_DESIGNS["digits-cnn"].models()[0]
    images = random_images(model.network, 3, 1)
    golden = model.forward(images)
    board = activate()
    board.stall(source=0.3, sink=0.3, seed=1)
    try:
        with Accelerator(digits.bit, timeout=60.0) as accelerator:
            assert type(accelerator._link._dma) is BitloomDma
            accelerator.load(digits.program("digits-cnn"))
            np.testing.assert_array_equal(accelerator.predict(images), golden)
            ddr = board.ddr
            for refused in (range(ddr.base, ddr.base + ddr.size), range(0)):
                board.simulation.connect_memory(ddr.content, ddr.base if refused else 0xF000_0000, refused)
                with pytest.raises(TransferError, match="slave error" if refused else "decode error"):
                    accelerator.predict(images)
                board.simulation.connect_memory(ddr.content, ddr.base)
                accelerator.reset()
                accelerator.load(digits.program("digits-cnn"))
                np.testing.assert_array_equal(accelerator.predict(images), golden)
    finally:
        board.close()


@pytest.mark.parametrize("interrupts", [False, True])
def test_libbitloom(digits: Build, interrupts: bool) -> None:
    """The C library, by looks and by interrupts; and after memory that is not there."""
    model = REFERENCE_DESIGNS["digits-cnn"].models()[0]
    images = random_images(model.network, 3, 1)
    golden = model.forward(images)
    with c_device(digits.bit, interrupts=interrupts, stalls={"source": 0.3, "sink": 0.3, "seed": 4}) as device:
        device.load(digits.program("digits-cnn"))
        np.testing.assert_array_equal(device.predict(images, model.network.output.shape), golden)
        board = device.board
        board.simulation.connect_memory(board.ddr.content, 0xF000_0000)
        with pytest.raises(CError, match="decode error"):
            device.predict(images, model.network.output.shape)
        board.simulation.connect_memory(board.ddr.content, board.ddr.base)
        device.reset()
        device.load(digits.program("digits-cnn"))
        np.testing.assert_array_equal(device.predict(images, model.network.output.shape), golden)


def test_the_commands(tmp_path: Path) -> None:
    folder = str(tmp_path / "build")
    assert call("build", "digits-cnn", "--dma", "own", "--out", folder).exit_code == 0
    assert read_simulation_overlay(load(folder).bit).dma is OWN
    result = call("simulate", folder, "--frames", "2", "--json")
    assert json.loads(result.stdout)["bit_exact_frames"] == 2
    board = str(tmp_path / "board")
    assert call("build", "digits-cnn", "--dma", "own", "--board", "pynq-z2", "--out", board).exit_code == 0
    sources = load(board).sources
    assert sources
    assert OWN.vlnv in (sources / "design.tcl").read_text()
    assert "module bitloom_dma (" in (sources / "dma" / "bitloom_dma.v").read_text()


def test_the_modules_are_clean(digits: Build) -> None:
    assert lint(read_simulation_overlay(digits.bit).verilog, top=SYSTEM_TOP) == []


BREAKS = {
    "16 beats": (
        "assign m_axi_arlen = { 4'd0, burst_last };",
        "assign m_axi_arlen = { 4'd1, burst_last };",
        "m_axi_mm2s: a burst must have at most 16 beats, got 24",
    ),
    "burst type": (
        "assign m_axi_arburst = INCREMENT;",
        "assign m_axi_arburst = 2'd0;",
        "m_axi_mm2s: a burst must count up by whole words, got address 0x1000, size 2, burst type 0",
    ),
    "4 KB": (
        "assign m_axi_arlen = { 4'd0, burst_last };",
        "assign m_axi_arlen = 8'd8;",
        "m_axi_mm2s: a burst must not cross 4 KB, got address 0x1fe0",
    ),
    "strobes": (
        "assign m_axi_wstrb = 4'd15;",
        "assign m_axi_wstrb = 4'd7;",
        "m_axi_s2mm: all bytes of a word must be written, got strobes 0x7",
    ),
    "last word": (
        "assign m_axi_wlast = (index_out == BLOCK_END) | (due == 6'd1);",
        "assign m_axi_wlast = index_out == BLOCK_END;",
        "m_axi_s2mm: wlast must mark the last word of a burst",
    ),
}
"""Changes of the DMA's Verilog that break a rule of the bus, and what the simulation says."""


@pytest.mark.parametrize(
    "rule", [pytest.param(rule, marks=[pytest.mark.slow] * (rule != "last word")) for rule in BREAKS]
)
def test_a_broken_rule_of_the_bus_is_told(tmp_path: Path, rule: str) -> None:
    old, new, message = BREAKS[rule]
    bit = write_simulation_overlay(tmp_path, loop_manifest(), loop_verilog(), BoardTarget(dma=OWN))
    verilog = read_simulation_overlay(bit).verilog
    assert verilog.count(old) == 1
    memory = np.zeros(1 << 13, np.uint8)
    start = 0x1FE0 if rule == "4 KB" else 0x1000
    with Simulation.build(verilog.replace(old, new), top=SYSTEM_TOP, dma=True) as simulation:
        simulation.connect_memory(memory, 0x1000)

        def transfer_all() -> None:
            for base, address in ((S2MM, 0x2000), (MM2S, start)):
                for register, value in ((CONTROL, 1), (ADDRESS, address), (LENGTH, 4 * 8)):
                    simulation.write_register(base + register.offset, value, port=DMA)
            simulation.run(200)

        with pytest.raises(ProtocolError, match=re.escape(message) + r" \(cycle \d+\)$"):
            transfer_all()
