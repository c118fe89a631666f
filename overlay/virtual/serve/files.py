"""Service RemoteDevice: the few files of a board's Linux that pynq reads and writes, none of which exists here.

A client loads a bitstream by writing it to /lib/firmware, and then its name to the file FIRMWARE. Whoever may connect
may read; only the client that has the board may write (holder.py).
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
from grpc import StatusCode
from pynq.pl_server.embedded_device import bit2bin
from pynq.remote import remote_device_pb2 as pb
from pynq.remote import remote_device_pb2_grpc

from bitloom.overlay.virtual.board.board import NAME, VirtualBoard

from .errors import LOG, Refused
from .holder import Holder
from .pieces import first_and_rest, gather

MANAGER = "/sys/class/fpga_manager/fpga0"
FIRMWARE = f"{MANAGER}/firmware"
FLAGS = f"{MANAGER}/flags"
STORE = "/lib/firmware/"
LONGEST_NAME = 255
"""Characters of a firmware file's name at most."""
MOST_NAMES = 64
"""Names at most under which clients store the overlay."""


class FileService(remote_device_pb2_grpc.RemoteDeviceServicer):
    """Files of a board that loads one overlay.

    Parameters
    ----------
    board
        The virtual board.
    bit
        The overlay's .bit.
    holder
        Who has the board.
    loaded
        Called with the client's name after each download.
    """

    def __init__(self, board: VirtualBoard, bit: Path, holder: Holder, loaded: Callable[[str], object]):
        self._board = board
        self._bit = bit
        self._holder = holder
        self._loaded = loaded
        self._binary = bit2bin(bit.read_bytes())
        self._names: dict[str, None] = {}  # files in STORE; all hold the overlay's binary

    @property
    def _readable(self) -> dict[str, bytes]:
        """Content of each file that can be read, by path."""
        return {
            "/proc/version": f"Linux version 6 (bitloom virtual board, {self._board.arch})\n".encode(),
            "/proc/device-tree/chosen/pynq_board": f"{NAME}\0".encode(),
            f"{MANAGER}/state": b"operating\n",
            FLAGS: b"0\n",
        }

    def existsfile(self, request: pb.ExistsFileRequest, _: grpc.ServicerContext) -> pb.ExistsFileResponse:
        """Whether a file can be read. For firmware the answer is no, so that the client always sends it."""
        return pb.ExistsFileResponse(exists=request.file_path in self._readable)

    def readfile(self, request: pb.ReadFileRequest, _: grpc.ServicerContext) -> Iterator[pb.ReadFileResponse]:
        """All of a file, which is short."""
        readable = self._readable
        if request.file_path not in readable:
            rule = f"one of {', '.join(readable)} must be read"
            raise Refused(StatusCode.NOT_FOUND, f"{_shown(request.file_path)}: {rule}")
        yield pb.ReadFileResponse(data=readable[request.file_path])

    def writefile(self, requests: Iterator[pb.WriteFileRequest], context: grpc.ServicerContext) -> pb.WriteFileResponse:
        """Take firmware, or load it."""
        self._holder.claim(context.peer(), anew=True)  # before anything is waited for
        path, pieces = first_and_rest(requests, "file_path")
        if path == FIRMWARE:
            self._load(gather(pieces, LONGEST_NAME, FIRMWARE).decode(errors="replace").strip(), context.peer())
        elif path == FLAGS:
            if gather(pieces, LONGEST_NAME, FLAGS).strip() != b"0":
                raise Refused(StatusCode.UNIMPLEMENTED, f"{FLAGS}: flags must be 0, a whole bitstream")
        elif path.startswith(STORE):
            self._store(path.removeprefix(STORE), gather(pieces, len(self._binary), _shown(path)))
        else:
            rule = f"{STORE}NAME, {FLAGS} or {FIRMWARE} must be written"
            raise Refused(StatusCode.PERMISSION_DENIED, f"{_shown(path)}: {rule}")
        return pb.WriteFileResponse()

    def set_bitstream_attrs(
        self, request: pb.SetBitstreamAttrsRequest, context: grpc.ServicerContext
    ) -> pb.SetBitstreamAttrsResponse:
        """Announces a download; only a whole bitstream is taken."""
        self._holder.claim(context.peer(), anew=True)
        if request.partial:
            raise Refused(StatusCode.UNIMPLEMENTED, f"{_shown(request.binfile_name)}: must be a whole bitstream")
        return pb.SetBitstreamAttrsResponse(status=True)

    def _store(self, name: str, data: bytes) -> None:
        """Keep firmware under a name; Refused unless it is the overlay that is served."""
        if data != self._binary:
            rule = f"must be the overlay that is served, {self._bit.name}"
            raise Refused(StatusCode.FAILED_PRECONDITION, f"{_shown(name)}: {rule}, got another bitstream")
        if len(name) > LONGEST_NAME or (len(self._names) >= MOST_NAMES and name not in self._names):
            rule = f"at most {MOST_NAMES} names of {LONGEST_NAME} characters must be used"
            raise Refused(StatusCode.RESOURCE_EXHAUSTED, f"{STORE}{_shown(name)}: {rule}")
        self._names[name] = None

    def _load(self, name: str, client: str) -> None:
        """Load the firmware of that name; Refused where the build was changed since the server began."""
        self._holder.claim(client, anew=True)
        if name not in self._names:
            raise Refused(StatusCode.NOT_FOUND, f"{_shown(name)}: must be in {STORE} to be loaded, and isn't")
        if bit2bin(self._bit.read_bytes()) != self._binary:
            rule = "must be as it was when the server began, and was changed"
            raise Refused(StatusCode.FAILED_PRECONDITION, f"{self._bit.name}: {rule}")
        self._board.load(self._bit)
        self._loaded(client)
        LOG.info("%s: loaded %s", client, self._bit.name)


def _shown(text: str) -> str:
    """A client's text as a message may show it: short and printable."""
    return text if text.isprintable() and len(text) <= 100 else repr(text[:100])
