"""What a client sends in pieces, put together within bounds of size and of time."""

import threading
from collections.abc import Iterable, Iterator
from typing import Any

import grpc
from grpc import StatusCode

from .errors import Refused

MESSAGE_BYTES = 4 << 20
"""Bytes of the longest message, in either direction; pynq sends files and buffers in pieces of 2 MiB."""
PIECE_BYTES = 1 << 20
"""Bytes that the server sends at a time."""
SECONDS = 60.0
"""A request that is sent in pieces must have come after this time, so that it can't keep a thread for ever."""


def first_and_rest(requests: Iterator[Any], context: grpc.ServicerContext, key: str) -> tuple[str, Iterable[bytes]]:
    """Read the first piece of a request.

    Parameters
    ----------
    requests
        The pieces, as gRPC gives them.
    context
        Of the call; cancelled after SECONDS.
    key
        Field of a piece that says what it is for, which all pieces must agree on.

    Returns
    -------
    tuple
        What the first piece's field says, and an iterable of the data of all pieces. The iterable raises grpc.RpcError
        where the client goes away or takes longer than SECONDS.

    Raises
    ------
    Refused
        If no piece comes, and from the iterable if a piece is for something else.
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
    """All pieces as one; Refused as soon as there are more than ``limit`` bytes."""
    out = bytearray()
    for piece in pieces:
        if len(out) + len(piece) > limit:
            raise Refused(
                StatusCode.OUT_OF_RANGE, f"{what}: at most {limit} bytes must come, got {len(out) + len(piece)}"
            )
        out += piece
    return bytes(out)


def split(data: memoryview) -> Iterator[bytes]:
    """``data`` in pieces of PIECE_BYTES; at least one piece."""
    for begin in range(0, max(1, len(data)), PIECE_BYTES):
        yield bytes(data[begin : begin + PIECE_BYTES])
