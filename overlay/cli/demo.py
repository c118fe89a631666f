"""The command demo: handwritten digits on simulated hardware."""

import json
from pathlib import Path

import click

from bitloom.golden import zoo as networks
from bitloom.golden.atomic import inside, write_text
from bitloom.golden.zoo import digits
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.reference_designs import DIGITS
from bitloom.overlay.build.run import Conditions

from .options import out_option, stall_options
from .progress import working
from .show import fail_unless_exact, json_option
from .simulation import require_pynq, show_report, simulated
from .subject import tell_kept


@click.command("demo")
@click.option("--frames", type=click.IntRange(1, 360), default=360, help="Test images to classify.")
@stall_options
@out_option(Path("build/demo"), "Folder for the build and report.json.")
@json_option
def demo_command(frames: int, stall: float, seed: int, out: Path, as_json: bool) -> None:
    """Classify handwritten digits on simulated hardware and compare every bit with golden.

    The network digits-cnn comes trained; its accelerator is generated, compiled with Verilator, and driven by the
    pynq driver.
    """
    require_pynq()
    model = networks.load("digits-cnn")
    data = digits.load_digits()
    images = data.test_images[:frames]
    labels = data.test_labels[:frames]
    with working("generating Verilog and compiling the network"):
        build = builds.build(out, size_memories("digits", [model], DIGITS), [model])
    tell_kept(build)
    place = inside(out, "report.json")
    done = simulated(build, model, images, conditions=Conditions(stall=stall, seed=seed))
    report = done.report(labels)
    write_text(place, json.dumps(report, indent=1) + "\n")
    show_report("digits-cnn on simulated hardware", report, as_json)
    fail_unless_exact(model.network.name, done.frames, done.bit_exact_frames)
