"""The command explore: foldings for a network within a budget."""

import json
from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import Any

import click

from bitloom.golden import zoo as networks
from bitloom.golden.atomic import write_text
from bitloom.golden.layers.conv import Weighted
from bitloom.overlay.explore.budget import Budget
from bitloom.overlay.explore.estimate import error
from bitloom.overlay.explore.plot import plot
from bitloom.overlay.explore.search import HALVINGS, MAP_ORDERS, POINTS, Effort, Explored, explore
from bitloom.overlay.explore.tries import Row
from bitloom.overlay.explore.variations import setting_of
from bitloom.overlay.explore.workers import Workers
from bitloom.overlay.picture import check_plot
from bitloom.overlay.platform.board_file import find_board
from bitloom.overlay.platform.boards import Board
from bitloom.overlay.timing.design_clock import HOW, clock_figures

from .old_names import Command
from .options import FILE, OLD_OPTIONS, board_option, map_order_option, stream_bits_option
from .progress import bar, working
from .show import dump, grid, json_option, one_line_errors

HEADER = ["", "topology", "lanes", "cycles a frame", "frames a second", "latency, cycles", "LUT", "as RAM", "BRAM36",
          "DSP", "map order"]  # fmt: skip
RESOURCES = {"lut": "LUT", "ff": "FF", "bram36": "BRAM36", "dsp": "DSP"}
"""What a board's device has, by the budget's name."""


@click.command("explore", cls=Command, old_options=OLD_OPTIONS)
@click.argument("network")
@board_option("Budget: all of this board's device, but for a margin of its LUTs.")
@click.option(
    "--margin", type=click.FloatRange(0),
    help="LUTs kept free, in percent of the estimate.  [default: with --board, as much as it was off at most; else 0]",
)  # fmt: skip
@click.option("--lut", type=float, help="LUTs at most, those used as memory included.")
@click.option("--bram", "bram36", type=float, help="Block RAM at most, in units of 36 Kbit.")
@click.option("--dsp", type=float, help="DSP blocks at most.")
@click.option("--lanes", type=float, help="Lanes at most.")
@click.option("--cycles", type=float, help="Cycles a frame at most: the smallest design that keeps to it is chosen.")
@click.option("--rate", type=float, help="Frames a second at least, instead of --cycles; with --clock-mhz.")
@click.option("--clock-mhz", type=float, default=100.0, help="Clock for --rate and for frames a second.")
@click.option("--latency", type=float, help="Latency at most, in cycles.")
@stream_bits_option("64")
@map_order_option(*MAP_ORDERS, default="both")
@click.option("--points", type=click.IntRange(1), default=POINTS, help="Intervals of the sweep.")
@click.option(
    "--halvings",
    type=click.IntRange(0),
    default=HALVINGS,
    help="How often to try between the fastest interval that fits and the next shorter one: more find more.",
)
@click.option("--jobs", type=click.IntRange(1), default=1, help="Processes at work.")
@click.option("--scheduler", help="Address of a Dask scheduler whose workers do the jobs.")
@click.option("--plot", "picture", type=FILE, help="Write a picture of the front, .png or .svg.")
@click.option("--save", type=FILE, help="Write the chosen design's foldings, JSON.")
@click.option("--synthesise", is_flag=True, help="Also the chosen design's area by Yosys, and clock (minutes).")
@json_option
@one_line_errors
def explore_command(
    network: str,
    stream_bits: str,
    map_order: str,
    points: int,
    halvings: int,
    jobs: int,
    scheduler: str | None,
    picture: Path | None,
    save: Path | None,
    synthesise: bool,
    as_json: bool,
    **budget: Any,
) -> None:
    """Search foldings for NETWORK: NPUs, their layers, lanes and memories, within a budget or for a rate.

    NPUs are joined to pipelines, cascades and rings; they have tables or counters, either dataflow, and where a network
    needs or allows it both engines.

    NETWORK is a name of ours or a model file (.npz). Shows the Pareto front: designs that no other beats in both cycles
    a frame and LUTs. Cycles and latency are those of the flow model, area is by formula.
    """
    limit = _budget(**budget)
    on = find_board(budget["board_name"]) if budget["board_name"] else None
    if picture is not None:
        check_plot(picture)
    model = networks.find(network)
    name = model.network.name
    effort = Effort(points=points, halvings=halvings, workers=Workers(jobs, scheduler))
    with bar(f"{name}: searching", "intervals") as update:
        found = explore(model, limit, stream_bits=int(stream_bits), map_order=map_order, effort=effort, progress=update)
    if picture is not None:
        plot(picture, f"{name}: cycles a frame against LUTs", found.front, found.best, limit.lut)
    if save is not None:
        _save(found, limit, name, save)
    measured = _measured(found, model, name) if synthesise and found.best else None
    if as_json:
        dump({"network": name, "front": [row.to_dict() for row in found.front],
              "best": found.best and found.best.to_dict(), "nearest": found.nearest and found.nearest.to_dict(),
              "budget": {key: value for key, value in asdict(limit).items() if value is not None},
              "model_error": error(), "synthesised": measured, "tried": found.tried,
              "varied": list(found.varied)})  # fmt: skip
        return
    _show_front(name, found, on, budget["clock_mhz"])
    click.echo(f"{found.tried} designs were tried; varied beside the foldings: {', '.join(found.varied)}")
    _show_budget(found, limit, on, budget["clock_mhz"])
    if measured is not None:
        _show_measured(measured)
    if found.best is not None:
        _show_npus(found.best, [layer.name for layer in model.network.layers if isinstance(layer, Weighted)])


def _budget(
    board_name: str | None, margin: float | None, rate: float | None, clock_mhz: float, **limits: float | None
) -> Budget:
    """The limits that the options say; a rate becomes cycles a frame, and LUTs are fewer by the margin."""
    for name, value in (("rate", rate), ("clock-mhz", clock_mhz)):
        if value is not None and not 0 < value < inf:
            raise ValueError(f"explore: {name} must be a number > 0, got {value}")
    if rate is not None:
        if limits["cycles"] is not None:
            raise ValueError("explore: give --cycles or --rate, not both")
        limits["cycles"] = clock_mhz * 1e6 / rate
    if margin is not None and not (board_name or limits["lut"]):
        raise ValueError(f"explore: --margin is one of LUTs, it needs --board or --lut, got {margin:g} alone")
    if limits["lut"] is not None:
        limits["lut"] /= 1 + (margin or 0) / 100
    share = error()["worst"] if margin is None else margin / 100
    return Budget.of_board(find_board(board_name), share, **limits) if board_name else Budget(**limits)


def _save(found: Explored, limit: Budget, name: str, path: Path) -> None:
    """Write the chosen design's foldings."""
    if found.best is None:
        raise ValueError(f"{name}: no design fits the budget, nothing was written to {path}: {_missed(found, limit)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(found.best.candidate.to_dict(), indent=1) + "\n")


def _measured(found: Explored, model: Any, name: str) -> dict[str, Any]:
    """The chosen design's area by Yosys."""
    from bitloom.overlay.area.synthesis import area

    assert found.best is not None
    with working("synthesis (minutes for a large design)"):
        design = found.best.candidate.design(model, name)
        total = area(design).total
        clock = clock_figures(design, found.best.figures.cycles)
    return {"lut": total.lut, "lutram": total.lutram, "ff": total.ff, "bram36": total.bram36, "dsp": total.dsp, **clock}


def _show_measured(measured: dict[str, Any]) -> None:
    """Print the chosen design's area by Yosys, and its estimated clock."""
    found = dict(measured)
    mhz, rate = found.pop("estimated_mhz"), found.pop("frames_per_second_at_it")
    click.echo("chosen, by Yosys: " + ", ".join(f"{value:,} {key}" for key, value in found.items()))
    click.echo(f"chosen, clock: {mhz:.0f} MHz, {rate:,.0f} frames a second at it; {HOW}")


def _number(value: float) -> str:
    """All digits before the point, and one behind it where it is no integer."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def _missed(found: Explored, limit: Budget) -> str:
    """What the nearest design takes where its limit is less."""
    assert found.nearest is not None
    f = found.nearest.figures
    values = {"lut": f.lut, "ff": f.area.ff, "bram36": f.area.bram36, "dsp": f.area.dsp, "lanes": f.lanes,
              "cycles": f.cycles, "latency": f.latency}  # fmt: skip
    names = {key: RESOURCES.get(key, key) for key in values}
    over = [f"{_number(values[key])} {names[key]} for {getattr(limit, key):,.0f}" for key in limit.excess(f)]
    return f"the nearest takes {', '.join(over)}"


def _show_front(name: str, found: Explored, on: Board | None, clock_mhz: float) -> None:
    """Print the front and the chosen design, the largest share of the board last."""
    rows = [_row(str(k + 1), row, on, clock_mhz) for k, row in enumerate(found.front)]
    if found.best is not None:
        rows.append(_row("chosen", found.best, on, clock_mhz))
    title = f"{name}: Pareto front" + ("" if found.best else "; nothing fits the budget")
    grid(title, HEADER + [f"of {on.name}" if on else ""] * bool(on), rows)


def _show_budget(found: Explored, limit: Budget, on: Board | None, clock_mhz: float) -> None:
    """Print what the columns mean, how far the area formula may be off, and what was missed if nothing fits."""
    made = error()
    click.echo(
        "cycles and latency by the flow model; LUT: of logic and memory together, as RAM: those of memory, by formula, "
        f"off by {made['median']:.1%} (median) and {made['worst']:.1%} (worst) on designs that it was not fitted to "
        f"(the {made['designs']} reference designs whose synthesis is recorded)"
    )
    click.echo(
        f"frames a second: at {clock_mhz:g} MHz (--clock-mhz), which is given and not found; --synthesise and "
        "bitloom timing estimate a design's own clock"
    )
    if on and limit.lut is not None and limit.lut < on.lut:
        click.echo(f"budget: {limit.lut:,.0f} LUT of the {on.lut:,} of {on.name}")
    if found.best is None:
        fastest = f"the fastest that was tried takes {_number(found.front[0].figures.cycles)} cycles a frame"
        click.echo(f"nothing fits: {_missed(found, limit)}; {fastest}")


def _show_npus(best: Row, names: list[str]) -> None:
    """Print the folding and the memories of each NPU of the chosen design."""
    header = ["NPU", "layers", "engine", "KFP", "KGP", "OL", "PFP", "planes", "accumulators", "kernel rows",
              "kernel RAM", "tuple words"]  # fmt: skip
    rows = []
    for n, npu in enumerate(best.candidate.npus):
        values = (npu.kfp, npu.kgp, npu.ol, npu.pfp if npu.pool else "", npu.planes or "", npu.accumulators,
                  npu.kernel_rows, npu.kernel_ram, npu.tuple_words)  # fmt: skip
        cells = [f"{v:,}" if isinstance(v, int) else v for v in values]
        rows.append([str(n), _layers([names[i] for i in best.candidate.own(n)], names), npu.engine, *cells])
    grid("the chosen design", header, rows, labels=3)
    orders = [layer for layer, order in best.candidate.dataflow.items() if order == "input_stationary"]
    if orders:
        click.echo(f"input_stationary: {', '.join(orders)}; output_stationary: all others")


def _layers(own: list[str], names: list[str]) -> str:
    """The layers of an NPU: the first and the last one of a run, else all of them."""
    first = names.index(own[0])
    if len(own) > 1 and own == names[first : first + len(own)]:
        return f"{own[0]} .. {own[-1]}"
    return ", ".join(own)


def _row(name: str, row: Row, on: Board | None, clock_mhz: float) -> list[str]:
    """Cells of one design."""
    f, a = row.figures, row.figures.area
    rate = f"{clock_mhz * 1e6 / f.cycles:,.0f}"
    cells = [name, row.candidate.topology, f"{f.lanes:,}", _number(f.cycles), rate, f"{f.latency:,}",
             f"{f.lut:,}", f"{a.lutram:,}", f"{a.bram36:g}", str(a.dsp), setting_of(row.candidate).words]  # fmt: skip
    if on is None:
        return cells
    used = {"lut": f.lut, "ff": a.ff, "bram36": a.bram36, "dsp": a.dsp}
    share, key = max((value / getattr(on, key), key) for key, value in used.items())
    return [*cells, f"{share:.0%} {RESOURCES[key]}"]
