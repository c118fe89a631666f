"""Fit the area model anew: ``python -m tests.area_fit.refit [--designs N] [--kinds KIND,...]``.

It synthesises the sampled designs (samples.py), a minute or two each on an idle core, fits coefficients to them and
writes coefficients.json. With ``--kinds`` only blocks of those kinds are synthesised, half a minute each, and the
coefficients of all others stay as they are. What was synthesised is found again in the cache, so that a run which
was interrupted goes on where it ended.

The error in the file is that on the reference designs whose area by Yosys is recorded (areas.json). The model is never
fitted to them, but for the shares of pairs (pair_shares.py): a design's error is by shares that are fitted to the other
ones. Estimates that tests compare with are renewed afterwards: ``python -m tests.area_fit.estimates``.
"""

import json
import platform
import statistics
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import click

from bitloom.golden.atomic import write_text
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.registers import VERSION
from bitloom.overlay.area.netlist import Resources
from bitloom.overlay.area.synthesis import Area, area
from bitloom.overlay.area.yosys import yosys_version
from bitloom.overlay.area_model.blocks import area_blocks
from bitloom.overlay.area_model.estimate import FILE, Coefficients, coefficients
from bitloom.overlay.build.reference_designs import REFERENCE_DESIGNS
from bitloom.overlay.cli.progress import bar
from bitloom.overlay.cli.show import grid, one_line_errors
from bitloom.overlay.explore.workers import Workers

from .blocks import blocks
from .least_squares import errors, fitted, formulas, matched
from .pair_shares import by_others, pair_shares
from .samples import directed, samples

Progress = Callable[[int, int], None]
Task = tuple[Design, tuple[str, ...]]
MeasuredAreas = list[tuple[Design, Area]]
Rows = list[dict[str, Any]]
Formulas = dict[str, dict[str, float]]

SEED = 1
RECORDED = Path(__file__).parent / "areas.json"
"""Area of reference designs by Yosys, by name; record.py renews them."""


def synthesised(task: Task) -> tuple[Design, Area]:
    """A design with its area by Yosys: of blocks of some kinds alone, or of all of it."""
    design, kinds = task
    return design, blocks(design, kinds) if kinds else area(design)


def tasks(designs: int, kinds: Collection[str]) -> list[Task]:
    """Modules to synthesise: so many sampled designs, or their blocks of some kinds, and the directed blocks.

    Raises
    ------
    ValueError
        If no sample has a block of one of the kinds.
    """
    random = samples(designs, SEED)
    known = sorted({block.kind for design in random for block in area_blocks(design)})
    for kind in kinds:
        if kind not in known:
            raise ValueError(f"--kinds: with {designs} designs it must be some of {', '.join(known)}, got {kind!r}")
    return [
        *((design, tuple(kinds)) for design in random),
        *((design, (kind,)) for kind, design in directed() if not kinds or kind in kinds),
    ]


def measured(work: Sequence[Task], workers: Workers, progress: Progress | None = None) -> MeasuredAreas:
    """Synthesise designs.

    Parameters
    ----------
    work
        Of `tasks`.
    workers
        Who does it.
    progress
        Called with (syntheses done, all).

    Raises
    ------
    BuildError
        If Yosys is missing or fails.
    """
    measured_areas = []
    for done, one in enumerate(workers.map(synthesised, work), 1):
        measured_areas.append(one)
        if progress is not None:
            progress(done, len(work))
    return measured_areas


def renewed(areas: MeasuredAreas, kinds: Collection[str]) -> Coefficients:
    """Coefficients fitted to what was synthesised; where there are ``kinds``, those of all others as they were."""
    how = {"yosys": yosys_version(), "python": platform.python_version(), "designs": len(areas)}
    how["bitloom"] = ".".join(map(str, VERSION.values()))
    if not kinds:
        fit = {**fitted(areas), "made_with": how}
        fit["blocks"] = {**coefficients()["blocks"], **fit["blocks"]}  # kinds that no sample has stay as they were
    else:
        new, old = formulas(areas), coefficients()
        alone = {**old["made_with"].get("alone", {}), **dict.fromkeys(kinds, how)}
        renewed = {kind: _completed(new[kind], old["blocks"].get(kind, {}), sizes(areas, kind)) for kind in kinds}
        blocks = dict(sorted({**old["blocks"], **renewed}.items()))
        fit = {**old, "blocks": blocks, "made_with": {**old["made_with"], "alone": alone}}
    return with_pairs(fit)


def with_pairs(fit: Coefficients) -> Coefficients:
    """Coefficients with shares of pairs and errors by what is recorded."""
    return {**fit, "pairs": pair_shares(measured_references(), fit), "error": stated(on_recorded(fit))}


def sizes(areas: MeasuredAreas, kind: str) -> set[str]:
    """Sizes of a kind of block that some design has."""
    return {
        name
        for design, area in areas
        for block, _ in matched(design, area)
        if block.kind == kind
        for name, size in block.features.items()
        if size
    }


def _completed(new: Formulas, old: Formulas, known: Collection[str]) -> Formulas:
    """New coefficients, and the old ones of sizes that no new design has."""
    return {
        key: {**{name: value for name, value in old.get(key, {}).items() if name not in known}, **weights}
        for key, weights in new.items()
    }


def left_out(areas: MeasuredAreas, fit: Coefficients) -> Rows:
    """The errors of each whole design by a model that was fitted to the others; of kinds it alone has, by ``made``."""
    tried = []
    for k, one in enumerate(areas):
        if not one[1].total.lut:
            continue
        others = fitted([*areas[:k], *areas[k + 1 :]])
        tried += errors([one], {**others, "blocks": {**fit["blocks"], **others["blocks"]}})
    return tried


def on_recorded(fit: Coefficients) -> Rows:
    """The errors of the reference designs whose area is recorded, each with shares of pairs by the other ones."""
    references = measured_references()
    each = by_others(references, fit)
    return [row for one, by_other in zip(references, each) for row in errors([one], by_other)]


def measured_references() -> MeasuredAreas:
    """The reference designs whose area is recorded, with it."""
    recorded = {name: area for name, area in json.loads(RECORDED.read_text()).items() if name in REFERENCE_DESIGNS}
    return [
        (REFERENCE_DESIGNS[name].design(name, REFERENCE_DESIGNS[name].models()), Area(Resources(**total), (), ()))
        for name, total in recorded.items()
    ]


def stated(tried: Rows) -> dict[str, Any]:
    """Facts of the file on errors: of how many designs, and shares of the LUTs, of those with one function each, and
    of the flip-flops."""
    lut, plain, ff = ([abs(row[key]) for row in tried] for key in ("share", "plain_share", "ff_share"))
    return {
        "designs": len(tried),
        "median": round(statistics.median(lut), 4),
        "worst": round(max(lut), 4),
        "plain_median": round(statistics.median(plain), 4),
        "plain_worst": round(max(plain), 4),
        "ff_median": round(statistics.median(ff), 4),
        "ff_worst": round(max(ff), 4),
    }


def show(title: str, tried: Rows) -> None:
    """Print a line for each design."""
    rows = []
    for r in tried:
        luts = [f"{r['lut']:,}", f"{r['model_lut']:,}", f"{r['share']:+.1%}", f"{r['plain_share']:+.1%}"]
        memories = [f"{r['ff']:,}", f"{r['model_ff']:,}", f"{r['bram36']:g}", f"{r['model_bram36']:g}"]
        rows.append([r["design"], *luts, *memories, str(r["dsp"]), str(r["model_dsp"])])
    head = [
        "design",
        "LUT of a device",
        "by the model",
        "off by",
        "unpaired off by",
        "FF",
        "by it",
        "BRAM36",
        "by it",
        "DSP",
        "by it",
    ]
    grid(title, head, rows)


@click.command()
@click.option("--designs", type=click.IntRange(2), default=24, help="Designs to synthesise.")
@click.option("--kinds", default="", help="Kinds of blocks, with commas: only they, each alone, seconds a block.")
@click.option("--jobs", type=click.IntRange(1), default=1, help="Syntheses at a time.")
@click.option("--scheduler", help="Address of a Dask scheduler whose workers do the syntheses.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), default=FILE, help="File to write.")
@one_line_errors
def main(designs: int, kinds: str, jobs: int, scheduler: str | None, out: Path) -> None:
    """Fit the area model to Yosys' figures of sampled designs."""
    chosen = [kind.strip() for kind in kinds.split(",") if kind.strip()]
    work = tasks(designs, chosen)
    with bar("synthesis", "designs") as update:
        figures = measured(work, Workers(jobs, scheduler), update)
    fit = renewed(figures, chosen)
    write_text(out, json.dumps(fit, indent=1) + "\n")
    if not chosen:
        show("each design by a model of all others", left_out(figures, fit))
    show("reference designs", on_recorded(fit))
    click.echo(f"{out}: off by {fit['error']['median']:.1%} (median), {fit['error']['worst']:.1%} (worst)")


if __name__ == "__main__":
    main()
