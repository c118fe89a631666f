"""The command bench designs: figures of the reference designs."""

from pathlib import Path
from typing import Any

import click

from bitloom.overlay.build.reference_designs import REFERENCE_DESIGNS, reference_design
from bitloom.overlay.cli.options import out_option
from bitloom.overlay.cli.progress import bar, working
from bitloom.overlay.cli.show import dump, grid, json_option, one_line_errors
from bitloom.overlay.study import design_figures as benches
from bitloom.overlay.timing.design_clock import HOW, clock_figures

ROWS = {
    "npus": "NPUs",
    "lanes": "lanes",
    "xnor_lanes": "XNOR lanes",
    "frames": "frames",
    "mismatches": "frames unlike golden",
    "cycles_per_frame": "cycles a frame",
    "ideal_cycles_per_frame": "ideal",
    "utilisation": "utilisation",
    "wait_input_per_frame": "waits for input",
    "wait_room_per_frame": "waits for room",
    "wait_table_per_frame": "waits for tables",
    "latency_cycles": "latency, cycles",
}
"""What the table shows of the figures, and what it calls them."""
CLOCK = {"estimated_mhz": "MHz, estimated", "frames_per_second_at_it": "frames a second at it"}
"""The same with --clock."""


@click.command("designs")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--frames", type=click.IntRange(2), default=benches.FRAMES, help="Frames of the longer batch, an even number."
)
@click.option("--area", is_flag=True, help="Also LUT, flip-flops, block RAM, DSP and logic levels, by Yosys.")
@click.option("--clock", is_flag=True, help="Also the clock by the estimate of `bitloom timing`, and frames a second.")
@out_option(benches.FOLDER, "Builds go here.")
@json_option
@one_line_errors
def designs_command(names: tuple[str, ...], frames: int, area: bool, clock: bool, out: Path, as_json: bool) -> None:
    """Measure the reference designs: bit-exactness, cycles, waits and latency, all by simulation.

    NAMEs pick some of the designs. Cycles are those of a steady stream of frames; they are the same on every machine.
    """
    chosen = {name: reference_design(name) for name in dict.fromkeys(names or REFERENCE_DESIGNS)}
    done: list[benches.Figures] = []
    for name, design in chosen.items():
        with bar(f"{name}: building and running") as update:
            figures, build = benches.measure(name, design, frames, out, update)
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
        shown = ROWS | ({key: key for key in benches.AREA} if area else {}) | (CLOCK if clock else {})
        rows = [[heading, *(_text(key, figures[key]) for figures in done)] for key, heading in shown.items()]
        grid("reference designs, simulated", ["", *(figures["name"] for figures in done)], rows)
        if clock:
            click.echo(f"clock: {HOW}")
    wrong = [f"{figures['name']} ({figures['mismatches']})" for figures in done if figures["mismatches"]]
    if wrong:
        raise ValueError(f"bench: every frame must equal golden, got others in {', '.join(wrong)}")


def _text(key: str, value: Any) -> str:
    """A figure as the table shows it."""
    if key == "utilisation":
        return f"{value:.2%}"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
