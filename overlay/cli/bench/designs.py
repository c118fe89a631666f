"""The command bench designs: figures of the reference designs."""

from pathlib import Path

import click

from bitloom.overlay.area.netlist import Resources
from bitloom.overlay.build.reference_designs import REFERENCE_DESIGNS, reference_design
from bitloom.overlay.cli.options import out_option
from bitloom.overlay.cli.progress import bar, working
from bitloom.overlay.cli.show import dump, json_option
from bitloom.overlay.study import design_figures as benches
from bitloom.overlay.timing.design_clock import HOW, clock_figures

from .figures import TITLES, check_exact, show_figures

SHOWN = [key for key in TITLES if key != "weights"]
"""Figures that the table shows."""
CLOCK = {"estimated_mhz": "MHz, estimated", "frames_per_second_at_it": "frames a second at it"}
"""Figures that the table shows with --clock, and their headings."""


@click.command("designs")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--frames", type=click.IntRange(2), default=benches.FRAMES, help="Frames of the longer batch, an even number."
)
@click.option("--area", is_flag=True, help="Also LUT, flip-flops, block RAM, DSP and logic levels, by Yosys.")
@click.option("--clock", is_flag=True, help="Also the clock by the estimate of `bitloom timing`, and frames a second.")
@out_option(benches.FOLDER, "Builds go here.")
@json_option
def designs_command(names: tuple[str, ...], frames: int, area: bool, clock: bool, out: Path, as_json: bool) -> None:
    """Measure the reference designs: bit-exactness, cycles, waits and latency, all by simulation.

    NAMEs pick some of the designs. Cycles are those of a steady stream of frames; they are the same on every machine.
    """
    chosen = {name: reference_design(name) for name in dict.fromkeys(names or REFERENCE_DESIGNS)}
    done: list[benches.FigureTable] = []
    for name, design in chosen.items():
        with bar(f"{name}: building and running") as update:
            figures, build = benches.measure_design(name, design, frames, out, update)
        if area:
            with working(f"{name}: synthesis"):
                figures |= benches.area_figures(build.design)
        if clock:
            with working(f"{name}: synthesis for the clock"):
                figures |= clock_figures(build.design, figures["cycles_per_frame"])
        done.append(figures)
    if as_json:
        dump(done)
    else:
        titles = {key: TITLES[key] for key in SHOWN}
        if area:
            titles |= {key: key for key in (*Resources().figures, "levels")}
        if clock:
            titles |= CLOCK
        show_figures("reference designs, simulated", done, titles, places=2)
        if clock:
            click.echo(f"clock: {HOW}")
    check_exact(done)
