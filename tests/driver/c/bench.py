"""libbitloom against the Verilated device: the platform's functions lead to the virtual board's bus, DMA and DDR.

libbitloom.so --callbacks--> VirtualBoard: AXI-Lite of the core, AXI DMA, DDR behind a cache, interrupt controller
"""

import ctypes
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, byref, c_char, c_char_p, c_int, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bitloom.hls_gen.design.compiled_network import CompiledNetwork
from bitloom.hls_gen.design.dma import LENGTH_BITS
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.platform.block_design import DEVICE, DMA, INTERRUPTS
from bitloom.overlay.virtual.board.board import VirtualBoard
from bitloom.overlay.virtual.board.interrupts import IAR, IER, MER
from bitloom.overlay.virtual.board.memory import CachedBuffer

from .compiled import C99, CORE, build

STATUSES = ("OK", "INVALID", "NO_MEMORY", "MISMATCH", "PACKET", "TRANSFER", "TIMEOUT", "TAKEN", "BUS")
TYPES = {"uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float32": 5, "float64": 6}
"""bitloom_type, by the name of numpy's dtype."""
MOST_NPUS = 60
GUARD = 4096
"""Bytes behind the platform's memory, which must stay as they are."""
ALLOCATE = CFUNCTYPE(c_void_p, c_void_p, c_size_t)
RELEASE = CFUNCTYPE(None, c_void_p, c_void_p)
READ = CFUNCTYPE(c_int, c_void_p, c_int, c_uint32, POINTER(c_uint32))
WRITE = CFUNCTYPE(c_int, c_void_p, c_int, c_uint32, c_uint32)
NOW = CFUNCTYPE(c_uint64, c_void_p)
SYNC = CFUNCTYPE(c_int, c_void_p, c_size_t, c_size_t)
WAIT = CFUNCTYPE(c_int, c_void_p, c_uint32)
RANDOM = CFUNCTYPE(c_uint32, c_void_p)


class Error(ctypes.Structure):
    """struct bitloom_error."""

    _fields_ = (("status", c_int), ("code", c_uint32), ("text", c_char * 400))


class Heap(ctypes.Structure):
    """struct bitloom_heap."""

    _fields_ = (("context", c_void_p), ("allocate", ALLOCATE), ("release", RELEASE))


class Platform(ctypes.Structure):
    """struct bitloom_platform."""

    _fields_ = (
        *(("context", c_void_p), ("name", c_char_p), ("heap", Heap)),
        *(("memory", c_void_p), ("address", c_uint64), ("memory_bytes", c_size_t)),
        *(("dma_length_bits", c_uint), ("timeout_ms", c_uint32)),
        *(("read", READ), ("write", WRITE), ("now_us", NOW)),
        *(("flush", SYNC), ("invalidate", SYNC), ("wait", WAIT), ("random", RANDOM)),
    )


class Counters(ctypes.Structure):
    """struct bitloom_counters."""

    _fields_ = (
        *((name, c_uint64) for name in ("cycles", "frames", "words_in", "words_out")),
        *(("npus", c_uint), ("beats", c_uint64 * MOST_NPUS)),
    )


class CError(Exception):
    """The return of a call of libbitloom: ``status``, one of STATUSES, ``code``, and the text."""

    def __init__(self, error: Error) -> None:
        super().__init__(error.text.decode())
        self.status = STATUSES[error.status]
        self.code = error.code


@cache
def library() -> Any:
    """The core as a shared library, with UndefinedBehaviorSanitizer where there is one."""
    options = (*C99, "-O1", "-g", "-fPIC", "-shared", "-fsanitize=undefined", "-fno-sanitize-recover=all")
    return ctypes.CDLL(str(build("libbitloom.so", CORE, *options)))


class Memory:
    """malloc and free, counted."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None)
        libc.malloc.restype = c_void_p
        libc.malloc.argtypes = [c_size_t]
        libc.free.argtypes = [c_void_p]
        self.blocks = 0
        self.most: float = float("inf")
        """Bytes of a block at most."""
        self.largest = 0
        """Bytes of the largest block that was given."""
        self.fail_at = 0
        """Number of the allocation that fails, counted down; 0: none."""

        def allocate(_: int, size: int) -> int | None:
            self.fail_at -= 1
            if self.fail_at == 0 or size > self.most:
                return None
            self.largest = max(self.largest, size)
            self.blocks += 1
            return libc.malloc(size)

        def release(_: int, block: int) -> None:
            self.blocks -= 1
            libc.free(block)

        self.heap = Heap(None, ALLOCATE(allocate), RELEASE(release))


class CDevice:
    """A device that libbitloom drives on a virtual board; in a ``with`` block.

    Parameters
    ----------
    board
        With the design loaded.
    manifest
        Bytes of the design's manifest.
    interrupts
        Whether the platform has ``wait``.
    memory_bytes, timeout_ms, length_bits, name, heap
        Of the platform.

    Attributes
    ----------
    write_hook, read_hook
        Called before each write and after each read of a register, with (unit, offset, value); they may give another
        value.
    flush_hook
        Called after each flush with the bytes of the range in the DDR.
    results_hook
        Called after each invalidation with the bytes of the range as the processor sees them.
    microseconds
        The platform's clock.
    """

    def __init__(
        self,
        board: VirtualBoard,
        manifest: bytes,
        *,
        interrupts: bool = False,
        memory_bytes: int = 4 << 20,
        timeout_ms: int = 120_000,
        length_bits: int = LENGTH_BITS,
        name: str = "c",
        heap: Memory | None = None,
    ) -> None:
        self.board = board
        self.manifest = manifest
        self.memory = heap or Memory()
        self._blocks = self.memory.blocks
        self.buffer = CachedBuffer(board.ddr, memory_bytes + GUARD)
        self._guard = self.buffer.host[memory_bytes:]
        self._guard[:] = 0xA5
        self.waits = 0
        self.failures: list[Exception] = []
        self.mend()
        self.microseconds: Callable[[], int] = lambda: time.monotonic_ns() // 1000
        self.programs: list[tuple[c_void_p, bytes]] = []
        host = self.buffer.host
        self._platform = Platform(
            *(None, name.encode(), self.memory.heap, host.ctypes.data, self.buffer.address, memory_bytes),
            *(length_bits, timeout_ms, READ(self._read), WRITE(self._write)),
            NOW(lambda _: self.microseconds()),
            *(SYNC(self._flush), SYNC(self._invalidate)),
            WAIT(self._wait) if interrupts else WAIT(),
            RANDOM(),
        )
        if interrupts:  # as the kernel does for UIO
            board.write(self._base(INTERRUPTS) + IER, 7)
            board.write(self._base(INTERRUPTS) + MER, 3)
        self._device = c_void_p()
        self._error = Error()
        try:
            self._call("open", byref(self._platform), manifest, c_size_t(len(manifest)), byref(self._device))
        except CError:
            self.__exit__()
            raise

    def __enter__(self) -> "CDevice":
        return self

    def __exit__(self, *_: object) -> None:
        library().bitloom_close(self._device)
        for program, _ in self.programs:
            library().bitloom_program_free(program)
        assert (self._guard == 0xA5).all(), "nothing may be written behind the platform's memory"
        self.buffer.free()
        assert self.memory.blocks == self._blocks

    def mend(self) -> None:
        """Let nothing be broken any more."""
        self.write_hook: Callable[[int, int, int], int | None] = lambda unit, offset, value: None
        self.read_hook: Callable[[int, int, int], int | None] = lambda unit, offset, value: None
        self.flush_hook: Callable[[np.ndarray], None] = lambda data: None
        self.results_hook: Callable[[np.ndarray], None] = lambda data: None

    # The platform

    def _base(self, name: str) -> int:
        logic = self.board.logic
        assert logic is not None
        return next(region.base for region in logic.bus.regions if region.name == name)

    def _guarded(self, body: Callable[[], int]) -> int:
        try:
            return body()
        except Exception as e:  # an exception can't pass through C
            self.failures.append(e)
            return -1

    def _read(self, _: int, unit: int, offset: int, value: Any) -> int:
        def body() -> int:
            got = self.board.read(self._base(DMA if unit else DEVICE) + offset)
            other = self.read_hook(unit, offset, got)
            value[0] = got if other is None else other
            return 0

        return self._guarded(body)

    def _write(self, _: int, unit: int, offset: int, value: int) -> int:
        def body() -> int:
            other = self.write_hook(unit, offset, value)
            self.board.write(self._base(DMA if unit else DEVICE) + offset, value if other is None else other)
            return 0

        return self._guarded(body)

    def _flush(self, _: int, offset: int, size: int) -> int:
        self.buffer.flush(offset, size)
        self.flush_hook(self.board.ddr.view(self.buffer.address + offset, size))
        return 0

    def _invalidate(self, _: int, offset: int, size: int) -> int:
        self.buffer.invalidate(offset, size)
        self.results_hook(self.buffer.host[offset : offset + size])
        return 0

    def _wait(self, _: int, microseconds: int) -> int:
        def body() -> int:
            self.waits += 1
            end = time.monotonic() + microseconds / 1e6
            while not self.board.advance_to_interrupt():
                if time.monotonic() > end:
                    return 0
            self.board.write(self._base(INTERRUPTS) + IAR, 7)
            return 1

        return self._guarded(body)

    # Calls

    def _call(self, name: str, *arguments: Any) -> None:
        self._error = Error()
        status = getattr(library(), f"bitloom_{name}")(*arguments, byref(self._error))
        assert status == self._error.status
        if status:
            raise CError(self._error)

    def read_program(self, data: bytes) -> c_void_p:
        """Read a program's file, which lives as long as the device."""
        program = c_void_p()
        size = c_size_t(len(data))
        self._call("program_read", byref(self.memory.heap), data, size, b"program", byref(program))
        self.programs.append((program, data))
        return program

    def transform(self, text: str) -> None:
        """Say what pixels stand for, for the program that was read last."""
        self._call("program_transform", self.programs[-1][0], text.encode())

    def load(self, program: CompiledNetwork[Program] | c_void_p) -> None:
        """Load a network, of Python or one that was read."""
        read = self.read_program(program.to_bytes()) if isinstance(program, CompiledNetwork) else program
        self._call("load", self._device, read)

    def _images(self, images: np.ndarray) -> tuple[Any, int, c_size_t]:
        self._kept = np.ascontiguousarray(images)
        return c_void_p(self._kept.ctypes.data), TYPES[images.dtype.name], c_size_t(len(images))

    def predict(self, images: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        outputs = np.full((len(images), *shape), -(1 << 62), np.int64)
        self._call("predict", self._device, *self._images(images), c_void_p(outputs.ctypes.data))
        return outputs

    def classify(self, images: np.ndarray) -> np.ndarray:
        classes = np.full(len(images), -1, np.int32)
        self._call("classify", self._device, *self._images(images), c_void_p(classes.ctypes.data))
        return classes

    def scores(self, images: np.ndarray, count: int) -> np.ndarray:
        scores = np.full((len(images), count), np.nan)
        self._call("scores", self._device, *self._images(images), c_void_p(scores.ctypes.data))
        return scores

    def reset(self) -> None:
        self._call("reset", self._device)

    def clear_counters(self) -> None:
        self._call("clear_counters", self._device)

    def counters(self) -> dict[str, int]:
        """As ``Accelerator.counters`` gives them, but for the waits."""
        counters = Counters()
        library().bitloom_count(self._device, byref(counters))
        totals = {name: int(getattr(counters, name)) for name in ("cycles", "frames", "words_in", "words_out")}
        return totals | {f"npu{n}_beats": int(counters.beats[n]) for n in range(counters.npus)}

    def register(self, offset: int) -> int:
        value = c_uint32()
        self._call("register", self._device, c_uint32(offset), byref(value))
        return value.value


@contextmanager
def on_board(
    bit: Path, *, timeout_cycles: int = 500_000, stalls: dict[str, Any] | None = None
) -> Iterator[VirtualBoard]:
    """A virtual board with a design loaded."""
    board = VirtualBoard()
    board.timeout_cycles = timeout_cycles
    board.stall(**(stalls or {}))
    board.load(bit)
    try:
        yield board
    finally:
        board.close()


@contextmanager
def c_device(bit: Path, **options: Any) -> Iterator[CDevice]:
    """A device that libbitloom drives on a board of its own; options are those of `on_board` and CDevice."""
    of_board = {key: options.pop(key) for key in ("timeout_cycles", "stalls") if key in options}
    manifest = bit.with_suffix(".manifest.json").read_bytes()
    with on_board(bit, **of_board) as board, CDevice(board, manifest, **options) as device:
        yield device
