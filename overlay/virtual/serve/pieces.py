"""What a client sends in pieces, put together within bounds: of size, and of time."""

import threading
from collections.abc import Iterable, Iterator
from typing import Any

import grpc
from grpc import StatusCode

from .errors import Refused

MESSAGE_BYTES = 4 << 20
"""Longest message, in either direction; pynq sends files and buffers in pieces of 2 MiB."""
PIECE_BYTES = 1 << 20
"""What we send at a time."""
SECONDS = 60.0
"""A request that is sent in pieces must have come after this time, so that it can't keep a thread for ever."""


def first_and_rest(requests: Iterator[Any], context: grpc.ServicerContext, key: str) -> tuple[str, Iterable[bytes]]:
    """(what the first piece's field ``key`` says, the data of all pieces). Refused if a piece says something else.

    The iterable raises grpc.RpcError where the client goes away or takes more than SECONDS.
    """
    timer = threading.Timer(SECONDS, context.cancel)
    timer.daemon = True
    timer.start()
    context.add_callback(timer.cancel)
    first = next(requests, None)
    if first is None:
        raise Refused(StatusCode.INVALID_ARGUMENT, f"{key}: at least one piece must come, got none")
    name = getattr(first, key)

    def pieces() -> Iterator[bytes]:
        yield first.data
        for piece in requests:
            if getattr(piece, key) != name:
                raise Refused(
                    StatusCode.INVALID_ARGUMENT,
                    f"{key}: all pieces must be for {name!r}, got one for {getattr(piece, key)!r}",
                )
            yield piece.data

    return name, pieces()


def gather(pieces: Iterable[bytes], limit: int, what: str) -> bytes:
    """All data. Refused as soon as there is more than ``limit`` bytes."""
    out = bytearray()
    for piece in pieces:
        if len(out) + len(piece) > limit:
            raise Refused(
                StatusCode.OUT_OF_RANGE, f"{what}: at most {limit} bytes must come, got {len(out) + len(piece)}"
            )
        out += piece
    return bytes(out)


def split(data: memoryview) -> Iterator[bytes]:
    """``data`` in pieces, at least one."""
    for begin in range(0, max(1, len(data)), PIECE_BYTES):
        yield bytes(data[begin : begin + PIECE_BYTES])
