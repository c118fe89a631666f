"""pynq itself on a virtual board, both processors: overlay, registers, buffers, DMA, interrupts, watchdog.

Tests marked ``both`` run on both forms of the board: in this process, and through PYNQ's remote protocol.
"""

import asyncio
import os
import subprocess
import sys
from contextlib import ExitStack
from types import SimpleNamespace

import numpy as np
import pytest

pynq = pytest.importorskip("pynq")

from bitloom.hls_gen.design.manifest import VLNV  # noqa: E402
from bitloom.overlay.platform.target import BoardTarget  # noqa: E402
from bitloom.overlay.virtual.board import BusError, DmaMisuseError, MemoryAccessError, activate, dma  # noqa: E402
from bitloom.overlay.virtual.board.memory import Ddr  # noqa: E402
from bitloom.overlay.virtual.sim import ProtocolError, SimulationTimeout  # noqa: E402
from bitloom.overlay.virtual.simulation_overlay import OverlayError, write_simulation_overlay  # noqa: E402
from tests.errors import REMOTE_ERRORS  # noqa: E402
from tests.overlay.conftest import FAULTS, loop_verilog  # noqa: E402
from tests.overlay.platform.manifest import (  # noqa: E402
    ADDEND,
    CONTROL,
    FAULT,
    IDENT,
    IRQ_ENABLE,
    IRQ_STATUS,
    WORDS_OUT,
    loop_manifest,
)

from .transfer import transfer  # noqa: E402


@pytest.fixture(scope="session")
def bit(tmp_path_factory):
    """bit(arch, stream_bits) -> path of a simulation .bit of loop.v."""
    folder = tmp_path_factory.mktemp("overlays")

    def write(arch="zynqmp", stream_bits=32):
        target = BoardTarget(arch=arch)
        return write_simulation_overlay(folder, loop_manifest(stream_bits), loop_verilog(stream_bits), target)

    return write


@pytest.fixture(params=["zynq", "zynqmp"])
def arch(request):
    return request.param


both = pytest.mark.parametrize("form", ["in process", "remote"], indirect=True)


@pytest.fixture
def form(request):
    return getattr(request, "param", "in process")


@pytest.fixture
def board(bit, form):
    """board(arch, stream_bits) -> (System, overlay); its pynq device is active during the test."""
    with ExitStack() as stack:

        def start(arch="zynqmp", stream_bits=32):
            path = bit(arch, stream_bits)
            if form == "remote":
                system = serve(stack, path)
            else:
                system = activate()
                stack.callback(system.close)
            return system, pynq.Overlay(str(path))

        yield start


def serve(stack, path):
    """The System behind a server, which is pynq's active device until ``stack`` ends."""
    pytest.importorskip("pynq.remote", reason="PYNQ's remote protocol comes with pynq 4")
    from bitloom.overlay.virtual.serve.server import Server

    from .remote import remote_device

    server = stack.enter_context(Server(path, port=0))
    stack.enter_context(remote_device(server))
    return server.board


@both
def test_an_overlay_needs_only_the_path_of_its_bit(arch, board):
    device, overlay = board(arch)
    assert overlay.is_loaded()
    assert device.arch == {"zynq": "armv7l", "zynqmp": "aarch64"}[arch]
    assert {"axi_dma_0", "axi_intc_0", "bitloom_0"} <= set(overlay.ip_dict)
    assert overlay.ip_dict["bitloom_0"]["type"] == VLNV
    assert overlay.ip_dict["bitloom_0"]["parameters"]["DIGEST"] == loop_manifest()["digest"]
    assert overlay.ip_dict["axi_dma_0"]["parameters"]["c_include_sg"] == "0"
    clocks = [pynq.Clocks.cpu_mhz, *(getattr(pynq.Clocks, f"fclk{k}_mhz") for k in range(4))]
    assert clocks == pytest.approx([{"zynq": 650, "zynqmp": 1200}[arch], 100, 100, 100, 100], rel=1e-4)
    pynq.Clocks.fclk0_mhz = 50
    assert pynq.Clocks.fclk0_mhz == pytest.approx(50, abs=0.01)


@both
def test_registers_and_fields(arch, board):
    core = board(arch)[1].bitloom_0
    assert core.read(IDENT) == int(core.register_map.IDENT) == 0x424C4D31
    assert (core.register_map.VERSION.MAJOR, core.register_map.VERSION.MINOR) == (0, 1)
    core.register_map.ADDEND = 5
    assert core.read(ADDEND) == 5
    core.register_map.CONTROL.START = 1
    assert core.register_map.CONTROL.START == 1
    assert core.read(CONTROL) == 1


@both
@pytest.mark.parametrize("stream_bits", [32, 64])
def test_dma_round_trip(arch, board, stream_bits):
    _, overlay = board(arch, stream_bits)
    words = np.arange(1000, dtype=np.uint32) * 3
    expected = words + (np.arange(1000) % (stream_bits // 32) == 0)
    for _ in range(2):
        assert (transfer(overlay, words) == expected).all()


@pytest.mark.parametrize("seed", range(3))
def test_stalls_change_time_and_not_data(board, seed):
    device, overlay = board()
    words = np.arange(500, dtype=np.uint32)
    transfer(overlay, words)
    calm = device.simulation.cycles
    transfer(overlay, words)
    calm = device.simulation.cycles - calm
    device.stall(source=0.4, sink=0.6, seed=seed)
    before = device.simulation.cycles
    assert (transfer(overlay, words) == words + 1).all()
    assert device.simulation.cycles - before > 2 * calm


@both
def test_a_missing_flush_fails(board):
    _, overlay = board()
    dma = overlay.axi_dma_0
    source, target = pynq.allocate(8, "u4"), pynq.allocate(8, "u4")
    source[:] = 7
    source.flush()
    source[:] = 9  # never flushed
    dma.recvchannel.transfer(target)
    mmio = dma.mmio
    mmio.write(0x18, source.physical_address)
    mmio.write(0x1C, 0)
    mmio.write(0x28, source.nbytes)
    dma.recvchannel.wait()
    assert target.tolist() == [8] * 8
    target[:] = 0
    assert target.tolist() == [0] * 8  # the host copy
    target.invalidate()
    assert target.tolist() == [8] * 8  # the DDR


def test_the_overlays_memory_is_the_boards(board):
    device, overlay = board()
    with overlay.PSDDR.allocate((4,), "u4") as buffer:
        assert device.ddr.holds(buffer.physical_address, 16)


@both
def test_freed_memory_is_given_out_again(board):
    device, _ = board()
    before = device.ddr.used
    with pynq.allocate(5000, "u1") as first, pynq.allocate(1, "u1") as second:
        address = first.physical_address
        assert second.physical_address - address == 8192
        assert device.ddr.used == before + 3 * 4096
    assert device.ddr.used == before
    with pynq.allocate(9000, "u1") as again:
        assert again.physical_address == address


# Interrupts


def test_interrupts_through_pynqs_own_controller_code(arch, board):
    dma = board(arch)[1].axi_dma_0

    async def run():
        source, target = pynq.allocate(200, "u4"), pynq.allocate(200, "u4")
        for round_ in range(3):
            source[:] = np.arange(200) * (round_ + 2)
            dma.recvchannel.transfer(target)
            receiving = asyncio.ensure_future(dma.recvchannel.wait_async())
            for _ in range(5):
                await asyncio.sleep(0)
            assert not receiving.done()
            dma.sendchannel.transfer(source)
            await dma.sendchannel.wait_async()
            await receiving
            assert (target == source + 1).all()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_the_devices_own_interrupt(board):
    _, overlay = board()
    core, dma = overlay.bitloom_0, overlay.axi_dma_0
    core.write(IRQ_ENABLE, 1)

    async def run():
        waiting = asyncio.ensure_future(core.irq.wait())
        await asyncio.sleep(0.01)
        assert not waiting.done()
        with pynq.allocate(20, "u4") as source, pynq.allocate(20, "u4") as target:
            source[:] = 1
            dma.recvchannel.transfer(target)
            dma.sendchannel.transfer(source)
            await waiting
            dma.recvchannel.wait()

    asyncio.run(asyncio.wait_for(run(), 60))
    assert core.read(IRQ_STATUS) == 1
    core.write(IRQ_STATUS, 1)
    assert core.read(IRQ_STATUS) == 0


def test_waiting_for_an_interrupt_that_never_comes_times_out(board):
    device, overlay = board()
    device.timeout_cycles = 20_000
    overlay.bitloom_0.write(FAULT, FAULTS["hangs"])
    dma = overlay.axi_dma_0

    async def run():
        with pynq.allocate(20, "u4") as source, pynq.allocate(20, "u4") as target:
            dma.recvchannel.transfer(target)
            dma.sendchannel.transfer(source)
            await dma.recvchannel.wait_async()

    with pytest.raises(SimulationTimeout, match=r"^axi_dma MM2S, axi_dma S2MM: no progress for 20000 cycles"):
        asyncio.run(asyncio.wait_for(run(), 60))


def test_waiting_without_a_transfer_uses_up_no_patience(board):
    device, overlay = board()
    device.timeout_cycles = 3000
    core = overlay.bitloom_0

    async def run():
        waiting = asyncio.ensure_future(core.irq.wait())
        before = device.simulation.cycles
        while device.simulation.cycles < before + 10_000:
            await asyncio.sleep(0.01)
        assert core.read(IDENT) == 0x424C4D31
        waiting.cancel()

    asyncio.run(asyncio.wait_for(run(), 60))


# Mistakes of a driver, faults of a device


def test_a_hanging_device_times_out_with_its_state(board):
    device, overlay = board()
    device.timeout_cycles = 50_000
    overlay.bitloom_0.write(FAULT, FAULTS["hangs"])
    with pytest.raises(SimulationTimeout, match=r"^axi_dma MM2S, axi_dma S2MM: no progress for 50000 cycles") as caught:
        transfer(overlay, np.arange(20))
    assert caught.value.state["registers"]["WORDS_OUT"] == 5
    assert "WORDS_OUT              0x00000005" in str(caught.value)
    assert "length 80 active" in caught.value.state["axi_dma S2MM"]


@both
def test_reset_of_the_dma_makes_the_board_usable_again(board):
    device, overlay = board()
    device.timeout_cycles = 5000
    core, dma = overlay.bitloom_0, overlay.axi_dma_0
    core.write(FAULT, FAULTS["hangs"])
    with pytest.raises((SimulationTimeout, *REMOTE_ERRORS), match="no progress for 5000 cycles"):
        transfer(overlay, np.arange(20))
    core.write(FAULT, 0)
    core.write(CONTROL, 2)
    dma.mmio.write(0x00, 4)
    assert [dma.mmio.read(offset) for offset in (0x00, 0x04, 0x30, 0x34)] == [0x10002, 1, 0x10002, 1]
    core.write(CONTROL, 2)
    dma.sendchannel.start()
    dma.recvchannel.start()
    assert transfer(overlay, np.arange(20)).tolist() == list(range(1, 21))


@both
def test_a_packet_longer_than_the_buffer_is_an_internal_error(board):
    dma = board()[1].axi_dma_0
    source, target = pynq.allocate(20, "u4"), pynq.allocate(12, "u4")
    dma.recvchannel.transfer(target)
    dma.sendchannel.transfer(source)
    with pytest.raises(RuntimeError, match=r"DMA Internal Error"):
        dma.recvchannel.wait()
    assert dma.recvchannel.error
    assert not dma.recvchannel.running
    assert dma.mmio.read(0x34) & 0x4011 == 0x4011


def test_length_0_is_an_internal_error(board):
    dma = board()[1].axi_dma_0
    dma.mmio.write(0x18, 0x1000_0000)
    dma.mmio.write(0x28, 0)
    assert dma.mmio.read(0x04) & 0x11 == 0x11


@pytest.mark.parametrize("channel", [0x00, 0x30])
def test_an_address_outside_of_the_memory_is_a_decode_error(board, channel):
    dma = board()[1].axi_dma_0
    dma.mmio.write(channel + 0x18, 0x10)
    dma.mmio.write(channel + 0x28, 64)
    assert dma.mmio.read(channel + 0x04) & 0x41 == 0x41
    with pytest.raises(RuntimeError, match=r"DMA channel not started"):
        (dma.recvchannel if channel else dma.sendchannel).wait()


def test_a_transfer_over_the_end_of_a_buffer_is_refused(board):
    dma = board()[1].axi_dma_0
    buffer = pynq.allocate(16, "u4")
    dma.mmio.write(0x48, buffer.physical_address)
    with pytest.raises(
        MemoryAccessError, match=r"^axi_dma S2MM: 0x1\w+ \+ 68 bytes is not inside one allocated buffer$"
    ):
        dma.mmio.write(0x58, 68)


def test_half_stream_words_and_double_starts_are_refused(board):
    dma = board(stream_bits=64)[1].axi_dma_0
    buffer = pynq.allocate(16, "u4")
    dma.mmio.write(0x48, buffer.physical_address)
    with pytest.raises(DmaMisuseError, match=r"^axi_dma S2MM: address and length must be multiples of 8 bytes"):
        dma.mmio.write(0x58, 12)
    dma.mmio.write(0x58, 16)
    with pytest.raises(DmaMisuseError, match=r"^axi_dma S2MM: LENGTH written while a transfer is running$"):
        dma.mmio.write(0x58, 16)


@both
def test_length_is_ignored_while_the_channel_is_halted(board):
    dma = board()[1].axi_dma_0
    dma.sendchannel.stop()
    dma.mmio.write(0x28, 64)
    assert dma.mmio.read(0x04) == 1


def test_a_protocol_fault_of_the_device_reaches_the_driver(board):
    device, overlay = board()
    overlay.bitloom_0.write(FAULT, FAULTS["changes_data"])
    device.stall(sink=0.9)
    with pytest.raises(ProtocolError, match=r"^m_axis: tdata must not change while it waits for tready"):
        transfer(overlay, np.arange(100))


def test_nothing_answers_outside_of_the_map(board):
    board()
    with pytest.raises(
        BusError, match=r"^read of 0xA0100004: nothing answers there \(axi_dma_0 0xA0000000\.\.0xA000FFFF"
    ):
        pynq.MMIO(0xA010_0000, 16).read(4)
    with pytest.raises(BusError, match=r"^write of 0xA0011000: nothing answers there"):
        pynq.MMIO(0xA001_0000, 0x2000).write(0x1000, 1)


def test_registers_of_an_unloaded_device(bit):
    device = activate()
    overlay = pynq.Overlay(str(bit()), download=False)
    with pytest.raises(BusError, match=r"^Virtual device: no bitstream is loaded$"):
        overlay.bitloom_0.read(IDENT)
    with pytest.raises(BusError):
        _ = device.simulation


# Overlays come and go


@both
def test_download_starts_a_fresh_model(board):
    _, overlay = board()
    transfer(overlay, np.arange(20))
    kept = pynq.allocate(4, "u4")
    kept[:] = 6
    kept.flush()
    overlay.bitloom_0.write(ADDEND, 9)
    overlay.download()
    assert overlay.bitloom_0.read(WORDS_OUT) == 0
    assert overlay.bitloom_0.read(ADDEND) == 1
    kept[:] = 0
    kept.invalidate()
    assert kept.tolist() == [6] * 4


def test_waveform_of_a_whole_overlay(bit, tmp_path):
    device = activate()
    device.waveform = tmp_path / "loop.vcd"
    overlay = pynq.Overlay(str(bit()))
    transfer(overlay, np.arange(4))
    device.close()
    assert "s_axi_awaddr" in (tmp_path / "loop.vcd").read_text()


@pytest.mark.parametrize("suffix", [".v", ".manifest.json"])
def test_a_missing_file_is_named(bit, tmp_path, suffix):
    path = write_simulation_overlay(tmp_path, loop_manifest(), loop_verilog())
    path.with_suffix(suffix).unlink()
    activate()
    missing = path.stem + suffix
    with pytest.raises(OverlayError, match=f"^{path.name}: {missing} must lie beside it, and is missing$"):
        pynq.Overlay(str(path))


def test_writing_the_status_of_a_dma_channel_clears_interrupts_alone():
    channel = dma.Channel(SimpleNamespace(stream_bits=32), Ddr())
    channel.write(dma.CONTROL, dma.RUN)
    channel.finish()
    assert channel.read(dma.STATUS) == dma.IDLE | dma.DONE_IRQ
    channel.write(dma.STATUS, 0xFFFF_FFFF)
    assert channel.read(dma.STATUS) == dma.IDLE


def test_memory_ends_with_its_last_byte():
    memory = Ddr()
    end = memory.base + memory.size
    assert memory.view(end - 8, 8).shape == (8,)
    with pytest.raises(MemoryAccessError, match="is outside of"):
        memory.view(end - 7, 8)
    with pytest.raises(MemoryAccessError, match="is outside of"):
        memory.view(memory.base - 1, 8)


def test_an_address_between_stream_words_is_refused():
    channel = dma.Channel(SimpleNamespace(stream_bits=64), Ddr())
    channel.write(dma.CONTROL, dma.RUN)
    channel.write(dma.ADDRESS, 0x1000_0004)
    rule = r"^: address and length must be multiples of 8 bytes \(the stream word\), got 0x10000004 and 8$"
    with pytest.raises(DmaMisuseError, match=rule):
        channel.write(dma.LENGTH, 8)


FORKED = """
import os, sys, warnings
import pynq
from bitloom.overlay.virtual.board import activate

warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads: that is what is tried
board = activate()
board.waveform = sys.argv[2]
overlay = pynq.Overlay(sys.argv[1])
board.simulation.run(50)
if os.fork() == 0:
    sys.exit(3)
code = os.waitstatus_to_exitcode(os.wait()[1])
board.simulation.run(50)
board.close()
sys.exit(code)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_ends(bit, tmp_path):
    """It has a copy of the model, but neither Verilator's threads, for which it waited for ever, nor the waveform."""
    waves = [tmp_path / "forked.vcd", tmp_path / "alone.vcd"]
    for wave, script in zip(waves, (FORKED, FORKED.replace("os.fork() == 0", "False").replace("os.wait()[1]", "768"))):
        command = [sys.executable, "-c", script, str(bit()), str(wave)]
        done = subprocess.run(command, timeout=60, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (3, "")
    texts = [wave.read_text().partition("$timescale")[2] for wave in waves]
    assert len(texts[0]) > 1000
    assert texts[0] == texts[1]
