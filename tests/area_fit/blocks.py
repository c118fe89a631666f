"""Area of a design's blocks of some kinds alone: seconds, where the whole design takes minutes.

    Verilog of the design --> the modules of those kinds, side by side --> yosys, with hierarchy --> resources of each

Yosys sees nothing else of the design, so that figures are found again in the cache after other modules have changed.
"""

import json
from collections import Counter
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

from bitloom.golden.atomic import write_scratch
from bitloom.golden.kernels.cache import cached_folder
from bitloom.golden.kernels.native import digest, read_written
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import TOP as DESIGN_TOP
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.area import netlist
from bitloom.overlay.area.netlist import Resources
from bitloom.overlay.area.synthesis import Area, BlockArea
from bitloom.overlay.area.yosys import bare, run_yosys, yosys_version

from .instances import Instance, bodies, children, instances
from .least_squares import matched

TOP = "side_by_side"
"""Module that has the others in it."""
SCRIPT = f"""
read_verilog -sv design.v
synth_xilinx -family xc7 -noiopad -noclkbuf -top {TOP}
write_json blocks.json
"""


def blocks(design: Design, kinds: Collection[str]) -> Area:
    """Area of the modules whose blocks are of some kinds, with those inside them.

    Parameters
    ----------
    design
        The design.
    kinds
        Kinds of blocks (area_block.py).

    Returns
    -------
    Area
        Blocks alone: the total is blank, and there are no paths. From the cache where it has been worked out before.

    Raises
    ------
    BuildError
        If Yosys is missing or fails.
    """
    text = bare(generate(design, target="synthesis", checked=False).text)
    every = instances(text, DESIGN_TOP)
    alone = {one: Area(Resources(), (BlockArea(one.name, 1, Resources(), Resources()),), ()) for one in every}
    wanted = [one for one, area in alone.items() if any(block.kind in kinds for block, _ in matched(design, area))]
    if not wanted:
        return Area(Resources(), (), ())
    placed = "\n".join(f"(* keep *) {one.verilog} one_{k} ();" for k, one in enumerate(wanted))
    verilog = "\n".join([*_with_those_inside(bodies(text), wanted), f"module {TOP};", placed, "endmodule\n"])
    source = Path(netlist.__file__).read_bytes() + Path(__file__).read_bytes()

    def make(folder: Path) -> None:
        write_scratch(folder / "design.v", verilog)
        run_yosys(SCRIPT, folder, f"synthesis of blocks of {design.name}")
        modules = read_written(folder / "blocks.json")["modules"]
        for path in folder.iterdir():
            path.unlink()
        ours = {name: module for name, module in modules.items() if not netlist.is_cell(module) and name != TOP}
        labels = {name: netlist.module_name(name, module) for name, module in ours.items()}
        counts = {
            labels[name]: {labels.get(cell, cell): n for cell, n in netlist.count(module).items()}
            for name, module in ours.items()
        }
        write_scratch(folder / "counts.json", json.dumps(counts))

    key = digest("2", yosys_version(), SCRIPT, verilog, source)
    counts = json.loads((cached_folder("blocks", key, make) / "counts.json").read_text())
    own = {name: netlist.resources(Counter(cells)) for name, cells in counts.items()}

    @cache
    def each(name: str) -> Resources:
        return sum((each(child) * n for child, n in counts[name].items() if child in own), own[name])

    return Area(Resources(), tuple(BlockArea(name, 1, own[name], each(name)) for name in own), ())


def _with_those_inside(bodies: Mapping[str, str], wanted: Collection[Instance]) -> list[str]:
    """The texts of some modules and of those that stand in them, in the design's order."""
    names = set()
    waiting = [one.module for one in wanted]
    while waiting:
        name = waiting.pop()
        if name not in names:
            names.add(name)
            waiting += [child.module for child in children(bodies, Instance(name))]
    return [body for name, body in bodies.items() if name in names]
