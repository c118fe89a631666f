"""A virtual board for C programs in processes of their own: piped_board.c asks, this answers."""

import mmap
import os
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bitloom.overlay.platform.block_design import DEVICE, DMA, INTERRUPTS
from bitloom.overlay.virtual.board.board import VirtualBoard
from bitloom.overlay.virtual.board.interrupts import IAR, IER, MER

HERE = Path(__file__).parent
READ, WRITE, FLUSH, INVALIDATE, WAIT = range(5)
MEMORY_BYTES = 1 << 20


class Process:
    """A program that runs, with a board behind its words CORE, DMA and MEMORY.

    Parameters
    ----------
    board
        The board, which other processes may have, too.
    command
        The program and its words, those three not among them.
    more
        Words behind those three.
    """

    def __init__(self, board: VirtualBoard, command: Sequence[str | Path], *more: str) -> None:
        self._board = board
        self._address = board.ddr.allocate(MEMORY_BYTES)
        with tempfile.NamedTemporaryFile(prefix="bitloom-tests-", delete=False) as file:
            file.truncate(MEMORY_BYTES)
            self._path = Path(file.name)
            self._map = mmap.mmap(file.fileno(), MEMORY_BYTES)
        self._host = np.frombuffer(self._map, np.uint8)
        logic = board.logic
        assert logic is not None
        self._bases = {region.name: region.base for region in logic.bus.regions}
        board.write(self._bases[INTERRUPTS] + IER, 7)
        board.write(self._bases[INTERRUPTS] + MER, 3)
        self._socket, other = socket.socketpair()
        words = [*map(str, command), str(other.fileno()), str(self._address), str(self._path), *more]
        self._process = subprocess.Popen(
            words,
            pass_fds=[other.fileno()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        other.close()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def line(self) -> str:
        """The next line that it prints."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")

    def say(self, text: str) -> None:
        """Give it a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{text}\n")
        self._process.stdin.flush()

    def finished(self) -> tuple[int, str, str]:
        """Wait for its end: status, standard output, standard error."""
        out, err = self._process.communicate(timeout=300)
        self._thread.join()
        self._board.ddr.free(self._address)
        os.unlink(self._path)
        return self._process.returncode, out, err

    def _serve(self) -> None:
        while len(question := self._socket.recv(16, socket.MSG_WAITALL)) == 16:
            code, value = self._answer(*struct.unpack("<4I", question))
            self._socket.sendall(struct.pack("<iI", code, value))
        self._socket.close()

    def _answer(self, what: int, unit: int, offset: int, value: int) -> tuple[int, int]:
        address = self._bases[DMA if unit else DEVICE] + offset
        if what == READ:
            return 0, self._board.read(address)
        if what == WRITE:
            self._board.write(address, value)
        elif what == WAIT:
            return self._wait(value / 1e6), 0
        else:
            ddr = self._board.ddr.view(self._address + offset, value)
            host = self._host[offset : offset + value]
            if what == FLUSH:
                ddr[:] = host
            else:
                host[:] = ddr
        return 0, 0

    def _wait(self, seconds: float) -> int:
        end = time.monotonic() + seconds
        while not self._board.advance_to_interrupt():
            if time.monotonic() > end:
                return 0
        self._board.write(self._bases[INTERRUPTS] + IAR, 7)
        return 1
