"""Area and logic depth of a design, by Yosys for Xilinx 7 series (synth_xilinx): an estimate without place and route.

    Verilog for synthesis --> yosys, with hierarchy --> resources of each module
                         `--> yosys, flattened -------> resources in all, longest paths

Modules are synthesised one by one, so that their sum differs a little from the total. The total is that of the
flattened design, in which constants and shared logic cross the borders of modules. netlist.py says what a level is,
and pairing.py which LUTs a device counts.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bitloom.golden.atomic import write_scratch
from bitloom.golden.kernels.cache import cached_folder
from bitloom.golden.kernels.native import digest, read_written
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import TOP
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.steps import step

from . import netlist, pairing
from .netlist import LogicPath, Resources
from .yosys import bare, run_yosys, yosys_version

VERSION = "1"
"""Version of what is kept in the cache."""

PATHS = 40
"""Paths that are kept."""
SCRIPT = """
read_verilog -sv design.v
synth_xilinx -family xc7 -noiopad -noclkbuf -top {top}
write_json blocks.json
design -reset
read_verilog -sv design.v
synth_xilinx -family xc7 -noiopad -noclkbuf -flatten -top {top}
write_json flat.json
"""


@dataclass(frozen=True)
class BlockArea:
    """Area of all instances of one module."""

    module: str
    """The module's name, with the values of its parameters where it has any."""
    instances: int
    """How many there are."""
    alone: Resources
    """Of one instance, without the modules inside it."""
    each: Resources
    """Of one instance, with the modules inside it."""


@dataclass(frozen=True)
class Area:
    """Area of a design."""

    total: Resources
    """Of the flattened design."""
    blocks: tuple[BlockArea, ...]
    """Of each module, the largest first."""
    paths: tuple[LogicPath, ...]
    """Paths between registers, the longest first."""

    @property
    def levels(self) -> int:
        """LUT levels on the longest path between registers."""
        return self.paths[0].levels if self.paths else 0

    def to_dict(self) -> dict[str, Any]:
        """JSON data."""
        blocks = [
            {"module": b.module, "instances": b.instances, "own": asdict(b.alone), "each": asdict(b.each)}
            for b in self.blocks
        ]
        paths = [asdict(p) for p in self.paths]
        return {
            **asdict(self.total),
            "paired_lut": self.total.paired_lut,
            "levels": self.levels,
            "blocks": blocks,
            "paths": paths,
        }


def area(design: Design) -> Area:
    """Area of a design, as its Verilog for synthesis has it.

    Raises
    ------
    BuildError
        If Yosys is missing or fails.
    """
    return area_of(bare(generate(design, target="synthesis", checked=False).text), TOP)


def area_of(verilog: str, top: str) -> Area:
    """Area of one module.

    Parameters
    ----------
    verilog
        The module and those inside it.
    top
        Its name.

    Returns
    -------
    Area
        From the cache where it has been worked out before.

    Raises
    ------
    BuildError
        If Yosys is missing or fails.
    """
    script = SCRIPT.format(top=top)
    source = b"".join(Path(path).read_bytes() for path in (netlist.__file__, pairing.__file__, __file__))
    key = digest(VERSION, yosys_version(), script, verilog, source)

    def make(folder: Path) -> None:
        write_scratch(folder / "design.v", verilog)
        with step(f"synthesis of {top} by Yosys"):
            run_yosys(script, folder, f"synthesis of {top}")
        summary = _summary(*(read_written(folder / f"{kind}.json") for kind in ("blocks", "flat")), top)
        for path in folder.iterdir():
            path.unlink()
        write_scratch(folder / "area.json", json.dumps(summary))

    summary = json.loads((cached_folder("area", key, make) / "area.json").read_text())
    blocks = [
        BlockArea(b["module"], b["instances"], Resources(**b["alone"]), Resources(**b["each"]))
        for b in summary["blocks"]
    ]
    paths = [LogicPath(p["levels"], p["start"], p["end"], tuple(p["through"])) for p in summary["paths"]]
    return Area(Resources(**summary["total"]), tuple(blocks), tuple(paths))


def _summary(blocks: Mapping[str, Any], flat: Mapping[str, Any], top: str) -> dict[str, Any]:
    """The figures of the two netlists that are kept."""
    cells = {name: netlist.count(module) for name, module in blocks["modules"].items() if not netlist.is_cell(module)}
    alone = {name: pairing.with_pairs(blocks["modules"][name]) for name in cells}
    instances: Counter[str] = Counter()
    each: dict[str, Resources] = {}

    def visit(name: str, times: int) -> Resources:
        instances[name] += times
        inside = [visit(child, times * n) * n for child, n in cells[name].items() if child in cells]
        each[name] = sum(inside, alone[name])
        return each[name]

    visit(top, 1)
    labels = {name: netlist.module_name(name, blocks["modules"][name]) for name in instances}
    order = sorted(instances, key=lambda name: (-each[name].lut * instances[name], labels[name]))
    module = flat["modules"][top]
    return {
        "total": asdict(pairing.with_pairs(module)),
        "blocks": [
            {
                "module": labels[name],
                "instances": instances[name],
                "alone": asdict(alone[name]),
                "each": asdict(each[name]),
            }
            for name in order
        ],
        "paths": [asdict(path) for path in netlist.longest_paths(module, PATHS)],
    }
