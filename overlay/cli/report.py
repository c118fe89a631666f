"""The command report: one page about a build and a run of it."""

import os
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import click

from bitloom.golden.atomic import inside, write_text
from bitloom.overlay.build.images import random_images
from bitloom.overlay.build.measured import FRAMES, Measured, check_even, measure
from bitloom.overlay.explore.advice import advice_rows
from bitloom.overlay.explore.front import read_front
from bitloom.overlay.platform.board_file import find_board
from bitloom.overlay.platform.boards import CLOCK_MHZ
from bitloom.overlay.show.report.accuracy import accuracy_of
from bitloom.overlay.show.report.compiled import compiled
from bitloom.overlay.show.report.figures import check_extra, sheet
from bitloom.overlay.show.report.gather import gather
from bitloom.overlay.show.report.page import page
from bitloom.overlay.show.report.programs import ProgramFacts
from bitloom.overlay.show.report.text import number, percent
from bitloom.overlay.timing.design_clock import clock_figures

from .options import FILE, FOLDER, POSITIVE, WRITTEN_FILE, board_option
from .progress import bar, working
from .show import dump, fail_unless_exact, json_option, table
from .simulation import require_pynq
from .subject import loaded, model_of


@click.command("report")
@click.argument("folder", type=FOLDER)
@click.argument("network", required=False)
@click.option(
    "--frames", type=click.IntRange(2), help=f"Frames of the longest batch, an even number.  [default: {FRAMES}]"
)
@click.option("--from", "run_file", type=FILE, help="Take the run from what --json printed, and simulate nothing.")
@click.option("--area", "synthesise", is_flag=True, help="Area by Yosys (minutes the first time) instead of the model.")
@click.option("--clock", is_flag=True, help="Also the clock by the estimate of `bitloom timing` (minutes at first).")
@click.option("--clock-mhz", type=POSITIVE, default=CLOCK_MHZ, help="Clock for frames a second.")
@board_option("Advise only what this board's device holds.")
@click.option("--evaluated", type=FILE, help="Show the accuracy in what `bitloom evaluate --json` printed.")
@click.option("--explored", type=FILE, help="Show the designs in what `bitloom explore --json` printed.")
@click.option("--dated", is_flag=True, help="Say the date on the page: today, or that of SOURCE_DATE_EPOCH.")
@click.option("--out", type=WRITTEN_FILE, help="The page.  [default: FOLDER/report.html]")
@click.option("--png", type=WRITTEN_FILE, help="Also write the plots as one picture.")
@json_option
def report_command(
    folder: Path,
    network: str | None,
    frames: int | None,
    run_file: Path | None,
    synthesise: bool,
    clock: bool,
    clock_mhz: float,
    board_name: str | None,
    evaluated: Path | None,
    explored: Path | None,
    dated: bool,
    out: Path | None,
    png: Path | None,
    as_json: bool,
) -> None:
    """Write a page about the build in FOLDER: mapping, utilisation, timeline, memories, area, roofline.

    The network runs on the simulated board; counters come from there. The page is one HTML file that loads nothing.
    NETWORK is one of the build's networks, or its model file (.npz); without, it is the first one. The same
    report is the same bytes, so the page has no date unless --dated asks for it.
    """
    date = _date() if dated else ""
    check_extra(png)
    if run_file and frames:
        raise ValueError(f"report: --from brings its own frames, --frames must be left out, got {frames}")
    board = find_board(board_name) if board_name else None
    if not run_file:
        require_pynq()
    build = loaded(folder)
    out = out or inside(folder, "report.html")
    model = model_of(build, network)
    network_build = compiled(build, model)
    accuracy = accuracy_of(model, evaluated)
    front = None if explored is None else read_front(explored, model.network.name)
    if run_file:
        run = Measured.load(run_file)
    else:
        check_even("report", frames or FRAMES)
        with bar("building and running the simulation") as update:
            run = measure(build, model, random_images(model.network, frames or FRAMES, 0), update)
    with working("synthesis (minutes for a large design)" if synthesise or clock else "gathering"):
        estimate = clock_figures(build.design, run.steady("cycles")) if clock else {}
        report = gather(network_build, run, given=network, clock_mhz=clock_mhz, synthesise=synthesise, board=board)
        report = replace(report, clock=estimate, accuracy=accuracy, front=front)
        out.parent.mkdir(parents=True, exist_ok=True)
        write_text(out, page(report, date))
        if png:
            sheet(report, png)
    if as_json:
        dump(report.to_dict())
    else:
        shown = {name.replace("_", " "): number(figure) for name, figure in report.figures.items()}
        shown |= {f"{p.name}, cycles a frame": _program_row(p) for p in report.programs}
        shown |= advice_rows(report.advice)
        table(f"{model.network.name}: {out}", shown | ({"picture": str(png)} if png else {}))
    fail_unless_exact(run.network, run.frames, run.bit_exact_frames)


def _program_row(program: ProgramFacts) -> str:
    """A program's cycles and words, as text for people."""
    return (
        f"{number(program.cycles)}, bound by {program.bound}; {program.load_words:,} words to load; "
        f"{percent(program.share)} of a round"
    )


def _date() -> str:
    """Today, or the day of SOURCE_DATE_EPOCH, by which builds that shall be the same again have one date for all."""
    text = os.environ.get("SOURCE_DATE_EPOCH", "")
    if text and not (text.isascii() and text.isdigit() and len(text) <= 11):
        raise ValueError(f"SOURCE_DATE_EPOCH: must be seconds since 1970, an integer >= 0, got {text!r}")
    when = datetime.fromtimestamp(int(text), timezone.utc) if text else datetime.now(timezone.utc)
    return when.date().isoformat()
