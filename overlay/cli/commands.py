"""The commands demo, simulate and train; each of the others has its own file."""

import json
from pathlib import Path
from typing import Any

import click
import numpy as np

from bitloom.golden import file
from bitloom.golden import zoo as networks
from bitloom.golden.file import model_digest
from bitloom.golden.network import Model
from bitloom.golden.zoo import digits
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.designs import DIGITS
from bitloom.overlay.build.run import Run, random_images, run

from .accumulate import accumulate_command
from .area import area_command
from .bench import bench, orders_command
from .build import build_command
from .crosscheck import crosscheck_command
from .dataflows import dataflows_command
from .explore import explore_command
from .report import report_command
from .serve import serve_command
from .show import bar, dump, json_option, one_line_errors, table, working

FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(package_name="bitloom")
def bitloom() -> None:
    """Trained low-bit neural networks become FPGA accelerators for PYNQ boards, proved on a laptop."""


bitloom.add_command(accumulate_command)
bitloom.add_command(area_command)
bitloom.add_command(bench)
bitloom.add_command(build_command)
bitloom.add_command(crosscheck_command)
bitloom.add_command(explore_command)
bitloom.add_command(report_command)
bitloom.add_command(dataflows_command)
bitloom.add_command(orders_command)
bitloom.add_command(serve_command)


@bitloom.command()
@click.option("--frames", type=click.IntRange(1, 360), default=360, help="Test images to classify.")
@click.option(
    "--stall", type=click.FloatRange(0, 0.95), default=0.0, help="Probability of a pause in a cycle, on both streams."
)
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of the pauses.")
@click.option("--out", type=FOLDER, default=Path("build/demo"), help="Folder for the build and report.json.")
@json_option
@one_line_errors
def demo(frames: int, stall: float, seed: int, out: Path, as_json: bool) -> None:
    """Classify handwritten digits on simulated hardware and compare every bit with golden.

    The network digits-cnn comes trained; its accelerator is generated, compiled with Verilator, and driven by the
    pynq driver.
    """
    model = networks.load("digits-cnn")
    data = digits.load_digits()
    images, labels = data.test_images[:frames], data.test_labels[:frames]
    with working("generating Verilog and compiling the network"):
        made = builds.build(out, size_memories("digits", [model], DIGITS), [model])
    done = _run(made, model, images, stall=stall, seed=seed)
    report = done.report(labels)
    (out / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    _show("digits-cnn on simulated hardware", report, as_json)
    _fail_unless_exact(done)


@bitloom.command()
@click.argument("folder", type=FOLDER)
@click.argument("network", required=False)
@click.option("--images", type=FILE, help="Images: .npy of shape (N, H, W, C), integers.  [default: random ones]")
@click.option("--frames", type=click.IntRange(1), default=16, help="Images to run (the first ones of --images).")
@click.option("--batch", type=click.IntRange(1), help="Frames a transfer.  [default: as many as fit]")
@click.option(
    "--stall", type=click.FloatRange(0, 0.95), default=0.0, help="Probability of a pause in a cycle, on both streams."
)
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of pauses and random images.")
@click.option("--vcd", type=FILE, help="Write a waveform.")
@click.option("--out", type=FILE, help="Write the outputs, (N, H, W, C), as .npy.")
@json_option
@one_line_errors
def simulate(
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
    made = builds.load(folder)
    model = networks.find(network or next(iter(made.programs)))
    given = _images(model, images, frames, seed)
    done = _run(made, model, given, batch=batch, stall=stall, seed=seed, waveform=vcd)
    if out:
        np.save(out, done.outputs)
    _show(f"{model.network.name} on simulated hardware", done.report(), as_json)
    _fail_unless_exact(done)


@bitloom.command()
@click.option(
    "--epochs", type=click.IntRange(1), help="Passes over the training images.  [default: those of the shipped network]"
)
@click.option("--seed", type=click.IntRange(0), default=0, help="Another seed gives another network.")
@click.option("--out", type=FILE, default=Path("build/digits-cnn.npz"), help="Model file to write.")
@click.option("--checkpoint", type=FILE, help="Save here after each epoch, and go on from here.")
@json_option
@one_line_errors
def train(epochs: int | None, seed: int, out: Path, checkpoint: Path | None, as_json: bool) -> None:
    """Train digits-cnn, in numpy; with the defaults the result is the shipped network, byte for byte."""
    with bar("training", "epochs") as update:
        model = digits.train_digits(epochs, seed, lambda e: update(e.number, e.epochs), checkpoint)
    out.parent.mkdir(parents=True, exist_ok=True)
    file.save(model, out)
    data = digits.load_digits()
    scores = model.forward(data.test_images).reshape(len(data.test_labels), -1)
    accuracy = float((scores.argmax(axis=1) == data.test_labels).mean())
    facts = {"file": str(out), "digest": model_digest(model), "test_images": len(scores), "test_accuracy": accuracy}
    if as_json:
        dump(facts)
        return
    table(
        "digits-cnn",
        {"file": str(out), "digest": facts["digest"][:16], "test accuracy": f"{accuracy:.2%} of {len(scores)}"},
    )


def _images(model: Model, path: Path | None, frames: int, seed: int) -> np.ndarray:
    if path is None:
        return random_images(model.network, frames, seed)
    try:
        return np.load(path, allow_pickle=False)[:frames]
    except (ValueError, EOFError) as e:
        raise ValueError(f"{path}: images must be a .npy file of integers, got: {str(e).splitlines()[0]}") from None


def _run(made: builds.Build, model: Model, images: np.ndarray, **options: Any) -> Run:
    with bar("building and running the simulation") as update:
        return run(made, model, images, progress=update, **options)


def _show(title: str, report: dict[str, float], as_json: bool) -> None:
    if as_json:
        dump(report)
        return
    rows = {
        "frames": f"{report['frames']:,}",
        "bit-exact frames": f"{report['bit_exact_frames']:,}",
        **{
            f"accuracy of {who}": f"{report[f'accuracy_{who}']:.2%}"
            for who in ("golden", "hardware")
            if f"accuracy_{who}" in report
        },
        "cycles a frame": f"{report['cycles_per_frame']:,.1f}",
        "ideal beats a frame": f"{report['ideal_cycles_per_frame']:,}",
        "utilisation": f"{report['utilisation']:.2%}",
        "simulated cycles a second": f"{report['simulated_cycles_per_second']:,.0f}",
        "simulated XNOR operations a second": f"{report['simulated_xnor_operations_per_second']:,.0f}",
        "seconds a frame": f"{report['seconds'] / report['frames']:.3f}",
        "seconds to build the model": f"{report['build_seconds']:.1f}",
    }
    table(title, rows)


def _fail_unless_exact(done: Run) -> None:
    if done.bit_exact_frames != done.frames:
        raise ValueError(
            f"{done.program.name}: all {done.frames} frames must equal golden, got {done.bit_exact_frames}"
        )
