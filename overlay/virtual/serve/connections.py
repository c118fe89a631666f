"""A bound on the connections that stand, so that idle ones don't use up the file descriptors of the process.

gRPC's server takes every connection that comes, until the process has no descriptor left, and then answers nobody. Its
own bound of idle time doesn't help: the client that has the board may be silent for hours, and a connection that is
ended is another client when it comes back (holder.py). So this module counts connections, and ends those that matter
least: first the ones over which no call ever came, the oldest of them before those whose first call may be on its way;
then those whose last call is the longest ago; never one with a call under way, and never that of the client that has
the board. Whoever loses a connection and calls again gets a new one.
"""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from .errors import LOG

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

LOOK_SECONDS = 0.5
"""Seconds between two looks at the connections."""
TABLES = ("/proc/self/fd", "/dev/fd")
"""Where a system lists the descriptors of a process. Where there is neither, nothing is counted."""


class ClientConnection(NamedTuple):
    """A connection to the server."""

    handle: int
    """Its file descriptor, which is gRPC's."""
    address: str
    port: int
    """address, port: the client's end."""


class ConnectionWatch:
    """Looks after the connections to a port. ``stop`` it in the end.

    Parameters
    ----------
    port
        The server's port.
    most
        Connections that may stand.
    in_use
        Gives the clients whose connections must stand, as gRPC names them: "ipv4:127.0.0.1:40000".
    """

    def __init__(self, port: int, most: int, in_use: Callable[[], Iterable[str]]):
        self._port = port
        self._most = most
        self._in_use = in_use
        self._lock = threading.Lock()
        self._called: dict[int, float] = {}  # the client's port -> when it called last; ports alone, as in holder.py
        self._seen: dict[int, int] = {}  # the client's port -> number of the look that saw the connection first
        self._looks = 0
        self._stopped = threading.Event()
        threading.Thread(target=self._watch, name="bitloom-serve-connections", daemon=True).start()

    def note_call(self, client: str) -> None:
        """Note that a client calls now."""
        with self._lock:
            self._called[_port_of(client)] = time.monotonic()

    def stop(self) -> None:
        """End the looks."""
        self._stopped.set()

    def look(self) -> int:
        """End connections if there are too many; how many were ended."""
        standing = list(_connections(self._port))
        ports = {connection.port for connection in standing}
        with self._lock:
            self._called = {port: when for port, when in self._called.items() if port in ports}
            called = dict(self._called)
        self._looks += 1
        self._seen = {port: self._seen.get(port, self._looks) for port in ports}
        over = len(standing) - self._most
        if over <= 0:
            return 0
        needed = {_port_of(client) for client in self._in_use()}
        idle = [connection for connection in standing if connection.port not in needed]
        idle.sort(key=lambda connection: (called.get(connection.port, 0.0), self._seen[connection.port]))
        for connection in idle[:over]:
            _end(connection)
        LOG.warning(
            "%d connections stood, at most %d may: ended %d that were idle", len(standing), self._most, len(idle[:over])
        )
        return len(idle[:over])

    def _watch(self) -> None:
        while not self._stopped.wait(LOOK_SECONDS):
            with suppress(OSError):  # a descriptor that was closed meanwhile: the next look sees what is left
                self.look()


def _port_of(client: str) -> int:
    """The port of a client by its name; -1 where the name has none."""
    port = client.rpartition(":")[2]
    return int(port) if port.isdigit() else -1


def _connections(port: int) -> Iterator[ClientConnection]:
    """The connections of this process to a port of its own."""
    for handle in _handles():
        with suppress(OSError):  # no socket, one that listens, or closed meanwhile
            wire = socket.socket(fileno=handle)
            try:
                here = wire.getsockname()
                there = wire.getpeername()
            finally:
                wire.detach()
            if isinstance(here, tuple) and here[1] == port:
                yield ClientConnection(handle, there[0], there[1])


def _handles() -> Iterable[int]:
    """Descriptors of this process, or numbers among which they are."""
    for table in TABLES:
        try:
            return [int(name) for name in os.listdir(table)]
        except FileNotFoundError:
            continue
        except OSError:  # no descriptor is left, not even for this, nor to import a module
            return range(resource.getrlimit(resource.RLIMIT_NOFILE)[0]) if resource else ()
    return ()


def _end(connection: ClientConnection) -> None:
    """Shut a connection down, so that gRPC closes it."""
    with suppress(OSError):
        wire = socket.socket(fileno=connection.handle)
        try:
            if wire.getpeername()[:2] == (connection.address, connection.port):  # else the descriptor is another's now
                wire.shutdown(socket.SHUT_RDWR)
        finally:
            wire.detach()
