"""Service Mmio: registers, 32 bits at a time.

A mapping's id says base and length. So nothing has to be kept for a mapping, and nothing is left when a client
vanishes.
"""

import re

import grpc
from grpc import StatusCode
from pynq.remote import mmio_pb2, mmio_pb2_grpc

from bitloom.overlay.virtual.board.board import VirtualBoard

from .errors import Refused
from .holder import Holder

ID = re.compile(r"0x([0-9a-f]{1,16})\+0x([0-9a-f]{1,16})")
MOST_WORDS = 1024
"""Registers in one write: a page."""


class RegisterService(mmio_pb2_grpc.MmioServicer):
    """Reads and writes of a virtual board's registers, for the client that ``holder`` names.

    Offsets are checked here against the mapping, addresses by the board.
    """

    def __init__(self, board: VirtualBoard, holder: Holder):
        self._board = board
        self._holder = holder

    def get_mmio(self, request: mmio_pb2.GetMmioRequest, _: grpc.ServicerContext) -> mmio_pb2.GetMmioResponse:
        """A mapping of any range, as on a board: only an access shows whether something is there."""
        mmio_id = f"0x{request.base_addr:x}+0x{request.length:x}"
        return mmio_pb2.GetMmioResponse(status=True, mmio_id=mmio_id)

    def read(self, request: mmio_pb2.ReadRequest, context: grpc.ServicerContext) -> mmio_pb2.ReadResponse:
        """A register, or its low bytes."""
        self._holder.claim(context.peer())
        if request.length not in (1, 2, 4):
            raise Refused(StatusCode.INVALID_ARGUMENT, f"read: length must be 1, 2 or 4 bytes, got {request.length}")
        value = self._board.read(_address(request, 4))
        return mmio_pb2.ReadResponse(status=True, data=value & (1 << 8 * request.length) - 1)

    def write(self, request: mmio_pb2.WriteRequest, context: grpc.ServicerContext) -> mmio_pb2.WriteResponse:
        """Write registers one after another."""
        self._holder.claim(context.peer())
        count = len(request.data)
        if count % 4 or not 4 <= count <= 4 * MOST_WORDS:
            rule = f"data must be 1 to {MOST_WORDS} words of 4 bytes"
            raise Refused(StatusCode.INVALID_ARGUMENT, f"write: {rule}, got {count} bytes")
        address = _address(request, count)
        for begin in range(0, count, 4):
            self._board.write(address + begin, int.from_bytes(request.data[begin : begin + 4], "little"))
        return mmio_pb2.WriteResponse(status=True)


def _address(request: "mmio_pb2.ReadRequest | mmio_pb2.WriteRequest", nbytes: int) -> int:
    """Physical address of an access of ``nbytes``; Refused where it leaves its mapping."""
    match = ID.fullmatch(request.mmio_id)
    if not match:
        rule = f"mmio_id must be one that get_mmio gave, got {request.mmio_id[:40]!r}"
        raise Refused(StatusCode.NOT_FOUND, rule)
    base, length = (int(text, 16) for text in match.groups())
    if request.offset + nbytes > length:
        rule = f"offset + {nbytes} must be <= {length}, the mapping's length"
        raise Refused(StatusCode.OUT_OF_RANGE, f"0x{base:X}: {rule}, got offset {request.offset}")
    return base + request.offset
