"""The command explore: foldings for a network within a budget."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from shlex import join
from typing import Any

import click

from bitloom.golden import zoo
from bitloom.golden.atomic import write_text
from bitloom.golden.network import Model
from bitloom.overlay.area_model.estimate import error
from bitloom.overlay.explore.budget import Budget, limited
from bitloom.overlay.explore.front import JOINED, Front
from bitloom.overlay.explore.plot import plot
from bitloom.overlay.explore.search import HALVINGS, MAP_ORDERS, POINTS, STREAMED_WEIGHTS, Effort, Explored, explore
from bitloom.overlay.explore.tries import Row
from bitloom.overlay.explore.workers import Workers
from bitloom.overlay.picture import check_plot
from bitloom.overlay.platform.board_file import find_board
from bitloom.overlay.platform.boards import CLOCK_MHZ, RESOURCES, Board

from . import interrupted
from .found_designs import called, number, show_front, show_npus
from .option_groups import GroupedCommand, option_group
from .options import (
    LATENCY,
    PERCENT,
    WRITTEN_FILE,
    WRITTEN_FOLDER,
    board_option,
    given,
    map_order_option,
    stream_bits_option,
    words_or_paths,
)
from .progress import bar, working
from .show import dump, json_option

NOTHING_FITS = 3
"""Exit status where no design keeps to the budget."""
_FROM = {
    "option": "--clock-mhz), which is given and not found",
    "default": "that of a build; else --clock-mhz), which is not found",
}
"""Where a clock comes from: the text behind its frequency."""


@click.command("explore", cls=GroupedCommand)
@click.argument(
    "networks", metavar="NETWORK [NETWORK]...", nargs=-1, required=True, shell_complete=words_or_paths(zoo.names)
)
@option_group(
    "Budget",
    board_option("Budget: all of this board's device, but for a margin of its LUTs."),
    click.option(
        "--margin",
        type=click.FloatRange(0),
        help="LUTs kept free, in percent of the estimate.  "
        "[default: with --board, as much as it was off at most; else 0]",
    ),
    click.option("--share", type=PERCENT, help="Percent of the board's device to use.  [default: all]"),
    click.option("--lut", type=float, help="LUTs at most, as a device counts them, those used as memory included."),
    click.option("--lut-ram", "lutram", type=float, help="LUTs used as memory at most."),
    click.option("--bram", "bram36", type=float, help="Block RAM at most, in units of 36 Kbit."),
    click.option("--dsp", type=float, help="DSP blocks at most."),
    click.option("--lanes", type=float, help="Lanes at most."),
    click.option(
        "--cycles", type=float, help="Cycles a frame at most: the smallest design that keeps to it is chosen."
    ),
    click.option("--rate", type=float, help="Frames a second at least, instead of --cycles; with --clock-mhz."),
    click.option("--clock-mhz", type=float, default=CLOCK_MHZ, help="Clock for --rate and for frames a second."),
    click.option("--latency", type=LATENCY, help="Latency at most: cycles, or a time such as 500us, with --clock-mhz."),
)
@option_group(
    "Search",
    stream_bits_option("64"),
    map_order_option(*MAP_ORDERS, default="both"),
    click.option(
        "--streamed-weights",
        type=click.Choice(list(STREAMED_WEIGHTS)),
        default="auto",
        help="Whether weights come with every frame; auto: in some designs, where block RAM lacks or that saves LUTs.",
    ),
    click.option("--points", type=click.IntRange(1), default=POINTS, help="Intervals of the sweep."),
    click.option(
        "--halvings",
        type=click.IntRange(0),
        default=HALVINGS,
        help="How often to try between the fastest interval that fits and the next shorter one: more find more.",
    ),
    click.option(
        "--resume",
        type=WRITTEN_FILE,
        help="Keep what is done in this file until the search is at its end, and go on from there.",
    ),
    click.option("--jobs", type=click.IntRange(1), default=1, help="Processes at work."),
    click.option("--scheduler", help="Address of a Dask scheduler whose workers do the jobs."),
)
@click.option("--plot", "picture", type=WRITTEN_FILE, help="Write a picture of the front, .png or .svg.")
@click.option("--save", type=WRITTEN_FILE, help="Write the chosen design's foldings, JSON.")
@click.option(
    "--save-front", "each", type=WRITTEN_FOLDER, help="Write the foldings of each design of the front, as N.json."
)
@click.option("--synthesise", is_flag=True, help="Also the chosen design's area by Yosys, and clock (minutes).")
@json_option
def explore_command(
    networks: tuple[str, ...],
    stream_bits: str,
    map_order: str,
    streamed_weights: str,
    points: int,
    halvings: int,
    jobs: int,
    scheduler: str | None,
    resume: Path | None,
    picture: Path | None,
    save: Path | None,
    each: Path | None,
    synthesise: bool,
    as_json: bool,
    **budget: Any,
) -> None:
    """Search foldings for NETWORK: NPUs, their layers, lanes and memories, within a budget or for a rate.

    NPUs make pipelines, cascades and rings; they have tables or counters, either dataflow, and where a network
    needs or allows it both engines, window formers, pool units with weights, and multipliers that PEs share. Several
    NETWORKs get one design that computes them in turn: cycles are then those of a round, a frame of each.

    NETWORK is a name of ours or a model file (.npz). Shows the Pareto front: designs that no other beats in both cycles
    a frame and LUTs. Cycles and latency are those of the flow model, area is by formula.

    Where block RAM lacks for a network in every design, foldings of one NPU are cut into partitions for what there is:
    programs that run one after another. Their cycles are without the loading of parameters, once a round of frames.

    Where nothing keeps to the budget, a rate and a latency included, the nearest design is shown and by how much it
    misses; the exit status is then 3. Ctrl-C ends the search and shows what was found until then, with status 130.
    The same command goes on from there where --resume FILE was given.
    """
    limit = _budget(**budget)
    clock = _Clock(budget["clock_mhz"], "option" if given(["clock_mhz"]) else "default")
    on = find_board(budget["board_name"]) if budget["board_name"] else None
    if picture is not None:
        check_plot(picture)
    models = [zoo.find(network) for network in networks]
    name = JOINED.join(model.network.name for model in models)
    effort = Effort(
        points=points, halvings=halvings, workers=Workers(jobs, scheduler), streamed_weights=streamed_weights
    )
    with bar(f"{name}: searching", "intervals") as update:
        explored = explore(
            models,
            limit,
            stream_bits=int(stream_bits),
            map_order=map_order,
            effort=effort,
            progress=update,
            resume=resume,
        )
    front = Front(
        network=name,
        points=tuple(row.figures for row in explored.front),
        chosen=explored.best and explored.best.figures,
        budget=limit,
        board=on,
        clock_mhz=clock.mhz,
        commands=_commands(networks, each, budget["board_name"], len(explored.front)),
    )
    if picture is not None:
        plot(picture, front)
    if save is not None and explored.best is not None:
        _save(explored.best, save)
    if each is not None:
        _save_front(explored.front, each)
    measured = _measured(explored, models) if synthesise and explored.best else None
    if as_json:
        dump(
            {
                **front.to_dict(),
                "front": [row.to_dict() for row in explored.front],
                "best": explored.best and explored.best.to_dict(),
                "nearest": explored.nearest and explored.nearest.to_dict(),
                "clock": asdict(clock),
                "model_error": error(),
                "synthesised": measured,
                "tried": explored.tried,
                "varied": list(explored.varied),
                "interrupted": explored.interrupted,
            }
        )
    else:
        show_front(front, explored)
        if each is not None:
            click.echo(f"each design of the front: {_command(networks, each / 'N.json', budget['board_name'])}")
        click.echo(f"{explored.tried} designs were tried; varied beside the foldings: {', '.join(explored.varied)}")
        _show_budget(limit, on, clock)
        if measured is not None:
            _show_measured(measured)
        if explored.shown is not None:
            show_npus(called(explored), explored.shown, explored.layers)
    if explored.interrupted:
        interrupted()
    if explored.best is None:
        unsaved = f", nothing was written to {save}" if save else ""
        click.echo(f"bitloom: {name}: no design fits the budget{unsaved}: {_missed(explored, limit)}", err=True)
        raise SystemExit(NOTHING_FITS)


@dataclass(frozen=True)
class _Clock:
    """A clock by which frames a second are told."""

    mhz: float
    """Its frequency."""
    source: str
    """"option", or "default" where none was given."""


def _budget(
    board_name: str | None,
    margin: float | None,
    share: float | None,
    rate: float | None,
    latency: str | None,
    clock_mhz: float,
    **limits: float | None,
) -> Budget:
    """The limits that the options say; rates and times become cycles, and LUTs are fewer by the margin."""
    for name, value in (("rate", rate), ("clock-mhz", clock_mhz)):
        if value is not None and not 0 < value < inf:
            raise ValueError(f"explore: {name} must be a number > 0, got {value}")
    if rate is not None:
        if limits["cycles"] is not None:
            raise ValueError("explore: give --cycles or --rate, not both")
        limits["cycles"] = clock_mhz * 1e6 / rate
    if latency is not None:
        limits["latency"] = LATENCY.cycles(latency, clock_mhz)
    if share is not None and not board_name:
        raise ValueError(f"explore: --share is one of a board's device, it needs --board, got {share:g} % alone")
    if margin is not None and not (board_name or limits["lut"]):
        raise ValueError(f"explore: --margin is one of LUTs, it needs --board or --lut, got {margin:g} alone")
    if limits["lut"] is not None:
        limits["lut"] /= 1 + (margin or 0) / 100
    if not board_name:
        return Budget(**limits)
    spare = error()["worst"] if margin is None else margin / 100
    return Budget.of_board(find_board(board_name), spare, (share or 100) / 100, **limits)


def _save(best: Row, path: Path) -> None:
    """Write the chosen design's foldings."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(best.candidate.to_dict(), indent=1) + "\n")


def _save_front(front: Sequence[Row], folder: Path) -> None:
    """Write the foldings of each design of the front by its number; those of an earlier front go."""
    for path in folder.glob("*.json") if folder.is_dir() else ():
        if path.stem.isdecimal():
            path.unlink()
    for place, row in enumerate(front, 1):
        _save(row, folder / f"{place}.json")


def _commands(networks: Sequence[str], folder: Path | None, board_name: str | None, count: int) -> tuple[str, ...]:
    """The commands that build the designs of the front; none where their foldings were not written."""
    if folder is None:
        return ()
    return tuple(_command(networks, folder / f"{k + 1}.json", board_name) for k in range(count))


def _command(networks: Sequence[str], foldings: Path, board_name: str | None) -> str:
    """The command that builds a design of the front."""
    board = ["--board", board_name] if board_name else []
    return join(["bitloom", "build", *networks, "--foldings", str(foldings), *board])


def _measured(explored: Explored, models: Sequence[Model]) -> dict[str, Any]:
    """The chosen design's area by Yosys."""
    from bitloom.overlay.area.synthesis import area
    from bitloom.overlay.timing.design_clock import clock_figures

    assert explored.best is not None
    with working("synthesis (minutes for a large design)"):
        design = explored.best.candidate.design(models[0], models[0].network.name, models[1:])
        return {**area(design).total.figures, **clock_figures(design, explored.best.figures.cycles)}


def _show_measured(measured: dict[str, Any]) -> None:
    """Print the chosen design's area by Yosys, and its estimated clock."""
    from bitloom.overlay.timing.design_clock import HOW

    figures = dict(measured)
    mhz = figures.pop("estimated_mhz")
    rate = figures.pop("frames_per_second_at_it")
    click.echo("chosen, by Yosys: " + ", ".join(f"{value:,} {key}" for key, value in figures.items()))
    click.echo(f"chosen, clock: {mhz:.0f} MHz, {rate:,.0f} frames a second at it; {HOW}")


def _missed(explored: Explored, limit: Budget) -> str:
    """By how much the nearest design is over each limit that it breaks."""
    assert explored.nearest is not None
    figures = explored.nearest.figures
    values = limited(figures)
    names = {**dict(zip(values, values)), **RESOURCES, "cycles": "cycles a frame", "latency": "cycles of latency"}
    over = [
        f"{number(values[key])} {names[key]} for {number(getattr(limit, key))} ({_times(times)})"
        for key, times in limit.excess(figures).items()
    ]
    fastest = number(min(row.figures.cycles for row in explored.front))
    return f"the nearest takes {', '.join(over)}; the fastest that was tried takes {fastest} cycles a frame"


def _times(times: float) -> str:
    """In words, how far a figure that is ``times`` its limit is over the limit."""
    return f"{times - 1:.1%} too many" if times < 2 else f"{number(round(times, 1))} times as many"


def _show_budget(limit: Budget, on: Board | None, clock: _Clock) -> None:
    """Print what the columns mean, and how far the area formula may be off."""
    model_error = error()
    click.echo(
        "cycles and latency by the flow model; LUT: as a device counts them, of logic in pairs and of memory together, "
        f"as RAM: those of memory, by formula, off by {model_error['median']:.1%} (median) and "
        f"{model_error['worst']:.1%} (worst) on designs that it was not fitted to (the {model_error['designs']} "
        "reference designs whose synthesis is recorded)"
    )
    click.echo(
        f"frames a second: at {clock.mhz:g} MHz ({_FROM[clock.source]}; --synthesise and bitloom timing estimate a "
        "design's own clock"
    )
    if on and limit.lut is not None and limit.lut < on.lut:
        click.echo(f"budget: {limit.lut:,.0f} LUT of the {on.lut:,} of {on.name}")
