"""The command train: the shipped network again, or a network of the user's own."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from bitloom.golden import file
from bitloom.golden.atomic import inside
from bitloom.golden.file import model_digest
from bitloom.golden.network import Network
from bitloom.golden.training.architecture import ACTIVATIONS, WEIGHTS, network_of
from bitloom.golden.training.train import MOST_MARGIN, MOST_RATE, Epoch, Recipe
from bitloom.golden.zoo import digits
from bitloom.overlay.picture import check_plot
from bitloom.overlay.study.training_data import TrainingData, training_data
from bitloom.overlay.study.training_runs import TrainingRun, curve_file, mean_accuracy, plot_training, run_training

from .option_groups import GroupedCommand, option_group
from .options import WRITTEN_FILE, NumberRange, held_out_option, words_or_paths
from .progress import bar
from .show import dump, json_option, table

SHIPPED = "conv16,conv32p0,pool,conv64"
"""Layers of digits-cnn but its last one, which has an output a class."""
RATES = {"binary": (0.03, 3.0), "ternary": (0.03, 3.0), "int": (0.01, 1.0)}
"""By the beginning of the weights' name: rate and margin, as chosen on held-out images of digits."""
MOST_SEEDS = 100


@click.command("train", cls=GroupedCommand)
@click.argument("data", required=False, shell_complete=words_or_paths(tuple))
@option_group(
    "Network",
    click.option(
        "--layers",
        help="Layers, as conv16,pool,dense10; the last has an output a class.  [default: those of digits-cnn]",
    ),
    click.option(
        "--weights",
        type=click.Choice(list(WEIGHTS)),
        metavar="KIND",
        help=f"Weights of all layers.  [{', '.join(WEIGHTS)}; default: binary]",
    ),
    click.option(
        "--activations",
        type=click.Choice(ACTIVATIONS),
        help="Bits of the activations; beside binary and ternary weights 1, ternary (-1, 0, 1), 2 or 3, else "
        "2 to 8.  [default: 1; 8]",
    ),
)
@option_group(
    "Training",
    click.option(
        "--epochs",
        type=click.IntRange(1),
        help="Passes over the training images.  [default: those of the shipped network]",
    ),
    click.option("--seed", type=click.IntRange(0), default=0, help="Another seed gives another network."),
    click.option(
        "--seeds",
        type=click.IntRange(1, MOST_SEEDS),
        default=1,
        help="Runs, each with a seed of its own, from --seed on; the first one is written.",
    ),
    click.option(
        "--rate",
        type=NumberRange(0, MOST_RATE, min_open=True),
        help="How far a parameter changes at first.  [default: by the weights]",
    ),
    click.option(
        "--margin",
        type=NumberRange(0, MOST_MARGIN, min_open=True),
        help="By how much a class should win.  [default: by the weights]",
    ),
    click.option("--batch", type=click.IntRange(1), default=Recipe.batch, help="Images after which parameters change."),
    held_out_option,
)
@option_group(
    "Results",
    click.option("--plot", "picture", type=WRITTEN_FILE, help="Write a picture of the learning curves, .png or .svg."),
    click.option(
        "--out",
        type=WRITTEN_FILE,
        help="Model file to write; its stem names the network.  "
        "[default: build/digits-cnn.npz, with DATA build/trained.npz]",
    ),
    click.option("--real-weights", is_flag=True, help="Write the real numbers of which binary weights are the signs."),
    click.option("--resume", is_flag=True, help="Go on from where the same command was interrupted."),
    click.option("--checkpoint", type=WRITTEN_FILE, help="Save here after each epoch, and go on from here."),
)
@json_option
def train_command(
    data: str | None,
    layers: str | None,
    weights: str | None,
    activations: str | None,
    epochs: int | None,
    seed: int,
    seeds: int,
    rate: float | None,
    margin: float | None,
    batch: int,
    held_out: bool,
    picture: Path | None,
    out: Path | None,
    real_weights: bool,
    resume: bool,
    checkpoint: Path | None,
    as_json: bool,
) -> None:
    """Train a network, in numpy: the shipped digits-cnn, byte for byte, or with DATA one of your own.

    DATA is digits, scikit-learn's, or an npz with integers x, (N, H, W, C), (N, H, W) or (N, inputs), and labels y from
    0; x_test and y_test may be there, too, otherwise a fifth of the images is kept to test with.
    """
    if data is None and (layers or weights or activations):
        raise ValueError("train: --layers, --weights and --activations need DATA, digits or an npz, got none")
    if real_weights and (weights or "binary") != "binary":
        raise ValueError(f"train: --real-weights needs --weights binary, got {weights}")
    if picture is not None:
        check_plot(picture)
    images = training_data(data or "digits")
    out = out or inside(Path("build"), "digits-cnn.npz" if data is None else "trained.npz")
    weights = weights or "binary"
    network = digits.digits_cnn() if data is None else _network(images, out, layers, weights, activations)
    images = images.held_out() if held_out else images
    images.check_batch(batch)
    usual_rate, usual_margin = RATES["int" if weights.startswith("int") else weights]
    recipe = Recipe(
        epochs=epochs or digits.RECIPE.epochs,
        seed=seed,
        batch=batch,
        rate=rate or usual_rate,
        margin=margin or usual_margin,
    )
    recipes = [replace(recipe, seed=seed + number) for number in range(seeds)]
    files = _checkpoints(recipes, out, checkpoint, resume)
    runs = _train(network, images, recipes, files, curve=picture is not None, real_weights=real_weights)
    file.save(runs[0].model, out)
    if picture is not None:
        right = f"{mean_accuracy(runs):.2%} of {len(images.test_labels):,} images {images.tested}"
        plot_training(picture, f"{network.name}: {right}", runs)
    if checkpoint is None:
        _remove(files)
    _report(out, images, runs, as_json)


def _train(
    network: Network, images: TrainingData, recipes: Sequence[Recipe], checkpoints: Sequence[Path], **options: bool
) -> list[TrainingRun]:
    """One run after another, with a progress bar of all epochs; ``options`` are those of `run_training`."""
    runs: list[TrainingRun] = []
    with bar("training", "epochs") as update:
        for recipe, path in zip(recipes, checkpoints):
            done, total = len(runs) * recipe.epochs, len(recipes) * recipe.epochs

            def note(epoch: Epoch, before: int = done, all_: int = total) -> None:
                update(before + epoch.number, all_)

            runs.append(run_training(network, images, recipe, path, note, **options))
    return runs


def _network(images: TrainingData, out: Path, layers: str | None, weights: str, activations: str | None) -> Network:
    """The network that the words describe, with the images' classes."""
    classes = max(int(labels.max()) for labels in (images.labels, images.test_labels) if labels.size) + 1
    words = layers or f"{SHIPPED},dense{classes}"
    bits = activations or ("8" if weights.startswith("int") else "1")
    network = network_of(out.stem, images.source, words, weights, bits)
    if network.output.channels < classes:
        raise ValueError(
            f"layers: the last must have an output for each of {classes} classes, got {network.output.channels}"
        )
    return replace(network, classes=images.classes) if len(images.classes) == network.output.channels else network


def _checkpoints(recipes: Sequence[Recipe], out: Path, given: Path | None, resume: bool) -> list[Path]:
    """The checkpoint of each run; those of an earlier command are removed unless it is to go on."""
    if given is not None:
        if len(recipes) > 1 or resume:
            rule = "is of one run, and goes on by itself, so without --seeds and --resume"
            raise ValueError(f"train: --checkpoint {rule}, got {given}")
        given.parent.mkdir(parents=True, exist_ok=True)
        return [given]
    files = [inside(out.parent, f"{out.stem}.seed{recipe.seed}.checkpoint.npz") for recipe in recipes]
    if resume and not any(path.exists() for path in files):
        raise ValueError(f"train: --resume needs a checkpoint of an interrupted run, got none at {files[0]}")
    if not resume:
        _remove(files)
    out.parent.mkdir(parents=True, exist_ok=True)
    return files


def _remove(checkpoints: Sequence[Path]) -> None:
    for path in checkpoints:
        path.unlink(missing_ok=True)
        curve_file(path).unlink(missing_ok=True)


def _report(out: Path, images: TrainingData, runs: list[TrainingRun], as_json: bool) -> None:
    """Print what came out."""
    first = runs[0]
    tested = len(images.test_labels)
    digest = model_digest(first.model)
    facts: dict[str, Any] = {
        "file": str(out),
        "digest": digest,
        "test_images": tested,
        "test_accuracy": first.accuracy,
        "train_images": len(images.labels),
        "held_out": images.tested == "held out",
        "mean_accuracy": mean_accuracy(runs),
        "seeds": [
            {
                "seed": run.seed,
                "accuracy": run.accuracy,
                "trained_accuracy": run.trained_accuracy,
                "same_classes": run.same_classes,
                "same_outputs": run.same_outputs,
                "curve": [point._asdict() for point in run.curve],
            }
            for run in runs
        ],
    }
    if as_json:
        dump(facts)
        return
    rows = {
        "file": str(out),
        "digest": digest[:16],
        "images to learn from": f"{len(images.labels):,}",
        "test accuracy": f"{first.accuracy:.2%} of {tested}",
    }
    if images.tested == "held out":
        rows["accuracy, held out"] = rows.pop("test accuracy")
    if first.same_outputs < 1:
        rows["before rounding to integers"] = f"{first.trained_accuracy:.2%}"
        rows["the same before and after"] = f"{first.same_classes:.2%} of classes, {first.same_outputs:.1%} of outputs"
    if len(runs) > 1:
        rows["each seed"] = ", ".join(f"{run.accuracy:.2%}" for run in runs)
        rows[f"mean of {len(runs)} seeds"] = f"{mean_accuracy(runs):.2%}"
    table(first.model.network.name, rows)
