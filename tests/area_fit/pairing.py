"""How far LUTs in pairs are from what Vivado makes: ``python -m tests.area_fit.pairing``, a minute.

PicoRV32's authors publish LUTs of three cores by Vivado 2017.3, for xc7k70t in the README, with the Verilog of these
cores beside it (``pip install pythondata-cpu-picorv32``). Both counts have the LUTs of memories in them.
"""

import importlib.util
import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from bitloom.golden.atomic import write_scratch
from bitloom.overlay.area.pairing import with_pairs
from bitloom.overlay.area.yosys import run_yosys

PACKAGE = "pythondata_cpu_picorv32"
SCRIPT = """
read_verilog -sv picorv32.v
read_verilog tops.v
synth_xilinx -family xc7 -noiopad -noclkbuf -flatten -top top_{core}
write_json {core}.json
"""


def sources() -> Path | None:
    """Folder of the cores; None where the package is missing."""
    spec = importlib.util.find_spec(PACKAGE)
    return Path(spec.origin).parent / "verilog" if spec and spec.origin else None


def published(folder: Path) -> dict[str, int]:
    """Slice LUTs by core, from the README."""
    rows = re.findall(r"^\| PicoRV32 \((\w+)\) +\| +(\d+) \|", (folder / "README.md").read_text("utf-8"), re.M)
    return {core: int(luts) for core, luts in rows}


def compared(folder: Path) -> dict[str, tuple[int, int, int]]:
    """By core: LUTs as published, those of Yosys, and those in pairs."""
    table = {}
    for core, luts in published(folder).items():
        with TemporaryDirectory() as scratch:
            work = Path(scratch)
            write_scratch(work / "picorv32.v", (folder / "picorv32.v").read_text())
            write_scratch(work / "tops.v", (folder / "scripts" / "vivado" / "synth_area_top.v").read_text())
            run_yosys(SCRIPT.format(core=core), work, core)
            module = json.loads((work / f"{core}.json").read_text())["modules"][f"top_{core}"]
        area = with_pairs(module)
        table[core] = luts, area.lut + area.lutram, area.device_lut
    return table


if __name__ == "__main__":
    cores = sources()
    if cores is None:
        raise SystemExit(f"{PACKAGE} was not found: pip install {PACKAGE.replace('_', '-')}")
    for core, (luts, plain, paired) in compared(cores).items():
        counts = f"Yosys {plain:,} ({plain / luts - 1:+.0%}), in pairs {paired:,} ({paired / luts - 1:+.0%})"
        print(f"{core:8} Vivado {luts:,}, {counts}")
