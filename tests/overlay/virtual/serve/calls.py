"""A client of the services, with a method for each call, and what its tests look at."""

import threading
import time
from contextlib import contextmanager

import grpc
import pytest
from pynq.remote import (
    buffer_pb2,
    buffer_pb2_grpc,
    gpio_pb2_grpc,
    mmio_pb2,
    mmio_pb2_grpc,
    remote_device_pb2,
    remote_device_pb2_grpc,
)

DEVICE, DMA = 0xA001_0000, 0xA000_0000
"""Addresses of the core and of its DMA on a ZynqMP board."""
FIRMWARE, FLAGS = "/sys/class/fpga_manager/fpga0/firmware", "/sys/class/fpga_manager/fpga0/flags"


@contextmanager
def refused(code: str, details: str):
    """Context in which a call must end with this status and exactly these details."""
    with pytest.raises(grpc.RpcError) as e:
        yield
    assert (e.value.code().name, e.value.details()) == (code, details)


def until(done):
    """Wait until ``done()``."""
    end = time.monotonic() + 120
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


class Client:
    """The stubs of all services, on one connection, and calls of them."""

    def __init__(self, server):
        own = [("grpc.use_local_subchannel_pool", 1)]  # else clients in one process share a connection
        self.server = server
        self.channel = grpc.insecure_channel(f"{server.host}:{server.port}", own)
        self.files = remote_device_pb2_grpc.RemoteDeviceStub(self.channel)
        self.registers = mmio_pb2_grpc.MmioStub(self.channel)
        self.buffers = buffer_pb2_grpc.RemoteBufferStub(self.channel)
        self.gpio = gpio_pb2_grpc.GpioStub(self.channel)

    def leave(self):
        """Close the connection, and see the board free if this client had it."""
        self.channel.close()
        until(lambda: self.server.holder.client is None)

    def allocate(self, size: int) -> str:
        return self.buffers.allocate(buffer_pb2.AllocateRequest(size=size, dtype="|u1", cacheable=True)).buffer_id

    def write(self, *pieces: tuple[str, bytes]) -> None:
        """Pieces of one write: (buffer, data)."""
        self.buffers.write(buffer_pb2.BufferWriteRequest(buffer_id=key, data=data) for key, data in pieces)

    def read(self, key: str) -> bytes:
        return b"".join(piece.data for piece in self.buffers.read(buffer_pb2.BufferReadRequest(buffer_id=key)))

    def flush(self, key: str) -> None:
        self.buffers.flush(buffer_pb2.FlushRequest(buffer_id=key))

    def invalidate(self, key: str) -> None:
        self.buffers.invalidate(buffer_pb2.InvalidateRequest(buffer_id=key))

    def free(self, key: str) -> None:
        self.buffers.freebuffer(buffer_pb2.FreeBufferRequest(buffer_id=key))

    def address(self, key: str) -> int:
        return self.buffers.physical_address(buffer_pb2.AddressRequest(buffer_id=key)).address

    def mapping(self, base: int, length: int) -> str:
        return self.registers.get_mmio(mmio_pb2.GetMmioRequest(base_addr=base, length=length)).mmio_id

    def get(self, mmio: str, offset: int, length: int = 4) -> int:
        return self.registers.read(mmio_pb2.ReadRequest(mmio_id=mmio, offset=offset, length=length)).data

    def put(self, mmio: str, offset: int, data: bytes | int) -> None:
        data = data.to_bytes(4, "little") if isinstance(data, int) else data
        self.registers.write(mmio_pb2.WriteRequest(mmio_id=mmio, offset=offset, data=data))

    def write_file(self, *pieces: tuple[str, bytes]) -> None:
        self.files.writefile(remote_device_pb2.WriteFileRequest(file_path=path, data=data) for path, data in pieces)

    def read_file(self, path: str) -> bytes:
        return b"".join(p.data for p in self.files.readfile(remote_device_pb2.ReadFileRequest(file_path=path)))

    def exists(self, path: str, timeout: float | None = None) -> bool:
        return self.files.existsfile(remote_device_pb2.ExistsFileRequest(file_path=path), timeout=timeout).exists

    def load(self, binary: bytes, name: str = "loop.bin") -> None:
        """As pynq downloads a bitstream."""
        self.write_file((f"/lib/firmware/{name}", binary))
        self.write_file((FLAGS, b"0"))
        self.write_file((FIRMWARE, name.encode()))

    def hang(self, path):
        """A call of any method, for which no request comes."""
        end = threading.Event()

        def nothing():
            end.wait(30)
            yield from ()

        call = self.channel.stream_unary(path)
        return call.future(nothing()), end
