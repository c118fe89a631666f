"""The command bench mlperf-tiny: the benchmark's networks on one design."""

from pathlib import Path

import click

from bitloom.golden.zoo.mlperf_tiny import NETWORKS
from bitloom.hls_gen.design.design import MOST_NPUS
from bitloom.overlay.area_model.estimate import estimate
from bitloom.overlay.build.chosen_design import TOPOLOGIES
from bitloom.overlay.cli.area import COLUMNS
from bitloom.overlay.cli.options import chunk_option, out_option
from bitloom.overlay.cli.progress import bar, working
from bitloom.overlay.cli.show import dump, grid, json_option
from bitloom.overlay.platform.boards import BOARDS
from bitloom.overlay.study import design_figures, mlperf_tiny

from .figures import TITLES, cell, check_exact, show_figures

SHOWN = (
    "weights",
    "frames",
    "mismatches",
    "latency_cycles",
    "cycles_per_frame",
    "ideal_cycles_per_frame",
    "utilisation",
)
"""Figures that the table shows."""
AREA = {**COLUMNS, "levels": "levels"}
"""Figures of the design's area that the table shows, and their headings."""


@click.command("mlperf-tiny")
@click.argument("names", metavar="[ic|kws|vww|ad|sww]...", nargs=-1, type=click.Choice(list(NETWORKS)))
@click.option("--frames", type=click.IntRange(2), default=2, help="Frames of the longer batch, an even number.")
@click.option(
    "--board",
    type=click.Choice(list(mlperf_tiny.NPUS), case_sensitive=False),
    default=mlperf_tiny.BOARD,
    help="Board whose device the design is for.",
)
@click.option("--topology", type=click.Choice(["cascade", "ring"]), help="Join several NPUs like the design's one.")
@click.option("--npus", type=click.IntRange(2, MOST_NPUS), help="How many, for --topology: 2 if not said.")
@chunk_option()
@click.option("--area", is_flag=True, help="Also LUT, flip-flops, block RAM, DSP and logic levels, by Yosys.")
@out_option(design_figures.FOLDER, "The build goes here.")
@json_option
def mlperf_tiny_command(
    names: tuple[str, ...],
    frames: int,
    board: str,
    topology: str | None,
    npus: int | None,
    chunk: str | None,
    area: bool,
    out: Path,
    as_json: bool,
) -> None:
    """Run the networks of MLPerf Tiny on one design: bit-exactness, cycles and latency, by simulation.

    Trained weights are read where the data folder (BITLOOM_DATA) has the benchmark's files; else weights are seeded.
    The design's area is that of the area model; --area adds Yosys'.
    """
    for what, value in (("several NPUs", npus), ("chunks", chunk)):
        if value is not None and topology is None:
            raise ValueError(f"mlperf-tiny: {what} need a topology, cascade or ring, got {value} without")
    with bar("building and running") as update:
        figures, build = mlperf_tiny.measure(
            tuple(dict.fromkeys(names or NETWORKS)),
            frames,
            out,
            update,
            board=board,
            npus=TOPOLOGIES[topology]([mlperf_tiny.NPUS[board]] * (npus or 2)) if topology else (),
            chunk=chunk,
        )
    modelled = estimate(build.design).figures
    report = {"design": build.design.name, "networks": figures, "model": modelled}
    areas = {"area model": modelled}
    if area:
        with working("synthesis"):
            areas["Yosys"] = design_figures.area_figures(build.design)
        report |= areas["Yosys"]
    if as_json:
        dump(report)
    else:
        show_figures("MLPerf Tiny on one design, simulated", figures, {key: TITLES[key] for key in SHOWN}, places=1)
        areas |= {f"{board} has": {**BOARDS[board].sizes, "lut": "", "paired_lut": BOARDS[board].lut}}
        rows = [[how, *(cell(key, values.get(key, ""), places=1) for key in AREA)] for how, values in areas.items()]
        grid("area of the design, by", ["", *AREA.values()], rows)
    check_exact(figures)
