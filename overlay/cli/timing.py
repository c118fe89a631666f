"""The command timing: how fast a design can be clocked."""

from dataclasses import asdict
from typing import Any

import click

from bitloom.hls_gen.design.manifest import TOP
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.area.yosys import bare
from bitloom.overlay.timing.estimate import GRADES, WORST_ERROR, Estimate, estimate
from bitloom.overlay.timing.routed import Routed, routed

from .option_groups import GroupedCommand
from .options import design_names, design_options, words_or_paths
from .progress import working
from .show import dump, grid, json_option
from .subject import design_of


@click.command("timing", cls=GroupedCommand)
@click.argument("source", metavar="DESIGN|NETWORK|FOLDER", shell_complete=words_or_paths(design_names))
@design_options
@click.option("--grade", type=click.Choice(list(GRADES)), default="artix7-1", help="Family and grade of the estimate.")
@click.option("--routed/--no-routed", "route", default=True, help="Place and route the design on an ECP5, too.")
@click.option("--seed", type=click.IntRange(0), default=1, help="Of the placer.")
@click.option("--paths", type=click.IntRange(0, 20), default=5, help="Longest paths of the estimate to show.")
@json_option
def timing_command(source: str, grade: str, route: bool, seed: int, paths: int, as_json: bool, **options: Any) -> None:
    """Tell how fast a design can be clocked: routed on an ECP5, and estimated for Xilinx 7 series.

    Takes a build's FOLDER; or a reference DESIGN or a NETWORK, a name of ours or a model file (.npz), as build does.
    The estimate is made of Yosys's netlist, public delays of cells and a model of wires; it is no sign-off, which needs
    Vivado. Minutes for a large design, the first time.
    """
    verilog = bare(generate(design_of(source, options), target="synthesis", checked=False).text)
    with working("synthesis for 7 series (minutes for a large design)"):
        guess = estimate(verilog, TOP, grade=grade)
    route_result = None
    if route:
        with working("synthesis, place and route for ECP5 (minutes for a large design)"):
            route_result = routed(verilog, TOP, seed=seed)
    if as_json:
        dump(_json(guess, route_result))
        return
    rows = [["estimate", grade, f"{guess.mhz:.0f}", f"{guess.ns:.2f}", f"off by up to {WORST_ERROR:.0%}"]]
    if route_result:
        rows.append(
            ["routed", route_result.device, f"{route_result.mhz:.1f}", f"{1000 / route_result.mhz:.2f}", "nextpnr"]
        )
    grid(f"{source}: clock", ["", "device", "MHz", "ns", "by"], rows)
    if paths:
        longest = [[p.end, p.start, f"{p.ns:.2f}", f"{p.cells_ns:.2f}"] for p in guess.paths[:paths]]
        grid("longest paths of the estimate", ["to", "from", "ns", "of these in cells"], longest, labels=2)
    if route_result and paths:
        p = route_result.path
        path = [[p.start, "begins"], *([name, ""] for name in p.through), [p.end, "ends"]]
        grid(f"longest path as routed: {p.ns:.2f} ns, {p.cells_ns:.2f} of these in cells", ["net or cell", ""], path)


def _json(guess: Estimate, route_result: Routed | None) -> dict[str, Any]:
    """The data that ``--json`` prints."""
    paths = [asdict(p) for p in guess.paths]
    return {
        "estimate": {"grade": guess.grade, "mhz": guess.mhz, "ns": guess.ns, "error": WORST_ERROR, "paths": paths},
        "routed": asdict(route_result) if route_result else None,
    }
