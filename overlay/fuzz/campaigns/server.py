"""Campaign server: random requests of several clients to ``bitloom serve``.

Every call comes to its end with an answer or with one line of ours, and afterwards the next client finds a server that
works. What no code of the server foresaw, gRPC answers with UNKNOWN: that is a fault.
"""

import tempfile
import time
import weakref
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import grpc
from pynq.pl_server.embedded_device import bit2bin
from pynq.remote import buffer_pb2, buffer_pb2_grpc, mmio_pb2, mmio_pb2_grpc, remote_device_pb2, remote_device_pb2_grpc

from bitloom.hls_gen.design.registers import IDENT
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.fuzz.campaign import Case
from bitloom.overlay.fuzz.designs import SINGLE
from bitloom.overlay.fuzz.pick import Pick
from bitloom.overlay.virtual.serve.errors import LOG
from bitloom.overlay.virtual.serve.files import FIRMWARE, FLAGS, STORE
from bitloom.overlay.virtual.serve.server import Server
from bitloom.overlay.virtual.simulation_overlay import write_simulation_overlay

CLIENTS = 3
SECONDS = 120.0
"""Seconds after which a call counts as hanging."""
FAULTS = {"UNKNOWN", "INTERNAL", "UNAVAILABLE", "DEADLINE_EXCEEDED"}
"""Status codes that no request should get; the last one is gRPC's own, for a call that hangs."""
OWN_TIMEOUT = "no progress for"
"""Messages of the simulation with which the code DEADLINE_EXCEEDED is an answer."""
SERVICES = {
    "files": (remote_device_pb2, remote_device_pb2_grpc.RemoteDeviceStub),
    "registers": (mmio_pb2, mmio_pb2_grpc.MmioStub),
    "buffers": (buffer_pb2, buffer_pb2_grpc.RemoteBufferStub),
}
METHODS = {
    ("files", "existsfile"): "ExistsFileRequest",
    ("files", "readfile"): "ReadFileRequest",
    ("files", "writefile"): "WriteFileRequest",
    ("files", "set_bitstream_attrs"): "SetBitstreamAttrsRequest",
    ("registers", "get_mmio"): "GetMmioRequest",
    ("registers", "read"): "ReadRequest",
    ("registers", "write"): "WriteRequest",
    ("buffers", "allocate"): "AllocateRequest",
    ("buffers", "freebuffer"): "FreeBufferRequest",
    ("buffers", "write"): "BufferWriteRequest",
    ("buffers", "read"): "BufferReadRequest",
    ("buffers", "flush"): "FlushRequest",
    ("buffers", "invalidate"): "InvalidateRequest",
    ("buffers", "physical_address"): "AddressRequest",
    ("buffers", "cacheable"): "CacheableRequest",
}
"""Message of each method's request."""
IN_PIECES = {("files", "writefile"), ("buffers", "write")}
DEVICE = "0xa0010000+0x1000"
DMA = "0xa0000000+0x10000"
LAST_BUFFER = "the last buffer"
TEXTS = (FIRMWARE, FLAGS, f"{STORE}x.bin", "x.bin", STORE, "/proc/version", "/etc/passwd", "../x", "", "\0", "x" * 3000)
IDS = (DEVICE, DMA, "0xffffffffffffffff+0xffffffffffffffff", "0x0+0x0", *([LAST_BUFFER] * 6))
NUMBERS = (0, 1, 2, 3, 4, 8, 0x20, 0x28, 0x30, 0x48, 0x58, 64, 4096, 0xFFF, 1 << 20, (1 << 31) - 1)


class Stubs:
    """A client."""

    def __init__(self, server: Server):
        self.channel = grpc.insecure_channel(
            f"{server.host}:{server.port}", [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]
        )
        self._stubs = {name: stub(self.channel) for name, (_, stub) in SERVICES.items()}

    def call(self, service: str, method: str, pieces: list[dict[str, Any]]) -> Any:
        """Make a call and take all of its answer; grpc.RpcError where it is refused."""
        kind = getattr(SERVICES[service][0], METHODS[service, method])
        messages: Iterator[Any] = (kind(**piece) for piece in pieces)
        request = messages if (service, method) in IN_PIECES else next(messages)
        answer = getattr(self._stubs[service], method)(request, timeout=SECONDS)
        streamed = (service, method) in (("files", "readfile"), ("buffers", "read"))
        return b"".join(part.data for part in answer) if streamed else answer


@contextmanager
def _nothing_logged() -> Iterator[None]:
    """The server logs nothing of requests that are meant to be wrong."""
    before = LOG.level
    LOG.setLevel("CRITICAL")
    try:
        yield
    finally:
        LOG.setLevel(before)


class ServerCampaign:
    """Random requests."""

    def case(self, pick: Pick) -> Case:
        """Calls, each of one of the clients."""
        return {"calls": [_call(pick) for _ in range(pick.integer(1, 12))]}

    @_nothing_logged()
    def run(self, case: Case) -> tuple[str, str]:
        """ "answered" if every call was answered and the server works afterwards."""
        server = running()
        clients = [Stubs(server) for _ in range(CLIENTS)]
        last = ""
        try:
            for number, (who, service, method, pieces) in enumerate(case["calls"]):
                try:
                    answer = clients[who].call(service, method, [_filled(piece, last) for piece in pieces])
                except grpc.RpcError as error:
                    what = _fault(error)
                    if what:
                        return "fault", f"call {number}, {service}.{method}: {what}"
                else:
                    last = answer.buffer_id if method == "allocate" else last
        finally:
            for client in clients:
                client.channel.close()
        return ("answered", "") if works(server) else ("broken", "the next client must find a server that works")


def _call(pick: Pick) -> list[Any]:
    """A client's number, service, method, and fields of the request's pieces."""
    service, method = pick.of(list(METHODS))
    kind = getattr(SERVICES[service][0], METHODS[service, method])
    most = 3 if (service, method) in IN_PIECES else 1
    request = {field.name: _value(pick, field) for field in kind.DESCRIPTOR.fields}
    keys = {key: value for key, value in request.items() if key in ("file_path", "buffer_id")}  # mostly of all pieces
    pieces = [request]
    for _ in range(pick.integer(1, most) - 1):
        pieces.append({**{f.name: _value(pick, f) for f in kind.DESCRIPTOR.fields}, **(keys if pick.flip() else {})})
    return [pick.integer(0, CLIENTS - 1) if pick.flip() else 0, service, method, pieces]


def _value(pick: Pick, field: Any) -> Any:
    """A value for a field of a message; bytes as base64 in a list."""
    if field.type == field.TYPE_BOOL:
        return pick.flip()
    if field.type == field.TYPE_STRING:
        return pick.of(IDS) if field.name.endswith("_id") else pick.of(TEXTS)
    if field.type == field.TYPE_BYTES:
        whole = bytes(pick.integer(0, 255) for _ in range(pick.of([1, 4, 4, 4, 8, 100])))
        return [b64encode(pick.of([whole, b"", b"0", b"x.bin", whole * 50])).decode()]
    return pick.of([*NUMBERS, pick.integer(0, (1 << 31) - 1)])


def _filled(piece: Mapping[str, Any], buffer: str) -> dict[str, Any]:
    """Fields as gRPC takes them; LAST_BUFFER becomes a buffer's id."""
    values = {key: b64decode(value[0]) if isinstance(value, list) else value for key, value in piece.items()}
    return {key: buffer if value == LAST_BUFFER else value for key, value in values.items()}


def _fault(error: grpc.RpcError) -> str:
    """One line that says what is wrong with a refusal; "" if nothing is."""
    code = error.code().name
    details = error.details() or ""
    if code in FAULTS and not (code == "DEADLINE_EXCEEDED" and OWN_TIMEOUT in details):
        return f"must be answered or refused with a rule, got {code}: {details[:200]!r}"
    if not details or "\n" in details or len(details) > 1000:
        return f"must be refused in one line, got {details[:200]!r}"
    return ""


def works(server: Server) -> bool:
    """Whether a new client can load the overlay, read who it is, and use a buffer."""
    end = time.monotonic() + SECONDS
    while server.holder.client is not None and time.monotonic() < end:  # the connections that were closed end soon
        time.sleep(0.005)
    client = Stubs(server)
    binary = bit2bin(server.bit.read_bytes())
    try:
        for path, data in ((f"{STORE}good.bin", binary), (FLAGS, b"0"), (FIRMWARE, b"good.bin")):
            client.call("files", "writefile", [{"file_path": path, "data": data}])
        ident = client.call("registers", "read", [{"mmio_id": DEVICE, "offset": 0, "length": 4}]).data
        key = client.call("buffers", "allocate", [{"size": 4, "dtype": "u1", "cacheable": True}]).buffer_id
        client.call("buffers", "write", [{"buffer_id": key, "data": b"good"}])
        return ident == IDENT and client.call("buffers", "read", [{"buffer_id": key}]) == b"good"
    except grpc.RpcError:
        return False
    finally:
        client.channel.close()


@lru_cache(maxsize=1)
def running() -> Server:
    """The server that a process attacks; it ends with the process."""
    folder = tempfile.TemporaryDirectory(prefix="bitloom-fuzz-")
    generated = generate(SINGLE["k3_g5"], checked=False)
    server = Server(write_simulation_overlay(folder.name, generated.manifest, generated.text), port=0)
    weakref.finalize(server, folder.cleanup)
    return server
