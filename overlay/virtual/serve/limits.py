"""How much a server gives its clients: numbers and seconds, each said once."""

from dataclasses import dataclass

MESSAGE_BYTES = 4 << 20
"""Bytes of the longest message, in either direction; pynq sends files and buffers in pieces of 2 MiB."""
PIECE_BYTES = 1 << 20
"""Bytes that the server sends at a time."""


@dataclass(frozen=True)
class ServerLimits:
    """Bounds of a server's time and work.

    Raises
    ------
    ValueError
        If one of them is not above 0.
    """

    calls: int = 64
    """Calls that run at the same time, each on a thread of its own; more are refused."""
    calls_of_client: int = 8
    """Calls of one client that run at the same time. pynq itself makes one after another."""
    connections: int = 128
    """Connections that stand at the same time; if there are more, idle ones are ended, the least used first."""
    piece_seconds: float = 5.0
    """Time that the server waits for the next piece of a request, or for the client to take a piece of an answer."""
    request_seconds: float = 60.0
    """Time within which all pieces of a request must come, and all pieces of an answer be taken."""
    idle_seconds: float = 60.0
    """Time without a call after which the client that has the board loses it to the next client that asks."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 < value < float("inf"):
                raise ValueError(f"limits: {name} must be a number above 0, got {value}")
