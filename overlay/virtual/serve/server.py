"""The server: one virtual board and one overlay, behind PYNQ's services on a port.

PYNQ's protocol has neither a password nor encryption, hence 127.0.0.1 unless somebody says otherwise. All that a client
can reach is the simulated board: no file is opened by a name that came over the network.
"""

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from pynq.remote import buffer_pb2_grpc, mmio_pb2_grpc, remote_device_pb2_grpc

from bitloom.overlay.virtual.board.board import VirtualBoard

from . import PORT
from .buffers import BufferService
from .calls import Calls
from .connections import ConnectionWatch
from .errors import LOG
from .files import FileService
from .holder import Holder, connected
from .limits import MESSAGE_BYTES, ServerLimits
from .registers import RegisterService

OPTIONS = {
    "grpc.so_reuseport": 0,  # a second server on the port is an error
    "grpc.max_receive_message_length": MESSAGE_BYTES,
    "grpc.max_send_message_length": MESSAGE_BYTES,
    "grpc.max_concurrent_streams": 32,  # of a connection
    "grpc.keepalive_time_ms": 20_000,  # a machine that is gone closes no connection
    "grpc.keepalive_timeout_ms": 10_000,
}
"""Settings of gRPC's server."""


class Server:
    """A virtual board with one simulation overlay loaded, and its port open. ``stop`` it, or use ``with``.

    Parameters
    ----------
    bit
        The overlay's .bit.
    host
        Name or address to listen on.
    port
        Port to listen on; 0 takes a free one.
    limits
        Bounds of time and work; by default ``ServerLimits()``.

    Attributes
    ----------
    board
        The virtual board.
    port
        The port that is open.
    holder
        The client that has the board.
    calls
        Calls that are under way.
    connections
        The bound on connections.

    Raises
    ------
    OverlayError
        If the overlay's files don't belong together.
    BuildError
        If the model doesn't compile.
    OSError
        If the address can't be had; this is tried first.
    """

    def __init__(self, bit: Path, host: str = "127.0.0.1", port: int = PORT, limits: ServerLimits | None = None):
        _try_address(host, port)
        self.bit = bit
        self.host = host
        limits = limits or ServerLimits()
        self.board = VirtualBoard()
        self.board.load(bit)
        self.holder = Holder(limits.idle_seconds, lambda client: connected(client, self.port))
        self.calls = Calls(limits, self.holder.give_up)
        buffers = BufferService(self.board.ddr, self.holder)

        def loaded(client: str) -> None:
            self.holder.loaded(client)
            left = buffers.keep_only(client)
            if left:
                LOG.info("%s: freed %d buffers that other clients had left", client, left)

        self._server = grpc.server(
            ThreadPoolExecutor(limits.calls),
            options=list(OPTIONS.items()),
            interceptors=[self.calls],
            maximum_concurrent_rpcs=limits.calls,
        )
        files = FileService(self.board, bit, self.holder, loaded)
        remote_device_pb2_grpc.add_RemoteDeviceServicer_to_server(files, self._server)
        mmio_pb2_grpc.add_MmioServicer_to_server(RegisterService(self.board, self.holder), self._server)
        buffer_pb2_grpc.add_RemoteBufferServicer_to_server(buffers, self._server)
        try:
            self.port = self._server.add_insecure_port(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
        except RuntimeError:
            self.calls.stop()
            self.board.close()
            raise _taken(host, port) from None
        self.connections = ConnectionWatch(self.port, limits.connections, self._in_use)
        self.calls.noted = self.connections.note_call
        self._server.start()

    def _in_use(self) -> list[str]:
        """Clients whose connections must stand."""
        return [*self.calls.clients, *([self.holder.latest] if self.holder.latest else [])]

    def wait(self) -> None:
        """Wait for ``stop``, or for an exception such as KeyboardInterrupt."""
        self._server.wait_for_termination()

    def stop(self, grace: float = 1.0) -> None:
        """Close the port, and end the simulation.

        Parameters
        ----------
        grace
            Seconds that calls under way have to end.
        """
        self._server.stop(grace).wait()
        self.calls.stop()
        self.connections.stop()
        self.board.close()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _taken(host: str, port: int) -> OSError:
    """The error where an address can't be had."""
    return OSError(f"{host}:{port}: the address must be this machine's and free, and isn't")


def _try_address(host: str, port: int) -> None:
    """OSError where nobody could listen on the address. gRPC would tell so after minutes, and in lines of its own."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.create_server(address[:2], family=family):
            pass
    except OSError:
        raise _taken(host, port) from None
