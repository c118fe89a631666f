"""The command area: what a design takes of an FPGA."""

from dataclasses import asdict
from typing import Any

import click

from bitloom.overlay.area.netlist import Resources
from bitloom.overlay.area.synthesis import PATHS, Area, area
from bitloom.overlay.platform.boards import RESOURCES

from .option_groups import GroupedCommand
from .options import design_options
from .progress import working
from .show import dump, grid, json_option, one_line_errors
from .subject import design_of

COLUMNS = {"lut": RESOURCES["lut"], "lutram": "LUT RAM", **RESOURCES}
"""What the table shows of the resources, and its heading."""

SHARE = 0.01
"""Modules with less than this share of the LUTs, and without block RAM and DSP, are left out of the table."""


@click.command("area", cls=GroupedCommand)
@click.argument("source", metavar="DESIGN|NETWORK|FOLDER")
@design_options
@click.option("--paths", type=click.IntRange(0, PATHS), default=5, help="Longest paths to show.")
@json_option
@one_line_errors
def area_command(source: str, paths: int, as_json: bool, **options: Any) -> None:
    """Estimate LUTs, registers, block RAM, DSPs and logic depth by yosys, for Xilinx 7 series.

    Takes a build's FOLDER; or a reference DESIGN or a NETWORK, a name of ours or a model file (.npz), as build does.
    LUTs are counted as Yosys makes them; the last row has them as a device does, with two functions in one LUT where
    their inputs allow it: an estimate. Modules are synthesised one by one; the total is that of the flattened design.
    Minutes for a large one, the first time.
    """
    with working("synthesis (minutes for a large design)"):
        estimate = area(design_of(source, options))
    if as_json:
        dump(estimate.to_dict())
        return
    show_area(estimate, paths)


def show_area(estimate: Area, paths: int) -> None:
    """Print the area of each module, and so many of the longest paths."""
    rows = []
    for block in estimate.blocks:
        if block.each.bram36 or block.each.dsp or block.each.lut * block.instances >= SHARE * estimate.total.lut:
            rows.append([block.module, str(block.instances), *_figures(block.each), *_figures(block.alone)[:1]])
    rows.append(["whole design, flattened", "1", *_figures(estimate.total), ""])
    rows.append(["its LUTs, in pairs", "", f"{estimate.paired_lut:,}", *[""] * len(COLUMNS)])
    grid("area of one instance, with what is in it", ["module", "instances", *COLUMNS.values(), "own LUT"], rows)
    if paths:
        longest = [[p.end, p.start, str(p.levels)] for p in estimate.paths[:paths]]
        grid(f"longest paths: {estimate.levels} levels", ["to", "from", "levels"], longest, labels=2)


def _figures(resources: Resources) -> list[str]:
    """Cells for COLUMNS."""
    values = asdict(resources)
    return [f"{values[key]:,}".removesuffix(".0") for key in COLUMNS]
