"""The server: one virtual board and one overlay, behind PYNQ's services on a port.

PYNQ's protocol has neither a password nor encryption, hence 127.0.0.1 unless somebody says otherwise. All that a client
can reach is the simulated board: no file is opened by a name that came over the network.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from pynq.remote import buffer_pb2_grpc, mmio_pb2_grpc, remote_device_pb2_grpc

from bitloom.overlay.virtual.board.board import VirtualBoard

from . import PORT
from .buffers import BufferService
from .errors import LOG
from .files import FileService
from .pieces import MESSAGE_BYTES
from .registers import RegisterService

THREADS = 8
"""Calls that run at the same time."""
MOST_CALLS = 32
"""Calls that run or wait; more are refused with RESOURCE_EXHAUSTED."""
OPTIONS = {
    "grpc.so_reuseport": 0,  # a second server on the port is an error
    "grpc.max_receive_message_length": MESSAGE_BYTES,
    "grpc.max_send_message_length": MESSAGE_BYTES,
    "grpc.max_concurrent_streams": MOST_CALLS,  # of a connection
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

    Attributes
    ----------
    board
        The virtual board.
    port
        The port that is open.

    Raises
    ------
    OverlayError
        If the overlay's files don't belong together.
    BuildError
        If the model doesn't compile.
    OSError
        If the address can't be had.
    """

    def __init__(self, bit: Path, host: str = "127.0.0.1", port: int = PORT):
        self.bit, self.host = bit, host
        self.board = VirtualBoard()
        self.board.load(bit)
        buffers = BufferService(self.board.ddr)

        def loaded(client: str) -> None:
            left = buffers.keep_only(client)
            if left:
                LOG.info("%s: freed %d buffers that other clients had left", client, left)

        self._server = grpc.server(
            ThreadPoolExecutor(THREADS), options=list(OPTIONS.items()), maximum_concurrent_rpcs=MOST_CALLS
        )
        remote_device_pb2_grpc.add_RemoteDeviceServicer_to_server(FileService(self.board, bit, loaded), self._server)
        mmio_pb2_grpc.add_MmioServicer_to_server(RegisterService(self.board), self._server)
        buffer_pb2_grpc.add_RemoteBufferServicer_to_server(buffers, self._server)
        try:
            self.port = self._server.add_insecure_port(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
        except RuntimeError:
            self.board.close()
            raise OSError(f"{host}:{port}: the address must be this machine's and free, and isn't") from None
        self._server.start()

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
        self.board.close()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
