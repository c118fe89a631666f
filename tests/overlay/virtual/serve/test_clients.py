"""Clients that come and go, some of them badly: the next one finds the server as it was."""

import errno
import os
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from contextlib import contextmanager, suppress
from functools import partial

import grpc
import numpy as np
import pynq
import pytest
from pynq.pl_server.embedded_device import bit2bin
from pynq.remote import buffer_pb2, remote_device_pb2

from bitloom.overlay.virtual.serve import connections, holder
from bitloom.overlay.virtual.serve.limits import ServerLimits
from bitloom.overlay.virtual.serve.server import Server
from tests.overlay.platform.manifest import ADDEND, IDENT
from tests.overlay.virtual.remote import remote_device
from tests.overlay.virtual.transfer import transfer

from .calls import DEVICE, refused, until


def works(server, bit):
    """pynq loads the overlay and runs words through it."""
    with remote_device(server) as device:
        overlay = pynq.Overlay(str(bit), device=device)
        assert transfer(overlay, np.arange(50)).tolist() == list(range(1, 51))


def test_several_clients_one_after_another(server, bit):
    for _ in range(3):
        works(server, bit)
    assert server.board.ddr.used == 0


@pytest.mark.parametrize("seed", range(3))
def test_bytes_that_are_no_grpc(server, bit, seed):
    noise = random.Random(seed)
    for begin in (b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01"):
        with socket.create_connection((server.host, server.port), 60) as wire:
            wire.sendall(begin + noise.randbytes(2000))
    works(server, bit)


def test_connections_that_say_nothing(server, bit):
    wires = [socket.create_connection((server.host, server.port), 60) for _ in range(50)]
    works(server, bit)
    for wire in wires:
        wire.close()
    works(server, bit)


def test_without_a_descriptor_left_no_module_has_to_be_imported(monkeypatch):
    """An import opens a file: the thread that ends connections ended with an ImportError, and nobody was answered."""

    def none_left(_):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(connections.os, "listdir", none_left)
    monkeypatch.setitem(sys.modules, "resource", None)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert connections._handles() == range(most)


@pytest.mark.parametrize("limits", [ServerLimits(connections=3)], ids=["3 connections"])
def test_the_least_used_connections_are_ended(server, connect, caplog, monkeypatch):
    monkeypatch.setattr(connections, "LOOK_SECONDS", 1e9)  # looks by hand
    server.connections.stop()
    first, early, late, latest = (connect() for _ in range(4))
    core = first.mapping(DEVICE, 0x1000)
    first.put(core, ADDEND, 7)
    for client in (early, late, latest):
        client.exists("/proc/version")
    call, end = early.hang("/mmio.Mmio/read")
    until(lambda: server.calls.names.count("read") == 1)
    silent = socket.create_connection((server.host, server.port), 60)
    until(lambda: len(list(connections._connections(server.port))) == 5)
    caplog.clear()
    assert server.connections.look() == 2
    while silent.recv(100):  # what gRPC says first, and then the end
        pass
    until(lambda: len(list(connections._connections(server.port))) == 3)
    assert server.connections.look() == 0
    assert [r.getMessage() for r in caplog.records] == ["5 connections stood, at most 3 may: ended 2 that were idle"]
    assert first.get(core, ADDEND) == 7
    late.exists("/proc/version")  # on a new connection
    end.set()
    call.cancel()


VANISHES = textwrap.dedent("""
    import sys, time
    from pynq.remote import buffer_pb2
    from tests.overlay.virtual.serve.calls import DMA, Client
    from types import SimpleNamespace

    client = Client(SimpleNamespace(host="127.0.0.1", port=int(sys.argv[1])))
    target, source = client.allocate(4096), client.allocate(4096)
    dma = client.mapping(DMA, 0x10000)
    for base, key in ((0x30, target), (0x00, source)):
        client.put(dma, base, 1)
        client.put(dma, base + 0x18, client.address(key))
        client.put(dma, base + 0x28, 4096)

    def pieces():
        yield buffer_pb2.BufferWriteRequest(buffer_id=source, data=b"half")
        print(source, flush=True)
        time.sleep(60)

    client.buffers.write(pieces())
""")


def test_a_client_that_vanishes_in_the_middle_of_a_transfer(server, bit, connect, caplog):
    caplog.set_level("INFO")
    process = subprocess.Popen([sys.executable, "-c", VANISHES, str(server.port)], stdout=subprocess.PIPE, text=True)
    source = process.stdout.readline().strip()
    other = connect()
    until(lambda: "write" in server.calls.names)
    with held():
        other.read(source)
    assert server.board.busy
    assert server.board.ddr.used == 2 * 4096
    process.send_signal(signal.SIGKILL)
    process.wait()
    works(server, bit)
    assert server.board.ddr.used == 0
    texts = [re.sub(r"ipv4:[\d.]+:\d+", "CLIENT", text) for text in caplog.messages]
    assert re.fullmatch(HELD, texts.pop(0).removeprefix("CLIENT: "))
    with suppress(ValueError):  # gRPC may also take the end of the connection for the end of the request
        texts.remove("CLIENT: the client went away during write")
    assert texts == ["CLIENT: freed 2 buffers that other clients had left", f"CLIENT: loaded {bit.name}"]


def test_a_client_keeps_its_buffers_when_it_loads_again_and_none_of_another_one(server, bit, connect):
    first, second = connect(), connect()
    lost = second.allocate(8)
    second.leave()
    kept = first.allocate(8)
    first.load(bit2bin(bit.read_bytes()))
    first.address(kept)
    with refused("NOT_FOUND", f"buffer_id must be that of a buffer in use, got {lost!r}"):
        first.free(lost)
    assert first.get(first.mapping(DEVICE, 0x1000), IDENT) == 0x424C4D31


# Who has the board

HELD = (
    r"the board must be free, and (ipv4:[\d.]+:\d+|CLIENT) has it since \d\d:\d\d:\d\d and was silent for \d+ s: "
    r"it is free when that client disconnects or is silent for 60 s"
)


@contextmanager
def held():
    """Context in which a call is refused, because another client has the board."""
    with pytest.raises(grpc.RpcError) as e:
        yield
    assert e.value.code().name == "FAILED_PRECONDITION"
    assert re.fullmatch(HELD, e.value.details()), e.value.details()


def test_one_client_at_a_time_has_the_board(server, bit, connect):
    first, second = connect(), connect()
    binary = bit2bin(bit.read_bytes())
    first.load(binary)
    key = first.allocate(8)
    core = second.mapping(DEVICE, 0x1000)
    first.put(core, ADDEND, 9)
    of_key = (second.free, second.read, second.address, second.flush, second.invalidate)
    refused_calls = [
        lambda: second.load(binary),
        lambda: second.get(core, ADDEND),
        lambda: second.put(core, ADDEND, 8),
        lambda: second.allocate(8),
        *(partial(call, key) for call in of_key),
        lambda: second.write((key, b"1")),
        lambda: second.files.set_bitstream_attrs(remote_device_pb2.SetBitstreamAttrsRequest(binfile_name="x")),
        lambda: second.buffers.virtual_address(buffer_pb2.AddressRequest(buffer_id=key)),
        lambda: second.buffers.cacheable(buffer_pb2.CacheableRequest(buffer_id=key)),
    ]
    for call in refused_calls:
        with held():
            call()
    assert b"Linux" in second.read_file("/proc/version")  # what any client may know
    assert second.exists("/proc/version")
    assert (first.get(core, ADDEND), first.address(key) > 0) == (9, True)
    first.leave()
    second.load(binary)
    assert second.get(core, ADDEND) == 1


def test_the_client_that_has_the_board_is_named(server, connect):
    first, second = connect(), connect()
    first.allocate(8)
    with pytest.raises(grpc.RpcError) as e:
        second.allocate(8)
    assert f"and {server.holder.client} has it since" in e.value.details()
    assert server.holder.client.startswith("ipv4:127.0.0.1:")


@pytest.mark.parametrize("limits", [ServerLimits(idle_seconds=0.3)])
def test_who_was_silent_loses_the_board_and_must_load_again(server, bit, connect):
    first, second = connect(), connect()
    core = first.mapping(DEVICE, 0x1000)
    first.put(core, ADDEND, 9)
    name = server.holder.client
    until(lambda: server.holder.client is None)
    second.put(core, ADDEND, 5)
    until(lambda: server.holder.client is None)
    rule = "the bitstream must be loaded again, because another client has had the board"
    for _ in range(2):
        with refused("FAILED_PRECONDITION", f"{name}: {rule}"):
            first.get(core, ADDEND)
    assert second.get(core, ADDEND) == 5  # being refused, the first one didn't get the board
    second.leave()
    first.load(bit2bin(bit.read_bytes()))
    assert first.get(core, ADDEND) == 1


@pytest.mark.parametrize("limits", [ServerLimits(piece_seconds=0.3)])
def test_clients_that_send_half_a_file_block_nobody(server, bit, connect):
    """Eight of them: one gets the board until its call is cancelled, the others nothing."""
    binary = bit2bin(bit.read_bytes())
    end = threading.Event()

    def half():
        yield remote_device_pb2.WriteFileRequest(file_path="/lib/firmware/half.bin", data=binary[: len(binary) // 2])
        end.wait(60)

    calls = [connect().files.writefile.future(half()) for _ in range(8)]
    other = connect()
    assert b"Linux" in other.read_file("/proc/version")
    until(lambda: all(call.done() for call in calls))
    end.set()
    ends = sorted((call.code().name, bool(re.fullmatch(HELD, call.details()))) for call in calls)
    assert ("CANCELLED", False) in ends
    assert set(ends) <= {("CANCELLED", False), ("FAILED_PRECONDITION", True)}
    other.load(binary)  # their connections still stand
    assert other.get(other.mapping(DEVICE, 0x1000), IDENT) == 0x424C4D31


def test_who_has_the_board_is_not_disturbed(server, bit, connect):
    """Others ask for it all the time, and let calls hang."""
    first, others = connect(), [connect() for _ in range(4)]
    core = first.mapping(DEVICE, 0x1000)
    first.put(core, ADDEND, 7)
    ends = [other.hang("/mmio.Mmio/read") for other in others for _ in range(8)]
    until(lambda: server.calls.names.count("read") == 32)
    for _ in range(20):
        assert first.get(core, ADDEND) == 7
        with held():
            connect().allocate(8)
    for call, end in ends:
        end.set()
        call.cancel()


def test_connections_by_the_kernels_tables(monkeypatch, tmp_path):
    """Rows of an IPv4 server, of an IPv6 one, of a client's own end, and of a connection that the client has closed."""
    mapped = "0000000000000000FFFF00000100007F"
    tables = {
        "tcp": ["0100007F:1F1F 0100007F:9C40 01", "0100007F:9C42 0100007F:1F1F 01"],
        "tcp6": [f"{mapped}:1F1F {mapped}:9C41 01", f"{mapped}:1F1F {mapped}:9C43 08"],
    }
    for name, rows in tables.items():
        lines = [f"{n:4}: {row} 00000000:00000000 00:00000000 00000000" for n, row in enumerate(rows)]
        (tmp_path / name).write_text("\n".join(["  sl  local_address rem_address   st tx_queue", *lines, ""]))
    monkeypatch.setattr(holder, "TABLES", (str(tmp_path / "tcp"), str(tmp_path / "tcp6")))
    answers = {port: holder.connected(f"ipv4:127.0.0.1:{port}", 0x1F1F) for port in range(0x9C40, 0x9C45)}
    assert answers == {0x9C40: True, 0x9C41: True, 0x9C42: False, 0x9C43: False, 0x9C44: False}
    assert holder.connected("unix:somewhere", 0x1F1F)
    monkeypatch.setattr(holder, "TABLES", (str(tmp_path / "absent"),))
    assert holder.connected("ipv4:127.0.0.1:40000", 0x1F1F)


def test_a_second_server_on_the_port(server, bit):
    message = f"{server.host}:{server.port}: the address must be this machine's and free, and isn't"
    with pytest.raises(OSError, match=rf"^{re.escape(message)}$"):
        Server(bit, port=server.port)


def test_it_listens_on_loopback_only(server):
    """127.0.0.2 is this machine, too: an open port would answer there."""
    socket.create_connection((server.host, server.port), 60).close()
    with pytest.raises(OSError, match=r"refused|assign|timed out"):
        socket.create_connection(("127.0.0.2", server.port), 2)
