"""The command area: what a design takes of an FPGA."""

from typing import Any

import click

from bitloom.overlay.area.netlist import Resources
from bitloom.overlay.area.synthesis import PATHS, Area, area
from bitloom.overlay.platform.boards import RESOURCES, how_large, smallest_board

from .option_groups import GroupedCommand
from .options import design_names, design_options, words_or_paths
from .progress import working
from .show import dump, grid, json_option
from .subject import design_of

COLUMNS = {"lut": "LUT", "paired_lut": "in pairs", **{key: name for key, name in RESOURCES.items() if key != "lut"}}
"""Resources that the table shows, and their headings; of LUTs those with one function each, and those that a device
takes."""

SHARE = 0.01
"""Modules with less than this share of the LUTs, and without block RAM and DSP, are left out of the table."""


@click.command("area", cls=GroupedCommand)
@click.argument("source", metavar="DESIGN|NETWORK|FOLDER", shell_complete=words_or_paths(design_names))
@design_options
@click.option("--paths", type=click.IntRange(0, PATHS), default=5, help="Longest paths to show.")
@json_option
def area_command(source: str, paths: int, as_json: bool, **options: Any) -> None:
    """Estimate LUTs, registers, block RAM, DSPs and logic depth by yosys, for Xilinx 7 series.

    Takes a build's FOLDER; or a reference DESIGN or a NETWORK, a name of ours or a model file (.npz), as build does.
    LUTs of logic are counted as Yosys makes them, and in pairs, as a device does, with two functions in one LUT where
    their inputs allow it: an estimate. Modules are synthesised one by one; the total is that of the flattened design.
    Below the table stands the smallest board whose device holds it. Minutes for a large one, the first time.
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
    grid("area of one instance, with what is in it", ["module", "instances", *COLUMNS.values(), "own LUT"], rows)
    board = smallest_board(estimate.total)
    shares = ", ".join(f"{share:.0%} {RESOURCES[key]}" for key, share in board.shares(estimate.total).items())
    told = how_large(board.holds(estimate.total))
    click.echo(f"{board.name}, {told}: {shares}; LUTs in pairs, those of memory among them")
    if paths:
        longest = [[p.end, p.start, str(p.levels)] for p in estimate.paths[:paths]]
        grid(f"longest paths: {estimate.levels} levels", ["to", "from", "levels"], longest, labels=2)


def _figures(resources: Resources) -> list[str]:
    """Cells for COLUMNS."""
    return [f"{getattr(resources, key):,}".removesuffix(".0") for key in COLUMNS]
