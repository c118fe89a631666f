"""Fit the area model anew: ``python -m bitloom.overlay.explore.refit [--designs N] [--jobs N] [--scheduler ADDRESS]``.

It synthesises the sampled designs (samples.py), half a minute each on an idle core, fits coefficients to them and
writes coefficients.json. The error in the file is that on designs which the model was not fitted to: each design is
tried with a model that was fitted to all others. What was synthesised is found again in the cache, so that a run which
was interrupted goes on where it ended.
"""

import json
import platform
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from bitloom.golden.atomic import write_text
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.registers import VERSION
from bitloom.overlay.area.synthesis import Area, area
from bitloom.overlay.area.yosys import yosys_version
from bitloom.overlay.cli.progress import bar
from bitloom.overlay.cli.show import grid, one_line_errors

from .estimate import FILE, coefficients
from .least_squares import errors, fitted
from .samples import samples
from .workers import Workers

Progress = Callable[[int, int], None]

SEED = 1


def synthesised(design: Design) -> tuple[Design, Area]:
    """A design with its area by Yosys."""
    return design, area(design)


def refit(
    designs: int, workers: Workers, progress: Progress | None = None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Synthesise sampled designs and fit the model to them.

    Parameters
    ----------
    designs
        How many.
    workers
        Who does the syntheses.
    progress
        Called with (designs done, all).

    Returns
    -------
    tuple
        Coefficients, and the error of each design by a model that was fitted to the others.
    """
    tasks, measured = samples(designs, SEED), []
    for done, found in enumerate(workers.map(synthesised, tasks), 1):
        measured.append(found)
        if progress is not None:
            progress(done, len(tasks))
    return judged(measured)


def judged(measured: list[tuple[Design, Area]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Coefficients fitted to all designs, and the error of each design by a model that was fitted to the others."""
    made = fitted(measured)
    tried = []
    for k, one in enumerate(measured):
        others = fitted([*measured[:k], *measured[k + 1 :]])
        tried += errors([one], {**others, "parts": {**made["parts"], **others["parts"]}})
    shares = [abs(row["share"]) for row in tried]
    made["error"] = {
        "designs": len(tried),
        "median": round(statistics.median(shares), 4),
        "worst": round(max(shares), 4),
    }
    made["made_with"] = {"yosys": yosys_version(), "python": platform.python_version(), "designs": len(measured),
                         "bitloom": ".".join(map(str, VERSION.values()))}  # fmt: skip
    return made, tried


@click.command()
@click.option("--designs", type=click.IntRange(2), default=24, help="Designs to synthesise.")
@click.option("--jobs", type=click.IntRange(1), default=1, help="Syntheses at a time.")
@click.option("--scheduler", help="Address of a Dask scheduler whose workers do the syntheses.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), default=FILE, help="File to write.")
@one_line_errors
def main(designs: int, jobs: int, scheduler: str | None, out: Path) -> None:
    """Fit the area model to Yosys' figures of sampled designs."""
    with bar("synthesis", "designs") as update:
        made, tried = refit(designs, Workers(jobs, scheduler), update)
    made["parts"] = {**coefficients()["parts"], **made["parts"]}  # kinds that no sample has keep what was set by hand
    write_text(out, json.dumps(made, indent=1) + "\n")
    rows = [[r["design"], f"{r['lut']:,}", f"{r['model_lut']:,}", f"{r['share']:+.1%}", f"{r['bram36']:g}",
             f"{r['model_bram36']:g}"] for r in tried]  # fmt: skip
    grid(
        "each design by a model of all others",
        ["design", "LUT and LUT RAM", "by the model", "off by", "BRAM36", "by the model"],
        rows,
    )
    click.echo(f"{out}: off by {made['error']['median']:.1%} (median), {made['error']['worst']:.1%} (worst)")


if __name__ == "__main__":
    main()
