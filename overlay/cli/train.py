"""The command train: the shipped network, trained again."""

from pathlib import Path

import click

from bitloom.golden import file
from bitloom.golden.file import model_digest
from bitloom.golden.zoo import digits

from .options import FILE
from .progress import bar
from .show import dump, json_option, one_line_errors, table


@click.command("train")
@click.option(
    "--epochs", type=click.IntRange(1), help="Passes over the training images.  [default: those of the shipped network]"
)
@click.option("--seed", type=click.IntRange(0), default=0, help="Another seed gives another network.")
@click.option("--out", type=FILE, default=Path("build/digits-cnn.npz"), help="Model file to write.")
@click.option("--checkpoint", type=FILE, help="Save here after each epoch, and go on from here.")
@json_option
@one_line_errors
def train_command(epochs: int | None, seed: int, out: Path, checkpoint: Path | None, as_json: bool) -> None:
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
