"""An estimate of the clock on Xilinx 7 series: the longest path through Yosys's netlist, with wires from a model.

Nothing is placed or routed. tests/clock_fit.py says how far the estimate is off for cores whose frequency others have
published; it is no sign-off.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from bitloom.golden.atomic import write_scratch
from bitloom.golden.kernels.cache import cached_folder
from bitloom.golden.kernels.native import digest, read_written
from bitloom.overlay.area import netlist
from bitloom.overlay.area.yosys import run_yosys, yosys_version

from . import analysis, cells, wires
from .analysis import TimedPath, timed_paths
from .wires import WireModel

WIRES = WireModel(base=0.148, fan_out=0.065)
"""Fitted by tests/clock_fit.py."""
WORST_ERROR = 0.06
"""No core of tests/clock_fit.py is further off than this; tests/overlay/timing/test_timing.py keeps it."""
PATHS = 20
"""Paths that are kept."""
SCRIPT = """
read_verilog -sv design.v
{prepare}
synth_xilinx -family xc7 -noiopad -noclkbuf -abc9 -flatten -top {top}
write_json flat.json
"""

GRADES = {
    "artix7-1": 1.0,
    "artix7-2": 0.866,
    "artix7-3": 0.752,
    "kintex7-2": 0.732,
    "kintex7-3": 0.638,
}
"""Family and speed grade -> its delays over those of Artix-7, grade -1, by the clock-to-out of block RAM in AMD's data
sheets: 2.46, 2.13, 1.85 ns for Artix-7 (DS181), 2.08, 1.80, 1.57 ns for Kintex-7 (DS182). The fabric of an xc7z020 is
Artix-7's.
"""


@dataclass(frozen=True)
class Estimate:
    """How fast a design may be clocked."""

    grade: str
    """One of GRADES."""
    paths: tuple[TimedPath, ...]
    """The longest paths between registers, the longest first, at that grade."""

    @property
    def ns(self) -> float:
        """Shortest clock period."""
        return self.paths[0].ns

    @property
    def mhz(self) -> float:
        """Highest clock frequency."""
        return 1000 / self.ns


def estimate(
    verilog: str, top: str, *, grade: str = "artix7-1", prepare: str = "", model: WireModel = WIRES
) -> Estimate:
    """Estimate the clock of one module.

    Parameters
    ----------
    verilog
        The module and those inside it.
    top
        Its name.
    grade
        One of GRADES.
    prepare
        Commands of Yosys between reading and synthesis.
    model
        Delays of wires.

    Returns
    -------
    Estimate
        From the cache where it has been worked out before.

    Raises
    ------
    BuildError
        If Yosys is missing or fails.
    ValueError
        If no path leads from a register to a register.
    """
    script = SCRIPT.format(top=top, prepare=prepare)
    source = b"".join(Path(str(module.__file__)).read_bytes() for module in (analysis, cells, wires, netlist))
    key = digest("1", yosys_version(), script, verilog, source, json.dumps(asdict(model)))

    def make(folder: Path) -> None:
        write_scratch(folder / "design.v", verilog)
        run_yosys(script, folder, f"synthesis of {top}")
        module = read_written(folder / "flat.json")["modules"][top]
        rows = [asdict(path) for path in timed_paths(module, model, PATHS)]
        for path in folder.iterdir():
            path.unlink()
        write_scratch(folder / "paths.json", json.dumps(rows))

    rows = json.loads((cached_folder("timing", key, make) / "paths.json").read_text())
    if not rows:
        raise ValueError(f"{top}: timing needs a path from a register to a register, got none")
    scale = GRADES[grade]
    return Estimate(
        grade,
        tuple(
            TimedPath(
                p["ns"] * scale, p["cells_ns"] * scale, p["start"], p["end"], tuple(p["fan_outs"]), tuple(p["through"])
            )
            for p in rows
        ),
    )
