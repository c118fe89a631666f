"""Who has the board: one client at a time, from its first call that touches the board.

PYNQ's protocol knows neither sessions nor a farewell. So a client is a connection, and the board is free again when the
connection has ended, when the client was silent for too long, or when the server had to cancel a call of it. Whoever
has lost the board to another client must load the bitstream again, because its program may be gone.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path

from grpc import StatusCode

from .errors import LOG, Refused

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
"""Where Linux lists the machine's connections."""
ESTABLISHED = "01"
"""State, in these lists, of a connection that neither side has ended."""
MOST_OUSTED = 1000
"""Clients at most that are remembered to have lost the board; the earliest are forgotten first."""


def connected(client: str, port: int) -> bool:
    """Whether a client's connection stands; True also where the system doesn't tell.

    Ports alone are compared. If clients of two machines have the same port, the answer may be True for a client that
    has gone; that client loses the board by its silence.

    Parameters
    ----------
    client
        As gRPC names it, with the client's port at the end: "ipv4:127.0.0.1:40000".
    port
        The server's port.
    """
    far = client.rpartition(":")[2]
    tables = [Path(table) for table in TABLES if Path(table).is_file()]
    if not tables or not far.isdigit():
        return True
    ends = (f":{port:04X}", f":{int(far):04X}", ESTABLISHED)
    rows = (line.split()[1:4] for table in tables for line in table.read_text().splitlines()[1:])
    return any(all(field.endswith(end) for field, end in zip(row, ends)) for row in rows)


class Holder:
    """Which client has the board, if any.

    Parameters
    ----------
    idle_seconds
        Silence after which another client may have the board.
    stands
        Whether a client's connection stands.
    """

    def __init__(self, idle_seconds: float, stands: Callable[[str], bool]):
        self._idle_seconds = idle_seconds
        self._stands = stands
        self._lock = threading.Lock()
        self._client: str | None = None
        self._given_up = False  # the server cancelled a call of it: the next client that asks has the board
        self._since = ""
        self._seen = 0.0
        self._ousted: dict[str, None] = {}  # the longest ago first

    @property
    def client(self) -> str | None:
        """The client that has the board; None where the next one gets it."""
        with self._lock:
            return None if self._free() else self._client

    @property
    def latest(self) -> str | None:
        """The client that had the board last, whether it still may or not; None where none had it."""
        return self._client

    def claim(self, client: str, *, anew: bool = False) -> None:
        """Give the board to a client, or let the client keep it.

        Parameters
        ----------
        client
            Who calls.
        anew
            Whether the call belongs to a download, which needs nothing of what was on the board.

        Raises
        ------
        Refused
            If another client has the board, or had it since this client used it last.
        """
        if not client:  # what gRPC says once the call has ended
            raise Refused(StatusCode.CANCELLED, "the board must be asked for by a client that is there, got none")
        with self._lock:
            if client != self._client and not self._free():
                raise Refused(StatusCode.FAILED_PRECONDITION, self._held())
            if client in self._ousted and not anew:
                rule = "the bitstream must be loaded again, because another client has had the board"
                raise Refused(StatusCode.FAILED_PRECONDITION, f"{client}: {rule}")
            if client != self._client:
                self._hand_over(client)
            self._given_up = False
            self._seen = time.monotonic()

    def loaded(self, client: str) -> None:
        """Note that a client has loaded the bitstream: nothing of another client's is left."""
        with self._lock:
            self._ousted.pop(client, None)

    def give_up(self, client: str) -> None:
        """If ``client`` has the board, give it to the next client that asks."""
        with self._lock:
            self._given_up |= client == self._client

    def _free(self) -> bool:
        """Whether a client that asks may have the board."""
        if self._client is None or self._given_up or self._silence() >= self._idle_seconds:
            return True
        return not self._stands(self._client)

    def _silence(self) -> float:
        """Seconds since the client that has the board called last."""
        return time.monotonic() - self._seen

    def _held(self) -> str:
        """One line for a client that can't have the board."""
        who = f"{self._client} has it since {self._since} and was silent for {self._silence():.0f} s"
        end = f"it is free when that client disconnects or is silent for {self._idle_seconds:g} s"
        return f"the board must be free, and {who}: {end}"

    def _hand_over(self, client: str) -> None:
        """Note the client that has the board from now on."""
        before, self._client, self._since = self._client, client, time.strftime("%H:%M:%S")
        if before is not None and self._stands(before):
            self._ousted[before] = None
            LOG.info("%s: has the board, which %s had", client, before)
            while len(self._ousted) > MOST_OUSTED:
                del self._ousted[next(iter(self._ousted))]
