"""The command simulate: a build on the simulated board, held against golden."""

from pathlib import Path

import click
import numpy as np

from bitloom.golden import zoo as networks
from bitloom.golden.atomic import write_bytes
from bitloom.hls_gen.design.array_file import npy_bytes
from bitloom.overlay.build.images import random_images, read_images
from bitloom.overlay.build.run import Conditions

from .kept import loaded
from .options import FILE, FOLDER, stall_options
from .show import json_option, one_line_errors
from .simulation import fail_unless_exact, show_report, simulated


@click.command("simulate")
@click.argument("folder", type=FOLDER)
@click.argument("network", required=False)
@click.option("--images", type=FILE, help="Images: .npy of shape (N, H, W, C), integers.  [default: random ones]")
@click.option("--frames", type=click.IntRange(1), default=16, help="Images to run (the first ones of --images).")
@click.option("--batch", type=click.IntRange(1), help="Frames a transfer.  [default: as many as fit]")
@stall_options
@click.option("--vcd", type=FILE, help="Write a waveform.")
@click.option("--out", type=FILE, help="Write the outputs, (N, H, W, C), as .npy.")
@json_option
@one_line_errors
def simulate_command(
    folder: Path,
    network: str | None,
    images: Path | None,
    frames: int,
    batch: int | None,
    stall: float,
    seed: int,
    vcd: Path | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Run the build in FOLDER on the simulated board and compare every bit with golden.

    NETWORK is the name or model file that was given to build; a build of one network of ours needs none.
    """
    made = loaded(folder)
    model = networks.find(network or next(iter(made.programs)))
    given = read_images(images, model.network, frames) if images else random_images(model.network, frames, seed)
    for file in (vcd, out):
        if file:
            file.parent.mkdir(parents=True, exist_ok=True)
    conditions = Conditions(stall=stall, seed=seed, waveform=vcd)
    done = simulated(made, model, given, batch=batch, conditions=conditions)
    if out:
        _write_outputs(out, done.outputs)
    show_report(f"{model.network.name} on simulated hardware", done.report(), as_json)
    fail_unless_exact(done)


def _write_outputs(path: Path, outputs: np.ndarray) -> None:
    """Write the outputs as .npy; the file's name gets this ending if it has none."""
    write_bytes(path if path.suffix == ".npy" else path.with_name(f"{path.name}.npy"), npy_bytes(outputs))
