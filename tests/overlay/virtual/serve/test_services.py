"""The services, call by call: what they do, and what they refuse with which words."""

import re
import threading
from collections import Counter

import grpc
import pytest
from pynq.pl_server import remote_device
from pynq.pl_server.embedded_device import bit2bin
from pynq.remote import buffer_pb2, gpio_pb2, mmio_pb2, remote_device_pb2

from bitloom.overlay.virtual import serve
from bitloom.overlay.virtual.serve import buffers
from bitloom.overlay.virtual.serve.limits import ServerLimits
from tests.overlay.conftest import FAULTS
from tests.overlay.platform.manifest import ADDEND, FAULT, IDENT

from .calls import DEVICE, DMA, FIRMWARE, FLAGS, refused, until


@pytest.fixture
def core(client):
    """The mapping of the device's registers."""
    return client.mapping(DEVICE, 0x1000)


@pytest.fixture
def binary(bit):
    return bit2bin(bit.read_bytes())


def test_the_port_is_pynqs():
    assert serve.PORT == remote_device.PYNQ_PORT


# Registers


def test_registers(client, core):
    assert client.get(core, IDENT) == 0x424C4D31
    assert client.get(core, IDENT, 2) == 0x4D31
    assert client.get(core, IDENT, 1) == 0x31
    client.put(core, ADDEND, 77)
    assert client.get(core, ADDEND) == 77
    assert client.get(client.mapping(DEVICE + ADDEND, 4), 0) == 77


def test_a_build_that_was_changed_is_not_loaded(client, binary, bit):
    """After the server has begun: its .v, and then its .bit too."""
    verilog = bit.with_suffix(".v")
    whole, whole_bit = bit.with_suffix(".v").read_bytes(), bit.read_bytes()
    try:
        verilog.write_bytes(whole + b"// more\n")
        rule = "must be the one that it was written with, and was changed"
        with refused("FAILED_PRECONDITION", f"{bit.name}: {verilog.name} {rule}"):
            client.load(binary)
        bit.write_bytes(whole_bit[:-8] + b"changed!")
        with refused("FAILED_PRECONDITION", f"{bit.name}: must be as it was when the server began, and was changed"):
            client.load(binary)
    finally:
        bit.write_bytes(whole_bit)
        verilog.write_bytes(whole)
    client.load(binary)


def test_registers_that_are_refused(client, core):
    with refused("INVALID_ARGUMENT", "read: length must be 1, 2 or 4 bytes, got 8"):
        client.get(core, 0, 8)
    with refused("INVALID_ARGUMENT", "read: length must be 1, 2 or 4 bytes, got 0"):
        client.get(core, 0, 0)
    with refused("OUT_OF_RANGE", "read of 0xA0010002: the address must be a multiple of 4"):
        client.get(core, 2)
    for offset in (0xFFD, 0x1000, 1 << 63):
        rule = "offset + 4 must be <= 4096, the mapping's length"
        with refused("OUT_OF_RANGE", f"0xA0010000: {rule}, got offset {offset}"):
            client.get(core, offset)
    with refused("OUT_OF_RANGE", "0xA0010000: offset + 8 must be <= 4096, the mapping's length, got offset 4092"):
        client.put(core, 4092, bytes(8))
    for data in (b"", bytes(3), bytes(4100)):
        rule = "data must be 1 to 1024 words of 4 bytes"
        with refused("INVALID_ARGUMENT", f"write: {rule}, got {len(data)} bytes"):
            client.put(core, 0, data)
    for key in ("", "7", "0xA0010000+0x1000", "0xa0010000+0x1000 ", "x" * 5000):
        with refused("NOT_FOUND", f"mmio_id must be one that get_mmio gave, got {key[:40]!r}"):
            client.get(key, 0)


def test_nothing_answers_at_an_address(client):
    known = "axi_dma_0 0xA0000000..0xA000FFFF, bitloom_0 0xA0010000..0xA0010FFF, axi_intc_0 0xA0020000..0xA002FFFF"
    with refused("OUT_OF_RANGE", f"read of 0xB0000004: nothing answers there ({known})"):
        client.get(client.mapping(0xB000_0000, 0x1000), 4)
    top = client.mapping((1 << 64) - 4, (1 << 64) - 1)
    with refused("OUT_OF_RANGE", f"write of 0x10000000000000000: nothing answers there ({known})"):
        client.put(top, 4, 1)


def test_faults_of_the_device_and_mistakes_of_a_driver(client, server, core):
    server.board.timeout_cycles = 5000
    with refused("DEADLINE_EXCEEDED", "polling: no progress for 5000 cycles"):
        while True:
            client.get(core, IDENT)
    client.put(core, FAULT, FAULTS["no_read_answer"])
    with refused("DEADLINE_EXCEEDED", "read of register 0x000: no answer for 10000 cycles"):
        client.get(core, IDENT)
    server.board.load(server.bit)
    dma = client.mapping(DMA, 0x10000)
    key = client.allocate(64)
    client.put(dma, 0x30, 1)
    client.put(dma, 0x48, client.address(key))
    with refused(
        "OUT_OF_RANGE", f"axi_dma S2MM: 0x{client.address(key):X} + 68 bytes is not inside one allocated buffer"
    ):
        client.put(dma, 0x58, 68)
    with refused("FAILED_PRECONDITION", "axi_dma S2MM: LENGTH written while a transfer is running"):
        client.put(dma, 0x58, 64)


def test_nothing_is_loaded(client, server, core):
    server.board.close()
    with refused("FAILED_PRECONDITION", "Virtual device: no bitstream is loaded"):
        client.get(core, IDENT)


# Buffers


def test_only_flush_reaches_the_memory_and_only_invalidate_comes_back(client, server):
    key = client.allocate(8)
    memory = server.board.ddr.view(client.address(key), 8)
    memory[:] = 1
    client.write((key, b"abcd"), (key, b"efgh"))
    assert client.read(key) == b"abcdefgh"
    assert memory.tobytes() == b"\x01" * 8
    client.flush(key)
    assert memory.tobytes() == b"abcdefgh"
    memory[:] = 2
    assert client.read(key) == b"abcdefgh"
    client.invalidate(key)
    assert client.read(key) == b"\x02" * 8
    client.write((key, b"x"))
    assert client.read(key) == b"x" + b"\x02" * 7


def test_a_buffer_longer_than_a_message(client):
    data = bytes(range(256)) * (5 << 12) + b"end!"
    key = client.allocate(len(data))
    client.write(*((key, data[i : i + (2 << 20)]) for i in range(0, len(data), 2 << 20)))
    assert client.read(key) == data


def test_buffers_are_freed(client, server):
    before = server.board.ddr.used
    keys = [client.allocate(5000) for _ in range(3)]
    assert server.board.ddr.used == before + 3 * 8192
    for key in keys:
        assert client.buffers.cacheable(buffer_pb2.CacheableRequest(buffer_id=key)).cacheable
        client.free(key)
    assert server.board.ddr.used == before
    assert client.allocate(1) not in keys


def test_buffers_that_are_refused(client):
    for size in (0, -1, buffers.MOST_BYTES + 1):
        with refused("INVALID_ARGUMENT", f"allocate: size must be 1..67108864 bytes, got {size}"):
            client.allocate(size)
    key = client.allocate(8)
    with refused("OUT_OF_RANGE", f"{key}: at most 8 bytes must come, got 9"):
        client.write((key, b"12345"), (key, b"6789"))
    other = client.allocate(8)
    with refused("INVALID_ARGUMENT", f"buffer_id: all pieces must be for {key!r}, got one for {other!r}"):
        client.write((key, b"1234"), (other, b"5678"))
    with refused("INVALID_ARGUMENT", "buffer_id: at least one piece must come, got none"):
        client.write()
    client.free(key)
    calls = (client.free, client.flush, client.invalidate, client.read, client.address)
    for call in (*calls, lambda key: client.write((key, b"1"))):
        with refused("NOT_FOUND", f"buffer_id must be that of a buffer in use, got {key!r}"):
            call(key)
    with refused("NOT_FOUND", f"buffer_id must be that of a buffer in use, got {'x' * 40!r}"):
        client.read("x" * 100_000)


def test_no_more_memory_than_there_is(client, server):
    with refused("RESOURCE_EXHAUSTED", f"DDR: no {64 << 20} bytes in a row are free of {256 << 20}"):
        for _ in range(5):
            client.allocate(64 << 20)


def test_no_more_buffers_than_allowed(client):
    keys = [client.allocate(1) for _ in range(buffers.MOST_BUFFERS)]
    with refused("RESOURCE_EXHAUSTED", "allocate: at most 256 buffers must be in use, got one more"):
        client.allocate(1)
    client.free(keys[7])
    client.allocate(1)


# Files, and loading a bitstream


def test_the_files_of_a_board(client):
    assert b"aarch64" in client.read_file("/proc/version")
    assert client.read_file("/proc/device-tree/chosen/pynq_board") == b"Virtual\0"
    assert client.read_file("/sys/class/fpga_manager/fpga0/state") == b"operating\n"
    assert client.exists("/proc/version")
    assert not client.exists("/lib/firmware/loop.bin")
    assert not client.exists("/etc/passwd")


def test_loading_begins_anew(client, core, server, binary):
    client.put(core, ADDEND, 5)
    first = server.board.simulation
    client.load(binary)
    assert server.board.simulation is not first
    assert client.get(core, ADDEND) == 1
    assert not client.exists("/lib/firmware/loop.bin")
    client.write_file((FIRMWARE, b"loop.bin\n"))
    assert client.read_file(FLAGS) == b"0\n"


def test_no_other_bitstream_and_no_part_of_one(client, bit, binary):
    rule = f"must be the overlay that is served, {bit.name}, got another bitstream"
    for data in (b"", binary[:-4], binary[:-1] + b"x"):
        with refused("FAILED_PRECONDITION", f"loop.bin: {rule}"):
            client.write_file(("/lib/firmware/loop.bin", data))
    with refused("OUT_OF_RANGE", f"/lib/firmware/x: at most {len(binary)} bytes must come, got {len(binary) + 1}"):
        client.write_file(("/lib/firmware/x", binary), ("/lib/firmware/x", b"1"))
    with refused("NOT_FOUND", "loop.bin: must be in /lib/firmware/ to be loaded, and isn't"):
        client.write_file((FIRMWARE, b"loop.bin"))
    with refused("UNIMPLEMENTED", f"{FLAGS}: flags must be 0, a whole bitstream"):
        client.write_file((FLAGS, b"1"))
    announce = client.files.set_bitstream_attrs
    assert announce(remote_device_pb2.SetBitstreamAttrsRequest(binfile_name="loop.bin")).status
    with refused("UNIMPLEMENTED", "loop.bin: must be a whole bitstream"):
        announce(remote_device_pb2.SetBitstreamAttrsRequest(binfile_name="loop.bin", partial=True))


def test_files_that_are_refused(client):
    known = "/proc/version, /proc/device-tree/chosen/pynq_board, /sys/class/fpga_manager/fpga0/state, " + FLAGS
    for path in ("/etc/passwd", "/lib/firmware/loop.bin", "", FIRMWARE):
        with refused("NOT_FOUND", f"{path}: one of {known} must be read"):
            client.read_file(path)
    for path in ("/etc/passwd", "/proc/version", ""):
        with refused("PERMISSION_DENIED", f"{path}: /lib/firmware/NAME, {FLAGS} or {FIRMWARE} must be written"):
            client.write_file((path, b"x"))
    odd = "a\nb" * 40
    with refused("PERMISSION_DENIED", f"{odd[:100]!r}: /lib/firmware/NAME, {FLAGS} or {FIRMWARE} must be written"):
        client.write_file((odd, b"x"))
    with refused("OUT_OF_RANGE", f"{FIRMWARE}: at most 255 bytes must come, got 256"):
        client.write_file((FIRMWARE, bytes(256)))


def test_names_of_firmware_are_bounded(client, binary):
    with refused("RESOURCE_EXHAUSTED", f"/lib/firmware/{'x' * 100!r}: at most 64 names of 255 characters must be used"):
        client.write_file((f"/lib/firmware/{'x' * 256}", binary))
    for i in range(64):
        client.write_file((f"/lib/firmware/{i}", binary))
    with refused("RESOURCE_EXHAUSTED", "/lib/firmware/64: at most 64 names of 255 characters must be used"):
        client.write_file(("/lib/firmware/64", binary))
    client.load(binary, "63")


# Bounds of all calls


def test_what_there_is_not(client):
    with refused("UNIMPLEMENTED", "Method not found!"):
        client.gpio.get_gpio(gpio_pb2.GetGpioRequest(index=1, direction="in"))
    with refused("UNIMPLEMENTED", "Method not implemented!"):
        client.files.shutdown(remote_device_pb2.ShutdownRequest())


class Held:
    """A write that begins and doesn't end until ``release``."""

    def __init__(self, client, key):
        self._end = threading.Event()
        self.call = client.buffers.write.future(self._pieces(key))

    def _pieces(self, key):
        yield buffer_pb2.BufferWriteRequest(buffer_id=key, data=b"1")
        self._end.wait(30)

    def release(self):
        self._end.set()


def hold(client, key, count):
    """So many writes of a client that don't end, once the server has them all."""
    held = [Held(client, key) for _ in range(count)]
    until(lambda: client.server.calls.names.count("write") + sum(one.call.done() for one in held) >= count)
    return held


def codes(held):
    """How many calls end with which status, once they are let go."""
    for one in held:
        one.release()
    return Counter(one.call.code().name for one in held)


def test_calls_of_a_client_are_bounded(client, limits):
    key = client.allocate(8)
    held = hold(client, key, limits.calls_of_client + 3)
    until(lambda: sum(one.call.done() for one in held) == 3)
    assert codes(held) == {"RESOURCE_EXHAUSTED": 3, "OK": limits.calls_of_client}
    texts = {one.call.details() for one in held} - {""}
    rule = f"at most {limits.calls_of_client} calls of a client must be under way, got one more"
    assert [re.sub(r"ipv4:[\d.]+:\d+", "CLIENT", text) for text in texts] == [f"CLIENT: {rule}"]
    assert client.read(key)[:1] == b"1"


QUICK = ServerLimits(piece_seconds=0.2, idle_seconds=0.4)
"""ServerLimits that a test can wait for."""


@pytest.mark.parametrize("limits", [QUICK])
@pytest.mark.parametrize("path", ["/mmio.Mmio/read", "/buffer.RemoteBuffer/read", "/buffer.RemoteBuffer/write"])
def test_a_request_that_does_not_come_can_not_keep_its_thread(server, client, path, caplog):
    call, end = client.hang(path)
    with pytest.raises(grpc.RpcError) as e:
        call.result(30)
    end.set()
    assert e.value.code() == grpc.StatusCode.CANCELLED
    until(lambda: not server.calls.names)
    name = path.rpartition("/")[2]
    texts = [re.sub(r"ipv4:[\d.]+:\d+", "CLIENT", text) for text in caplog.messages]
    assert texts[0] == f"CLIENT: cancelled {name}: no piece for 0.2 s"
    ends = (f"the client went away during {name}", "must come, got none")  # gRPC takes it for either
    assert all(text.endswith(ends) for text in texts[1:])


@pytest.mark.parametrize("limits", [ServerLimits(piece_seconds=100, request_seconds=0.3)])
def test_a_request_in_many_pieces_comes_to_its_end(server, client, caplog):
    """Pieces come again and again, none of them late."""
    key = client.allocate(8)
    ended = threading.Event()

    def pieces():
        while not ended.wait(0.02):
            yield buffer_pb2.BufferWriteRequest(buffer_id=key)

    with pytest.raises(grpc.RpcError) as e:
        client.buffers.write(pieces())
    ended.set()
    assert e.value.code() == grpc.StatusCode.CANCELLED
    until(lambda: not server.calls.names)
    assert re.fullmatch(r"ipv4:[\d.]+:\d+: cancelled write: not at its end after 0.3 s", caplog.messages[0])


def test_bytes_that_are_no_message(server, client):
    """Requests that protobuf can't read."""
    rule = "every piece must be a message of PYNQ's protocol, got other bytes"
    with refused("INVALID_ARGUMENT", f"read: {rule}"):
        client.channel.unary_unary("/mmio.Mmio/read")(b"\xff\xff\xff")
    with refused("INVALID_ARGUMENT", f"write: {rule}"):
        client.channel.stream_unary("/buffer.RemoteBuffer/write")(iter([b"\xff\xff\xff"]))
    with refused("INVALID_ARGUMENT", "read: a request must come, got none"):
        client.channel.stream_unary("/mmio.Mmio/read")(iter([]))
    assert client.get(client.mapping(DEVICE, 0x1000), IDENT) == 0x424C4D31
    assert client.registers.get_mmio(mmio_pb2.GetMmioRequest()).mmio_id == "0x0+0x0"


@pytest.mark.parametrize("name", vars(ServerLimits()))
@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan")])
def test_limits_are_numbers_above_0(name, value):
    with pytest.raises(ValueError, match=f"^limits: {name} must be a number above 0, got {value}$"):
        ServerLimits(**{name: value})
