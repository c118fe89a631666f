"""The platform on Linux, on files that stand for those of /dev and /sys. That the kernel, UIO, u-dma-buf and a board do
what their documentation says, nothing here can show."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, byref, c_char_p, c_uint, c_uint32, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from bitloom.driver.c import FOLDER

from .bench import STATUSES, Error, Platform
from .compiled import C99, CORE, build

CORE_AT = 0xA000_1000
DMA_AT = 0xA000_0000
BUFFER_AT = 0xB000_0100


class Options(ctypes.Structure):
    """struct bitloom_linux_options."""

    _fields_ = (
        *((name, c_char_p) for name in ("core", "dma", "memory", "name")),
        *(("dma_length_bits", c_uint), ("timeout_ms", c_uint32), ("root", c_char_p)),
    )


@cache
def library() -> Any:
    sources = [*CORE, FOLDER / "bitloom_linux.c"]
    loaded = ctypes.CDLL(str(build("libbitloom_linux.so", sources, *C99, "-O1", "-fPIC", "-shared")))
    loaded.bitloom_linux_platform.restype = POINTER(Platform)
    return loaded


class Root:
    """A folder with dev and sys."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("dev/mem", b"")
        os.truncate(folder / "dev/mem", 0xB000_2000)  # a sparse file
        for number, size in ((0, "0x1000"), (1, "0x00010000")):
            self.write(f"dev/uio{number}", bytes(int(size, 0)))
            self.write(f"sys/class/uio/uio{number}/maps/map0/size", f"{size}\n".encode())
        self.write("dev/udmabuf0", bytes(1 << 16))
        self.write("sys/class/u-dma-buf/udmabuf0/phys_addr", b"0x0000000078000000\n")
        self.write("sys/class/u-dma-buf/udmabuf0/size", b"65536\n")

    def write(self, name: str, data: bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def options(self, core: str | None, dma: str | None, memory: str | None, **more: Any) -> Options:
        words = (None if word is None else word.encode() for word in (core, dma, memory))
        return Options(*words, None, root=str(self.folder).encode(), **more)

    @contextmanager
    def opened(self, *words: str, **more: Any) -> Iterator[Platform]:
        board = c_void_p()
        error = Error()
        assert library().bitloom_linux_open(byref(self.options(*words, **more)), byref(board), byref(error)) == 0
        try:
            yield library().bitloom_linux_platform(board)[0]
        finally:
            library().bitloom_linux_close(board)

    def refused(self, *words: str | None) -> str:
        board = c_void_p()
        error = Error()
        status = library().bitloom_linux_open(byref(self.options(*words)), byref(board), byref(error))
        assert status == error.status != 0
        assert not board
        return f"{STATUSES[status]} {error.text.decode()}"

    def word(self, name: str, offset: int) -> int:
        with open(self.folder / name, "rb") as file:
            file.seek(offset)
            return int.from_bytes(file.read(4), "little")


@pytest.fixture
def root(tmp_path):
    return Root(tmp_path)


def try_registers(platform: Platform, root: Root, core: tuple[str, int], dma: tuple[str, int]) -> None:
    value = c_uint32()
    for unit, (name, base) in enumerate((core, dma)):
        assert platform.write(platform.context, unit, 0x58, 0x1234_5678 + unit) == 0
        assert root.word(name, base + 0x58) == 0x1234_5678 + unit
        assert platform.read(platform.context, unit, 0x58, byref(value)) == 0
        assert value.value == 0x1234_5678 + unit


def test_physical_addresses(root):
    """Wherever in a page they are."""
    words = (f"0x{CORE_AT:X}", f"0x{DMA_AT:x}", f"0x{BUFFER_AT:X}+0x1000")
    with root.opened(*words, timeout_ms=7, dma_length_bits=14) as platform:
        try_registers(platform, root, ("dev/mem", CORE_AT), ("dev/mem", DMA_AT))
        assert (platform.address, platform.memory_bytes) == (BUFFER_AT, 0x1000)
        assert (platform.timeout_ms, platform.dma_length_bits) == (7, 14)
        ctypes.cast(platform.memory, POINTER(c_uint32))[3] = 0xABCD
        assert root.word("dev/mem", BUFFER_AT + 12) == 0xABCD
        assert not platform.wait
        assert not platform.flush
        before = platform.now_us(platform.context)
        assert platform.now_us(platform.context) >= before
        assert len({platform.random(platform.context) for _ in range(8)}) > 1


def test_uio_and_u_dma_buf(root):
    with root.opened("/dev/uio0", "/dev/uio1", "udmabuf0") as platform:
        try_registers(platform, root, ("dev/uio0", 0), ("dev/uio1", 0))
        assert (platform.address, platform.memory_bytes) == (0x7800_0000, 1 << 16)
        assert (platform.timeout_ms, platform.dma_length_bits) == (10_000, 26)
        ctypes.cast(platform.memory, POINTER(c_uint32))[(1 << 14) - 1] = 5
        assert root.word("dev/udmabuf0", (1 << 16) - 4) == 5
        assert platform.wait(platform.context, 1000) == 1  # a file can always be read


def test_what_is_refused(root):
    good = ["/dev/uio0", "/dev/uio1", "udmabuf0"]
    folder = root.folder
    form = "must be /dev/uioN or an address, 0x..., got"
    assert root.refused(None, *good[1:]) == f"INVALID bitloom: core {form} nothing"
    assert root.refused(good[0], "/dev/mem", good[2]) == f"INVALID bitloom: dma {form} /dev/mem"
    assert root.refused("0xZZ", *good[1:]) == f"INVALID bitloom: core {form} 0xZZ"
    missing = f"INVALID {folder}/sys/class/uio/uio7/maps/map0/size: must be readable, got: No such file or directory"
    assert root.refused("/dev/uio7", *good[1:]) == missing
    memory = "INVALID bitloom: memory must be a device of u-dma-buf, or 0xADDRESS+BYTES, got"
    assert root.refused(*good[:2], "/dev/udmabuf0") == f"{memory} /dev/udmabuf0"
    assert root.refused(*good[:2], "0x70000000+/1") == f"{memory} 0x70000000+/1"
    none = f"INVALID {folder}/sys/class/u-dma-buf/udmabuf9/phys_addr: must be readable, got: No such file or directory"
    assert root.refused(*good[:2], "udmabuf9") == none
    mapped = f"INVALID {folder}/dev/mem: 1..2147483648 bytes from a multiple of 4 on must be mapped, got"
    assert root.refused(*good[:2], "0x70000000+0") == f"{mapped} 0"
    assert root.refused(*good[:2], "0x70000002+8") == f"{mapped} 8"
    root.write("sys/class/uio/uio1/maps/map0/size", b"0x20\n")
    assert root.refused(*good) == f"INVALID {folder}/dev/uio1: must have its registers, got 32 bytes"
    root.write("sys/class/uio/uio1/maps/map0/size", b"much\n")
    assert (
        root.refused(*good) == f"INVALID {folder}/sys/class/uio/uio1/maps/map0/size: must be a number, got another text"
    )
    (folder / "dev/uio0").unlink()
    assert root.refused(*good) == f"BUS {folder}/dev/uio0: must be writable, got: No such file or directory"


def test_nothing_is_left_open(root):
    open_files = Path("/proc/self/fd")
    library()
    before = len(list(open_files.iterdir()))
    for _ in range(3):
        root.refused("/dev/uio0", "/dev/uio1", "udmabuf9")
        with root.opened("/dev/uio0", "/dev/uio1", "udmabuf0"):
            pass
    assert len(list(open_files.iterdir())) == before
