"""What the tests of the services say to a server, and how they look at its answers."""

import threading
from contextlib import contextmanager

import grpc
import pytest
from pynq.remote import buffer_pb2, mmio_pb2, remote_device_pb2

DEVICE, DMA = 0xA001_0000, 0xA000_0000
"""Addresses of the core and of its DMA on a ZynqMP board."""
FIRMWARE, FLAGS = "/sys/class/fpga_manager/fpga0/firmware", "/sys/class/fpga_manager/fpga0/flags"


@contextmanager
def refused(code: str, details: str):
    """Context in which a call must end with this status and exactly these details."""
    with pytest.raises(grpc.RpcError) as e:
        yield
    assert (e.value.code().name, e.value.details()) == (code, details)


def allocate(client, size: int) -> str:
    return client.buffers.allocate(buffer_pb2.AllocateRequest(size=size, dtype="|u1", cacheable=True)).buffer_id


def write(client, *pieces: tuple[str, bytes]) -> None:
    """Pieces of one write: (buffer, data)."""
    client.buffers.write(buffer_pb2.BufferWriteRequest(buffer_id=key, data=data) for key, data in pieces)


def read(client, key: str) -> bytes:
    return b"".join(piece.data for piece in client.buffers.read(buffer_pb2.BufferReadRequest(buffer_id=key)))


def flush(client, key: str) -> None:
    client.buffers.flush(buffer_pb2.FlushRequest(buffer_id=key))


def invalidate(client, key: str) -> None:
    client.buffers.invalidate(buffer_pb2.InvalidateRequest(buffer_id=key))


def free(client, key: str) -> None:
    client.buffers.freebuffer(buffer_pb2.FreeBufferRequest(buffer_id=key))


def address(client, key: str) -> int:
    return client.buffers.physical_address(buffer_pb2.AddressRequest(buffer_id=key)).address


def mapping(client, base: int, length: int) -> str:
    return client.registers.get_mmio(mmio_pb2.GetMmioRequest(base_addr=base, length=length)).mmio_id


def get(client, mmio: str, offset: int, length: int = 4) -> int:
    return client.registers.read(mmio_pb2.ReadRequest(mmio_id=mmio, offset=offset, length=length)).data


def put(client, mmio: str, offset: int, data: bytes | int) -> None:
    data = data.to_bytes(4, "little") if isinstance(data, int) else data
    client.registers.write(mmio_pb2.WriteRequest(mmio_id=mmio, offset=offset, data=data))


def write_file(client, *pieces: tuple[str, bytes]) -> None:
    client.files.writefile(remote_device_pb2.WriteFileRequest(file_path=path, data=data) for path, data in pieces)


def read_file(client, path: str) -> bytes:
    return b"".join(p.data for p in client.files.readfile(remote_device_pb2.ReadFileRequest(file_path=path)))


def exists(client, path: str, timeout: float | None = None) -> bool:
    return client.files.existsfile(remote_device_pb2.ExistsFileRequest(file_path=path), timeout=timeout).exists


def load(client, binary: bytes, name: str = "loop.bin") -> None:
    """As pynq downloads a bitstream."""
    write_file(client, (f"/lib/firmware/{name}", binary))
    write_file(client, (FLAGS, b"0"))
    write_file(client, (FIRMWARE, name.encode()))


def hang(client, path):
    """A call of any method, for which no request comes."""
    end = threading.Event()

    def nothing():
        end.wait(30)
        yield from ()

    call = client.channel.stream_unary(path)
    return call.future(nothing()), end
