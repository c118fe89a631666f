"""The commands bench, of designs (cpu and gpu: bench_conv.py), and orders: what the orders of a network's maps cost."""

from pathlib import Path
from typing import Any

import click

from bitloom.golden import zoo as networks
from bitloom.overlay.build.designs import REFERENCES, folding, reference
from bitloom.overlay.study import designs as benches
from bitloom.overlay.study.map_orders import TOTALS, orders

from .bench_conv import cpu, gpu
from .show import bar, dump, grid, json_option, one_line_errors, working

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


class _DesignsByDefault(click.Group):
    """A group in which arguments that begin with no command's name are those of ``designs``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        known = args and (args[0] in self.commands or args[0] in self.get_help_option_names(ctx))
        return super().parse_args(ctx, args if known else ["designs", *args])


@click.group(cls=_DesignsByDefault)
def bench() -> None:
    """Measure the reference designs, by simulation, or the packed convolution on a processor or a GPU.

    bench NAME... is short for bench designs NAME..., and bench alone measures all designs. All take --json.
    """


bench.add_command(cpu)
bench.add_command(gpu)


@bench.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--frames", type=click.IntRange(2), default=benches.FRAMES, help="Frames of the longer batch, an even number."
)
@click.option("--area", is_flag=True, help="Also LUT, flip-flops, block RAM, DSP and logic levels, by Yosys.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=benches.FOLDER, help="Builds go here.")
@json_option
@one_line_errors
def designs(names: tuple[str, ...], frames: int, area: bool, out: Path, as_json: bool) -> None:
    """Measure the reference designs: bit-exactness, cycles, waits and latency, all by simulation.

    NAMEs pick some of the designs. Cycles are those of a steady stream of frames; they are the same on every machine.
    """
    chosen = {name: reference(name) for name in dict.fromkeys(names or REFERENCES)}
    done: list[benches.Figures] = []
    for name, design in chosen.items():
        with bar(f"{name}: building and running") as update:
            figures, build = benches.measure(name, design, frames, out, update)
        if area:
            with working(f"{name}: synthesis"):
                figures |= benches.area_figures(build.design)
        done.append(figures)
    if as_json:
        dump(done)
    else:
        shown = ROWS | ({key: key for key in benches.AREA} if area else {})
        rows = [[heading, *(_text(key, figures[key]) for figures in done)] for key, heading in shown.items()]
        grid("reference designs, simulated", ["", *(figures["name"] for figures in done)], rows)
    wrong = [f"{figures['name']} ({figures['mismatches']})" for figures in done if figures["mismatches"]]
    if wrong:
        raise ValueError(f"bench: every frame must equal golden, got others in {', '.join(wrong)}")


@click.command("orders")
@click.argument("network")
@json_option
@one_line_errors
def orders_command(network: str, as_json: bool) -> None:
    """Compare the orders of NETWORK's maps: tuples and table bits of each layer, pulled and row-major.

    NETWORK is a name of ours or a model file (.npz).
    """
    model = networks.find(network)
    found = orders(model, folding(model))
    if as_json:
        dump(found)
        return
    both = list(found["totals"])
    header = ["layer", *(f"{order}: {what}" for order in both for what in ("tuples", "table bits"))]
    keys = ("tuples", "table_bits")
    rows = [[layer["name"], *(f"{layer[order][key]:,}" for order in both for key in keys)] for layer in found["layers"]]
    grid(f"{found['network']}: orders of the maps", header, rows)
    rows = [[key.replace("_", " "), *(f"{found['totals'][order][key]:,}" for order in both)] for key in TOTALS]
    grid(f"in all; auto takes {found['auto']}", ["", *both], rows)


def _text(key: str, value: Any) -> str:
    if key == "utilisation":
        return f"{value:.2%}"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
