"""Clients that come and go, some of them badly: the next one finds the server as it was."""

import http.client
import random
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time
from contextlib import suppress

import numpy as np
import pynq
import pytest
from pynq.pl_server.embedded_device import bit2bin

from bitloom.overlay.virtual.serve.server import Server
from tests.overlay.platform.manifest import ADDEND, IDENT
from tests.overlay.virtual.remote import remote_device
from tests.overlay.virtual.transfer import transfer

from .calls import address, allocate, free, get, load, mapping, put, read, refused, write

DEVICE, DMA = 0xA001_0000, 0xA000_0000


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


def test_a_browser(server, bit):
    connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
    connection.request("GET", "/")
    with pytest.raises((http.client.HTTPException, OSError)):
        connection.getresponse()
    works(server, bit)


def test_connections_that_say_nothing(server, bit):
    wires = [socket.create_connection((server.host, server.port), 60) for _ in range(50)]
    works(server, bit)
    for wire in wires:
        wire.close()
    works(server, bit)


VANISHES = textwrap.dedent("""
    import sys, time
    import grpc
    from tests.overlay.virtual.serve.calls import *
    from tests.overlay.virtual.serve.conftest import Client
    from types import SimpleNamespace

    client = Client(SimpleNamespace(host="127.0.0.1", port=int(sys.argv[1])))
    target, source = allocate(client, 4096), allocate(client, 4096)
    dma = mapping(client, 0xA000_0000, 0x10000)
    for base, key in ((0x30, target), (0x00, source)):
        put(client, dma, base, 1)
        put(client, dma, base + 0x18, address(client, key))
        put(client, dma, base + 0x28, 4096)

    def pieces():
        yield buffer_pb2.BufferWriteRequest(buffer_id=source, data=b"half")
        print(source, flush=True)
        time.sleep(60)

    client.buffers.write(pieces())
""")


def test_a_client_that_vanishes_in_the_middle_of_a_transfer(server, bit, connect, caplog):
    caplog.set_level("INFO")
    process = subprocess.Popen([sys.executable, "-c", VANISHES, str(server.port)], stdout=subprocess.PIPE, text=True)
    source, other = process.stdout.readline().strip(), connect()
    end = time.monotonic() + 120
    while read(other, source)[:4] != b"half":
        assert time.monotonic() < end
    assert server.board.busy
    assert server.board.ddr.used == 2 * 4096
    process.send_signal(signal.SIGKILL)
    process.wait()
    works(server, bit)
    assert server.board.ddr.used == 0
    texts = [re.sub(r"ipv4:[\d.]+:\d+", "CLIENT", text) for text in caplog.messages]
    with suppress(ValueError):  # gRPC may also take the end of the connection for the end of the request
        texts.remove("CLIENT: the client went away during write")
    assert texts == ["CLIENT: freed 2 buffers that other clients had left", f"CLIENT: loaded {bit.name}"]


def test_without_a_download_the_next_client_finds_things_as_they_were_left(server, connect):
    first, second = connect(), connect()
    put(first, mapping(first, DEVICE, 0x1000), ADDEND, 9)
    key = allocate(first, 8)
    write(first, (key, b"abcdefgh"))
    first.channel.close()
    assert get(second, mapping(second, DEVICE, 0x1000), ADDEND) == 9
    assert read(second, key) == b"abcdefgh"


def test_a_client_keeps_its_buffers_when_it_loads_again(server, bit, connect):
    first, second = connect(), connect()
    kept, lost = allocate(first, 8), allocate(second, 8)
    load(first, bit2bin(bit.read_bytes()))
    address(first, kept)
    with refused("NOT_FOUND", f"buffer_id must be that of a buffer in use, got {lost!r}"):
        free(second, lost)
    assert get(second, mapping(second, DEVICE, 0x1000), IDENT) == 0x424C4D31


def test_a_second_server_on_the_port(server, bit):
    message = f"{server.host}:{server.port}: the address must be this machine's and free, and isn't"
    with pytest.raises(OSError, match=rf"^{re.escape(message)}$"):
        Server(bit, port=server.port)


def test_it_listens_on_loopback_only(server):
    """127.0.0.2 is this machine, too: an open port would answer there."""
    socket.create_connection((server.host, server.port), 60).close()
    with pytest.raises(OSError, match=r"refused|assign|timed out"):
        socket.create_connection(("127.0.0.2", server.port), 2)
