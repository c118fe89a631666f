"""The C side of the driver, compiled for tests. Where a compiler, or what it needs, is missing, the test is skipped."""

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from bitloom.driver.c import FOLDER
from bitloom.golden.kernels.cache import cached_folder
from bitloom.golden.kernels.native import digest, run_tool

WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", "-pedantic")
C99 = ("-std=c99", *WARNINGS)
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g")
OF_C = (("cc",), ("gcc",), ("clang",), ("g++", "-x", "c"), ("clang++", "-x", "c"))
"""Compilers of C that are tried if CC isn't set: g++ alone often compiles C, too."""
OF_CPP = (("g++",), ("clang++",), ("c++",))
CORE = tuple(sorted(path for path in FOLDER.glob("bitloom*.c") if path.stem != "bitloom_linux"))
"""The files of the core, which needs no operating system."""


@cache
def _works(command: tuple[str, ...]) -> bool:
    """Whether a compiler with these options makes a program that runs."""
    if shutil.which(command[0]) is None:
        return False
    with tempfile.TemporaryDirectory(prefix="bitloom-c-") as folder:
        source = Path(folder, "probe.c")
        source.write_text("int main(void) { return 0; }\n")
        program = Path(folder, "probe")
        done = subprocess.run([*command, source, "-o", program], capture_output=True, check=False)
        return done.returncode == 0 and subprocess.run([program], capture_output=True, check=False).returncode == 0


def compiler(*options: str, cpp: bool = False) -> tuple[str, ...]:
    """The first compiler that takes these options; skips the test where there is none."""
    chosen = os.environ.get("CXX" if cpp else "CC")
    candidates = (tuple(shlex.split(chosen)),) if chosen else OF_CPP if cpp else OF_C
    for candidate in candidates:
        if _works((*candidate, *options)):
            return candidate
    language = "C++" if cpp else "C"
    return pytest.skip(
        f"a compiler of {language} with {' '.join(options) or 'no options'} is needed, got none that works"
    )


def build(name: str, sources: Sequence[Path], *options: str, cpp: bool = False) -> Path:
    """Compile sources into the program or library ``name``, once for all runs that have the same sources."""
    command = compiler(*(option for option in options if option != "-shared"), cpp=cpp)  # which makes no program
    version = subprocess.run([command[0], "--version"], capture_output=True, text=True, check=True).stdout
    headers = sorted([*FOLDER.glob("*.h"), *FOLDER.glob("*.hpp")])
    key = digest(name, version, *command, *options, *(path.read_bytes() for path in (*sources, *headers)))

    def compile_all(folder: Path) -> None:
        run_tool([*command, *options, f"-I{FOLDER}", *sources, "-o", folder / name, "-lm"], f"compiling {name}")

    return cached_folder("native", key, compile_all) / name
