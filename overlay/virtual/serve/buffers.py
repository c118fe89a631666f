"""Service RemoteBuffer: memory that the DMA reaches.

A client writes to what the processor sees of a buffer, and only a flush brings that to the DDR, as on a board
(board/memory.py). The protocol knows no sessions: what a vanished client leaves is freed when another one loads a
bitstream (``keep_only``). All calls are for the client that has the board (holder.py).
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import grpc
from grpc import StatusCode
from pynq.remote import buffer_pb2 as pb
from pynq.remote import buffer_pb2_grpc

from bitloom.hls_gen.design.dma import LENGTH_BITS
from bitloom.overlay.virtual.board.memory import CachedBuffer, Ddr

from .errors import Refused
from .holder import Holder
from .limits import PIECE_BYTES
from .pieces import first_and_rest

MOST_BUFFERS = 256
"""Buffers in use at most, of all clients together."""
MOST_BYTES = 1 << LENGTH_BITS
"""Bytes of a buffer at most: what one DMA transfer reaches."""


class BufferService(buffer_pb2_grpc.RemoteBufferServicer):
    """Buffers in ``ddr``, by ids that are never used again, for the client that ``holder`` names."""

    def __init__(self, ddr: Ddr, holder: Holder):
        self._ddr = ddr
        self._holder = holder
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._buffers: dict[str, tuple[str, CachedBuffer]] = {}  # id -> (client, buffer)

    def keep_only(self, client: str) -> int:
        """Free the buffers of all other clients, and return how many there were."""
        with self._lock:
            others = [key for key, (owner, _) in self._buffers.items() if owner != client]
            for key in others:
                self._buffers.pop(key)[1].free()
        return len(others)

    def allocate(self, request: pb.AllocateRequest, context: grpc.ServicerContext) -> pb.AllocateResponse:
        """A new buffer."""
        self._holder.claim(context.peer())
        if not 1 <= request.size <= MOST_BYTES:
            rule = f"size must be 1..{MOST_BYTES} bytes"
            raise Refused(StatusCode.INVALID_ARGUMENT, f"allocate: {rule}, got {request.size}")
        with self._lock:
            if len(self._buffers) >= MOST_BUFFERS:
                rule = f"at most {MOST_BUFFERS} buffers must be in use"
                raise Refused(StatusCode.RESOURCE_EXHAUSTED, f"allocate: {rule}, got one more")
            key = f"buffer {next(self._numbers)}"
            self._buffers[key] = context.peer(), CachedBuffer(self._ddr, request.size)
        return pb.AllocateResponse(buffer_id=key)

    def freebuffer(self, request: pb.FreeBufferRequest, context: grpc.ServicerContext) -> pb.FreeBufferResponse:
        """Give a buffer back."""
        with self._found(context.peer(), request.buffer_id) as buffer:
            buffer.free()
            del self._buffers[request.buffer_id]
        return pb.FreeBufferResponse()

    def write(self, requests: Iterator[pb.BufferWriteRequest], context: grpc.ServicerContext) -> pb.BufferWriteResponse:
        """The processor writes, from the buffer's first byte on."""
        client = context.peer()
        self._holder.claim(client)  # before anything is waited for
        key, pieces = first_and_rest(requests, "buffer_id")
        end = 0
        for piece in pieces:
            begin = end
            end = end + len(piece)
            with self._found(client, key) as buffer:
                if end > buffer.nbytes:
                    rule = f"at most {buffer.nbytes} bytes must come"
                    raise Refused(StatusCode.OUT_OF_RANGE, f"{key}: {rule}, got {end}")
                buffer.host[begin:end] = memoryview(piece)
        return pb.BufferWriteResponse()

    def read(self, request: pb.BufferReadRequest, context: grpc.ServicerContext) -> Iterator[pb.BufferReadResponse]:
        """The processor reads all of a buffer; each piece is read after the client has taken the piece before."""
        client = context.peer()
        begin = 0
        end = 1
        while begin < end:
            with self._found(client, request.buffer_id) as buffer:
                end = buffer.nbytes
                piece = buffer.host[begin : begin + PIECE_BYTES].tobytes()
            yield pb.BufferReadResponse(data=piece)
            begin += PIECE_BYTES

    def flush(self, request: pb.FlushRequest, context: grpc.ServicerContext) -> pb.FlushResponse:
        """Copy from what the processor sees to the DDR."""
        with self._found(context.peer(), request.buffer_id) as buffer:
            buffer.flush(0, buffer.nbytes)
        return pb.FlushResponse()

    def invalidate(self, request: pb.InvalidateRequest, context: grpc.ServicerContext) -> pb.InvalidateResponse:
        """Copy from the DDR to what the processor sees."""
        with self._found(context.peer(), request.buffer_id) as buffer:
            buffer.invalidate(0, buffer.nbytes)
        return pb.InvalidateResponse()

    def physical_address(self, request: pb.AddressRequest, context: grpc.ServicerContext) -> pb.AddressResponse:
        """The address at which the DMA finds a buffer."""
        with self._found(context.peer(), request.buffer_id) as buffer:
            return pb.AddressResponse(address=buffer.address)

    virtual_address = physical_address

    def cacheable(self, request: pb.CacheableRequest, context: grpc.ServicerContext) -> pb.CacheableResponse:
        """Whether a buffer is cached: all are, pynq asks for no others."""
        with self._found(context.peer(), request.buffer_id):
            return pb.CacheableResponse(cacheable=True)

    @contextmanager
    def _found(self, client: str, key: str) -> Iterator[CachedBuffer]:
        """The buffer of an id, for a client that has the board or gets it; no other call finds one within the block.
        Refused where there is none."""
        self._holder.claim(client)
        with self._lock:
            if key not in self._buffers:
                raise Refused(StatusCode.NOT_FOUND, f"buffer_id must be that of a buffer in use, got {key[:40]!r}")
            yield self._buffers[key][1]
