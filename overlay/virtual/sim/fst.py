"""FST files, which GTKWave and Surfer show: headers that writing needs, and a check that a file is whole.

Verilator's writer reports neither missing headers nor a cut file.
"""

import subprocess
from pathlib import Path

from bitloom.golden.kernels.native import BuildError, Compiler

HEADERS = ("lz4.h", "zlib.h")
INSTALL = "install them (Debian, Ubuntu: sudo apt install liblz4-dev zlib1g-dev)"

HEAD = 9
"""Bytes in front of a block's data: its kind, and its length in 8 bytes, the highest first, these among it."""


def check_headers(compiler: Compiler) -> None:
    """BuildError unless the compiler finds the headers by which Verilator makes FST files small."""
    text = "".join(f"#include <{name}>\n" for name in HEADERS).encode()
    command = [compiler.program, "-fsyntax-only", "-x", "c++", "-"]
    if subprocess.run(command, input=text, capture_output=True, check=False).returncode:
        rule = f"FST needs the headers {' and '.join(HEADERS)}, {compiler.program} doesn't find both"
        raise BuildError(f"waveform: {rule}: {INSTALL}, or write a VCD")


def is_whole(path: Path) -> bool:
    """Whether a file consists of whole blocks, one at least."""
    size = path.stat().st_size
    begin = 0
    with path.open("rb") as file:
        while begin < size:
            file.seek(begin)
            length = int.from_bytes(file.read(HEAD)[1:], "big")
            if length < HEAD - 1:
                return False
            begin += 1 + length
    return begin == size > 0
