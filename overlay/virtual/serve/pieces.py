"""Requests that a client sends in pieces are put together, within bounds of size."""

from collections.abc import Iterable, Iterator
from typing import Any

from grpc import StatusCode

from .errors import Refused


def first_and_rest(requests: Iterator[Any], key: str) -> tuple[str, Iterable[bytes]]:
    """Read the first piece of a request.

    Parameters
    ----------
    requests
        The pieces.
    key
        Field of a piece that names the target; it must be the same in all pieces.

    Returns
    -------
    tuple
        Value of the first piece's field, and an iterable of the data of all pieces.

    Raises
    ------
    Refused
        If no piece comes, and from the iterable if a piece is for something else.
    """
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
                    f"{key}: all pieces must be for {name[:40]!r}, got one for {getattr(piece, key)[:40]!r}",
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
