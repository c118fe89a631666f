"""The command crosscheck: golden, the tiled convolution, GPU kernels, CPU and hardware give the same bits."""

from dataclasses import asdict
from pathlib import Path

import click

from bitloom.golden import zoo as networks
from bitloom.overlay.study.crosscheck import NAMES, StageResult, available, crosscheck, missing

from .options import out_option
from .progress import bar
from .show import dump, grid, json_option, one_line_errors

NETWORKS = ("digits-cnn", "cnv-w1a1")


@click.command("crosscheck")
@click.argument("names", metavar="[NETWORK]...", nargs=-1)
@click.option("--images", type=click.IntRange(1), default=1, help="Random images of each network.")
@click.option("--word-bits", type=click.Choice(["32", "64"]), default="32", help="Words, where there is a choice.")
@click.option("--skip", type=click.Choice(NAMES), multiple=True, help="Implementation to leave out; may be repeated.")
@out_option(Path("build/crosscheck"), "Hardware goes here.")
@json_option
@one_line_errors
def crosscheck_command(
    names: tuple[str, ...], images: int, word_bits: str, skip: tuple[str, ...], out: Path, as_json: bool
) -> None:
    """Compare every implementation with golden, bit for bit and stage by stage.

    NETWORKs are names of ours or model files (.npz); by default digits-cnn and cnv-w1a1. A GPU takes part where there
    is one.
    """
    chosen = [name for name in available() if name not in skip]
    absent = missing()
    found: dict[str, list[StageResult]] = {}
    for name in dict.fromkeys(names or NETWORKS):
        model = networks.find(name)
        with bar(f"{name}: comparing", "implementations") as update:
            found[name] = crosscheck(
                model, out / model.network.name, chosen, images=images, word_bits=int(word_bits), progress=update
            )
    if as_json:
        dump({
            "images": images, "word_bits": int(word_bits), "not_run": absent | dict.fromkeys(skip, "left out"),
            "networks": {name: [asdict(stage) for stage in stages] for name, stages in found.items()},
        })  # fmt: skip
    else:
        for name, stages in found.items():
            title = f"{name}: values unlike golden's, {images} random image{'s' * (images > 1)} (-: not binary)"
            rows = [[s.name, f"{s.values:,}", *(cell(s, column) for column in NAMES)] for s in stages]
            grid(title, ["layer", "values", *NAMES], rows)
        for reason in dict.fromkeys(absent.values()):
            click.echo(f"not run: {reason}", err=True)
    wrong = [f"{n} {s.name} ({who})" for n, stages in found.items() for s in stages for who, k in s.wrong.items() if k]
    if wrong:
        raise ValueError(f"crosscheck: every value must equal golden's, got others in {', '.join(wrong)}")


def cell(stage: StageResult, name: str) -> str:
    """What the table says of one implementation."""
    if name not in stage.wrong:
        return "not run"
    count = stage.wrong[name]
    return "-" if count is None else f"{count:,}"
