"""How the wire model was fitted, and how far the estimate is off: cores whose frequency others have published.

    python -m tests.clock_fit         prints the errors; minutes
    python -m tests.clock_fit --fit   and fits the wire model anew, also without each core in turn

The cores come from PyPI: ``pip install pythondata-cpu-picorv32 pythondata-cpu-vexriscv``. Their authors routed them
with Vivado, whose synthesis makes other logic than Yosys does; the wire model takes up the difference in the mean. The
variants of VexRiscv in the package are near those of the table of its README, but not the same (``what`` says in what
they differ), so that part of the error is theirs.
"""

import importlib.util
import json
import math
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bitloom.golden.atomic import write_scratch
from bitloom.overlay.area.yosys import run_yosys
from bitloom.overlay.timing.analysis import timed_paths
from bitloom.overlay.timing.estimate import GRADES, SCRIPT, WIRES, estimate
from bitloom.overlay.timing.wires import GROWTH, WireModel


@dataclass(frozen=True)
class PublishedCore:
    """A core with a frequency that was routed by Vivado.

    Attributes
    ----------
    name, package, path, top, prepare
        The core; the Python package that has it, the file in it, its top module, and Yosys's commands before synthesis.
    grade
        Family and speed grade, one of `bitloom.overlay.timing.estimate.GRADES`.
    mhz
        What was published.
    what
        Where, and what differs.
    """

    name: str
    package: str
    path: str
    top: str
    grade: str
    mhz: float
    what: str
    prepare: str = ""

    def verilog(self) -> str:
        """The core's text. ImportError where its package is missing."""
        spec = importlib.util.find_spec(self.package)
        if spec is None or spec.origin is None:
            raise ImportError(f"{self.package} was not found: pip install {self.package.replace('_', '-')}")
        return (Path(spec.origin).parent / self.path).read_text()


VEX = ("pythondata_cpu_vexriscv", "VexRiscv", "README of VexRiscv, Artix-7 in the fastest grade")
PICO = ("picorv32_axi", "pythondata_cpu_picorv32", "verilog/picorv32.v", "picorv32_axi")
PICO_README = "README of PicoRV32, Vivado 2017.3, TWO_CYCLE_ALU"
TWO_CYCLES = "chparam -set TWO_CYCLE_ALU 1 picorv32_axi"


def _vex(variant: str, mhz: float, what: str) -> PublishedCore:
    """A variant of VexRiscv in the package, and the row of the README that it is nearest to."""
    package, top, source = VEX
    path = f"verilog/VexRiscv_{variant}.v"
    return PublishedCore(f"VexRiscv {variant}", package, path, top, "artix7-3", mhz, f"{source}: {what}")


CORES = (
    _vex("Min", 243, '"small", 504 LUT, 505 FF; this one has 856 FF'),
    _vex("Full", 199, '"full", 1,840 LUT, 1,158 FF; this one has 1,569 FF'),
    _vex("Linux", 180, '"linux balanced", 2,883 LUT, 2,130 FF; this one has 2,175 FF'),
    PublishedCore(*PICO, "kintex7-2", 1000 / 2.4, PICO_README, TWO_CYCLES),
    PublishedCore(*PICO, "kintex7-3", 1000 / 2.2, PICO_README, TWO_CYCLES),
)

ROUNDS, STEPS, PATHS = 4, 3000, 40


@dataclass
class _Paths:
    """A core's netlist, and the paths that were the longest ones for some wire model: cells' ns, nets, sum of log2."""

    module: dict[str, Any]
    luts: int
    paths: set[tuple[float, int, float]]

    def collect(self, model: WireModel) -> None:
        """Add the longest paths of this model."""
        for path in timed_paths(self.module, model, PATHS):
            self.paths.add((path.cells_ns, len(path.fan_outs), sum(map(math.log2, path.fan_outs))))

    def ns(self, model: WireModel) -> float:
        """The longest of the paths by this model."""
        size = (self.luts / 1000) ** GROWTH
        return max(cells + size * (model.base * nets + model.fan_out * logs) for cells, nets, logs in self.paths)


def _paths(core: PublishedCore) -> _Paths:
    """Synthesise a core."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_scratch(folder / "design.v", core.verilog())
        run_yosys(SCRIPT.format(top=core.top, prepare=core.prepare), folder, f"synthesis of {core.name}")
        module = json.loads((folder / "flat.json").read_text())["modules"][core.top]
    return _Paths(module, sum(cell["type"].startswith("LUT") for cell in module["cells"].values()), set())


def _error(core: PublishedCore, paths: _Paths, model: WireModel) -> float:
    """Estimated over published frequency, less 1."""
    return 1000 / (paths.ns(model) * GRADES[core.grade]) / core.mhz - 1


def fit(cores: Sequence[PublishedCore], netlists: Mapping[str, _Paths]) -> WireModel:
    """The wire model whose largest error over the cores is smallest, by random search from a fixed seed."""
    rng = random.Random(0)
    best = WIRES

    def worst(model: WireModel) -> float:
        return max(abs(_error(core, netlists[core.name], model)) for core in cores)

    for _ in range(ROUNDS):
        for core in cores:
            netlists[core.name].collect(best)
        least = worst(best)
        for step in range(STEPS):
            wide = 0.08 if step % 2 else 0.02
            tried = WireModel(*(max(0.0, value + rng.gauss(0, wide)) for value in (best.base, best.fan_out)))
            if (error := worst(tried)) < least:
                best = tried
                least = error
    return best


def errors() -> dict[str, float]:
    """Core and grade -> how far `bitloom.overlay.timing.estimate.WIRES` is off: estimated over published, less 1."""
    differences = {}
    for core in CORES:
        clock = estimate(core.verilog(), core.top, grade=core.grade, prepare=core.prepare)
        differences[f"{core.name}, {core.grade}"] = clock.mhz / core.mhz - 1
    return differences


def main() -> None:
    """Print the errors, and with --fit what a new fitting gives, also for each core when it is left out of the fit."""
    for name, error in errors().items():
        print(f"{name:32} {error:+.1%}")
    if "--fit" not in sys.argv[1:]:
        return
    netlists = {core.name: _paths(core) for core in CORES}
    print(fit(CORES, netlists))
    for name in netlists:
        model = fit([core for core in CORES if core.name != name], netlists)
        netlists[name].collect(model)
        left_out = [f"{core.grade} {_error(core, netlists[name], model):+.1%}" for core in CORES if core.name == name]
        print(f"{name} left out: {', '.join(left_out)}")


if __name__ == "__main__":
    main()
