"""The command simulate: a build on the simulated board, held against golden."""

from pathlib import Path

import click
import numpy as np

from bitloom.golden.atomic import write_bytes
from bitloom.hls_gen.design.array_file import npy_bytes
from bitloom.overlay.area_model.estimate import estimate
from bitloom.overlay.build.build import Build
from bitloom.overlay.build.images import random_images, read_images
from bitloom.overlay.build.run import Conditions

from .options import FILE, FOLDER, WRITTEN_FILE, stall_options
from .show import fail_unless_exact, json_option
from .simulation import require_pynq, show_report, simulated
from .subject import loaded, model_of

FRAMES = 16
"""Random images that run where neither images nor a number of frames is given."""

VCD_BYTES = 2.7
"""Bytes of a waveform for each register and cycle, about: digits-cnn has 2.6 to 2.9, loading included."""
LARGE_MB = 100


@click.command("simulate")
@click.argument("folder", type=FOLDER)
@click.argument("network", required=False)
@click.option(
    "--images",
    type=FILE,
    help="Images: .npy of shape (N, H, W, C), integers; of an imported network also "
    "real numbers, as its file takes them.  [default: random ones]",
)
@click.option("--frames", type=click.IntRange(1), help="Images to run.  [default: all of --images; else 16]")
@click.option("--batch", type=click.IntRange(1), help="Frames a transfer.  [default: as many as fit]")
@stall_options
@click.option("--vcd", type=WRITTEN_FILE, help="Write a waveform as VCD.")
@click.option("--fst", type=WRITTEN_FILE, help="Write a waveform as FST, some 10 times smaller; its name ends in .fst.")
@click.option("--out", type=WRITTEN_FILE, help="Write the outputs, (N, H, W, C), as .npy.")
@json_option
def simulate_command(
    folder: Path,
    network: str | None,
    images: Path | None,
    frames: int | None,
    batch: int | None,
    stall: float,
    seed: int,
    vcd: Path | None,
    fst: Path | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Run the build in FOLDER on the simulated board and compare every bit with golden.

    NETWORK is one of the build's networks, or its model file (.npz); without, it is the first one.
    """
    require_pynq()
    waveform = _waveform(vcd, fst)
    build = loaded(folder)
    model = model_of(build, network)
    if images:
        given = _first(read_images(images, model.network, host=build.program(model.network.name).host), images, frames)
    else:
        given = random_images(model.network, frames or FRAMES, seed)
    for file in (waveform, out):
        if file:
            file.parent.mkdir(parents=True, exist_ok=True)
    if vcd:
        _announce(vcd, build, model.network.name, len(given))
    conditions = Conditions(stall=stall, seed=seed, waveform=waveform)
    done = simulated(build, model, given, batch=batch, conditions=conditions)
    if out:
        _write_outputs(out, done.outputs)
    show_report(f"{model.network.name} on simulated hardware", done.report(), as_json)
    fail_unless_exact(model.network.name, done.frames, done.bit_exact_frames)


def _waveform(vcd: Path | None, fst: Path | None) -> Path | None:
    """The file that is asked for; its name says what it is."""
    if vcd and fst:
        raise ValueError("a run writes one waveform, --vcd or --fst, got both")
    if fst and fst.suffix != ".fst":
        raise ValueError(f"--fst: the file's name must end in .fst, got {fst}")
    if vcd and vcd.suffix == ".fst":
        raise ValueError(f"--vcd: the file's name must not end in .fst, got {vcd}: say --fst")
    return vcd or fst


def _announce(waveform: Path, build: Build, network: str, frames: int) -> None:
    """Say how large a waveform will be, where it is large: every signal's changes, most of them those of registers."""
    cycles = build.program(network).ideal_cycles
    each = VCD_BYTES * estimate(build.design).ff * cycles / 1e6
    if frames * each > LARGE_MB:
        rule = f"--frames 1 makes about {each:,.0f}" if frames > 1 else "every signal is in it"
        click.echo(f"bitloom: warning: {waveform} will have about {frames * each:,.0f} MB; {rule}", err=True)


def _first(images: np.ndarray, path: Path, frames: int | None) -> np.ndarray:
    """As many images as were asked for, the first ones; all where no number was given."""
    if frames and frames > len(images):
        raise ValueError(f"--frames must be <= {len(images)}, the images in {path}, got {frames}")
    return images[:frames]


def _write_outputs(path: Path, outputs: np.ndarray) -> None:
    """Write the outputs as .npy; the file's name gets this ending if it has none."""
    write_bytes(path if path.suffix == ".npy" else path.with_name(f"{path.name}.npy"), npy_bytes(outputs))
