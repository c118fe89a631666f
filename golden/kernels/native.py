"""C++ that ships with the package, compiled where it runs: on demand, with the system's compiler, loaded by ctypes.

    sources, flags, compiler --> key --> $BITLOOM_CACHE/native/<key>/library.so --> ctypes.CDLL

The key covers the content of every file, the flags and the compiler's version, so a library is compiled once a machine
and again whenever anything of it changes. Any number of processes may ask for the same one (golden/kernels/cache.py).
What is native here is only faster: golden runs on numpy alone, and callers go back to it on BuildError.
"""

import ctypes
import errno
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from .cache import cached_folder

COMPILERS = ("g++", "clang++")
"""Compilers that are looked for if CXX is not set, the best first."""
LIBRARY_FLAGS = ("-std=c++17", "-O3", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread")


class BuildError(RuntimeError):
    """A tool is missing, or refused its input. The message says which and what to do."""


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler."""

    program: str
    """Its name or path."""
    version: str
    """The line with which it names its version."""
    processor: str
    """A digest of the processor that it compiles for; empty where that makes no difference."""

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags for code of this machine alone.

        -fno-gnu-unique keeps two loaded libraries apart: unique symbols would be shared between them. -march=native
        makes wide popcounts a fifth faster; the processor is in the key, for a cache on a shared file system.
        """
        apart = () if "clang" in self.version else ("-fno-gnu-unique",)
        return (*apart, "-march=native") if self.processor else apart


@lru_cache(maxsize=4)
def _features(machine: str) -> str:
    """The line of this x86-64 processor's instruction sets in /proc/cpuinfo; "" on another `machine`."""
    listing = Path("/proc/cpuinfo")
    if machine != "x86_64" or not listing.is_file():
        return ""
    match = re.search(r"(?m)^flags\s*:(.*)$", listing.read_text())
    return match[1] if match else ""


def processor_features() -> frozenset[str]:
    """Instruction sets of this x86-64 processor by their Linux names, such as ``avx2``; none on another one."""
    return frozenset(_features(platform.machine()).split())


def _processor() -> str:
    """Digest of the processor's instruction sets, on which -march=native depends; "" where that option is not used
    (other processors spell it differently)."""
    features = _features(platform.machine())
    return digest(features)[:16] if features else ""


@lru_cache(maxsize=4)
def _compiler(programs: tuple[str, ...], path: str) -> Compiler:
    """The first of the compilers that is found on `path` (an argument because it decides the answer)."""
    program = next((name for name in programs if shutil.which(name, path=path)), None)
    if program is None:
        named = " or ".join(repr(name) for name in programs)
        raise BuildError(f"C++ compiler {named} was not found: apt-get install g++, or set CXX to a C++17 compiler")
    try:
        asked = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    except OSError as e:
        raise BuildError(f"C++ compiler {program!r} must be a program (set CXX), got: {e.strerror}") from None
    return Compiler(program, asked.stdout.splitlines()[0] if asked.stdout else "?", _processor())


def find_compiler() -> Compiler:
    """The compiler that CXX names, else g++, else clang++. Raises BuildError where it is missing."""
    chosen = os.environ.get("CXX")
    return _compiler((chosen,) if chosen else COMPILERS, os.environ.get("PATH", os.defpath))


def missing() -> str | None:
    """Say in one line why nothing can be compiled; None if there is a compiler."""
    try:
        find_compiler()
    except BuildError as e:
        return str(e)
    return None


def run_tool(command: Sequence[str | Path], what: str, **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run a tool.

    Parameters
    ----------
    command : sequence of str or Path
    what : str
        Task of the tool, for the message.
    **options
        Passed on to subprocess.run.

    Raises
    ------
    BuildError
        If the tool fails, with the first lines of its complaint.
    OSError
        If the tool fails because the disk is full; its file is the folder in which the tool ran.
    """
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    if done.returncode:
        full = os.strerror(errno.ENOSPC)
        if full in done.stderr + done.stdout:
            raise OSError(errno.ENOSPC, full, str(options.get("cwd", os.curdir)))
        said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        raise BuildError(f"{what} failed (exit status {done.returncode}):\n" + "\n".join(said[:20]))
    return done


def read_written(path: Path) -> Any:
    """Read a JSON file that a tool wrote.

    Raises
    ------
    OSError
        If the file is cut short: Verilator, and a tool in WebAssembly, end as if nothing were wrong where the disk is
        full.
    """
    try:
        return json.loads(path.read_bytes())
    except ValueError:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from None


def digest(*parts: str | bytes) -> str:
    """SHA-256 over the parts, each with its length, as 40 hex digits."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()[:40]


def library(sources: Sequence[Path], *, includes: Sequence[Path] = (), flags: Sequence[str] = ()) -> ctypes.CDLL:
    """Compile C++17 sources to a shared library, or find it in the cache.

    A function is exported by ``extern "C"`` and ``__attribute__((visibility("default")))``.

    Parameters
    ----------
    sources : sequence of Path
    includes : sequence of Path
        Files that the sources include: their content is in the key, their folders are searched.
    flags : sequence of str
        Further flags of the compiler, after LIBRARY_FLAGS; `Compiler.flags` for this machine alone.

    Raises
    ------
    BuildError
        If there is no compiler, if it refuses a source, or if the cache can't be written.
    """
    compiler = find_compiler()
    files = [*sources, *includes]
    folders = dict.fromkeys(f"-I{path.parent}" for path in includes)
    options = [*LIBRARY_FLAGS, *flags]
    key = digest(repr(compiler), repr(options), *(part for path in files for part in (path.name, path.read_bytes())))

    def build(folder: Path) -> None:
        what = f"{compiler.program} {' '.join(path.name for path in sources)}"
        run_tool([compiler.program, *options, *folders, *sources, "-o", "library.so"], what, cwd=folder)

    try:
        path = cached_folder("native", key, build) / "library.so"
    except OSError as e:
        raise BuildError(str(e)) from None
    try:
        return ctypes.CDLL(str(path))
    except OSError as e:
        raise BuildError(f"{path}: must be a library that can be run (set BITLOOM_CACHE), got: {e}") from None
