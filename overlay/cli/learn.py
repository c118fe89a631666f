"""The command learn: perceptrons that learn on discrete data."""

from collections.abc import Sequence
from pathlib import Path

import click

from bitloom.golden import file
from bitloom.golden.discrete.data import DATA, SOURCES, LearnData
from bitloom.golden.discrete.export import to_model
from bitloom.golden.discrete.learn import LearnPlan, learn
from bitloom.golden.discrete.setting import SETTINGS
from bitloom.overlay.explore.plot import check_plot
from bitloom.overlay.study.learning import LearningRow, compare
from bitloom.overlay.study.learning_plot import plot_curves

from .options import FILE, out_option
from .show import bar, dump, grid, json_option, one_line_errors

EPOCHS = {"digits": 40, "mnist": 20}
"""By data, enough for a curve that has become flat."""


@click.command("learn")
@click.argument("data", type=click.Choice(list(DATA)))
@click.option("--setting", "settings", type=click.Choice(list(SETTINGS)), multiple=True, default=["codes-1"],
              help="What is discrete, and the update rule; may be given several times.")  # fmt: skip
@click.option("--all-settings", is_flag=True, help="All settings.")
@click.option("--seeds", type=click.IntRange(1), default=1, help="Runs of each setting, with seeds 0, 1, ...")
@click.option("--epochs", type=click.IntRange(1), help="Passes over the images.  [default: digits 40, mnist 20]")
@click.option("--hidden", default="256,256", help="Neurons of each hidden layer.")
@click.option("--plot", "picture", type=FILE, help="Write a picture of the learning curves, .png or .svg.")
@click.option("--save", type=FILE, help="Write what setting hardware learned with seed 0 as a model file, .npz.")
@out_option(Path("build/learn"), "Folder for results; an interrupted command goes on from what is there.")
@json_option
@one_line_errors
def learn_command(
    data: str,
    settings: tuple[str, ...],
    all_settings: bool,
    seeds: int,
    epochs: int | None,
    hidden: str,
    picture: Path | None,
    save: Path | None,
    out: Path,
    as_json: bool,
) -> None:
    """Train perceptrons with batch normalisation on discrete data, and show their accuracy on test images.

    DATA is digits, scikit-learn's, or mnist: MNIST's 10,000 test images, 8,000 of them to learn from, where
    BITLOOM_DATA names their folder. Accuracy is that with the nearest codes of the weights.
    """
    if picture is not None:
        check_plot(picture)
    names = list(SETTINGS) if all_settings else list(dict.fromkeys(settings))
    if save is not None and names != ["hardware"]:
        raise ValueError(f"learn: --save needs --setting hardware alone, got {', '.join(names)}")
    sizes = _sizes(hidden)
    plans = [LearnPlan(hidden=sizes, epochs=epochs or EPOCHS[data], seed=seed) for seed in range(seeds)]
    images = DATA[data]()
    with bar(f"learning {data}", "epochs") as update:
        rows = compare(names, plans, images, out, update, keep=save is not None)
    title = f"{data}: {len(images.train):,} images to learn from, {len(images.test):,} to test, {seeds} seeds"
    if picture is not None:
        plot_curves(picture, title, rows)
    if save is not None:
        _save(save, images, plans[0], out)
    if as_json:
        dump({"data": data, "seeds": seeds, "epochs": plans[0].epochs, "settings": [row.to_dict() for row in rows]})
        return
    _show(title, rows)


def _show(title: str, rows: Sequence[LearningRow]) -> None:
    """Print a row for each setting."""
    cells = []
    for row in rows:
        figures = (row.mean, min(row.final), max(row.final))
        cells.append([row.setting, *(f"{100 * value:.2f}" for value in figures), SETTINGS[row.setting].about])
    grid(title, ["setting", "mean %", "lowest", "highest", "what is discrete"], cells)


def _save(path: Path, images: LearnData, plan: LearnPlan, folder: Path) -> None:
    """Write the network of the run that has just ended, from its checkpoint."""
    checkpoint = folder / f"{images.name}-hardware-{plan.seed}.npz"
    mlp = learn(SETTINGS["hardware"], plan, images, checkpoint=checkpoint).mlp
    preset = mlp.preset(images.real(images.train))
    path.parent.mkdir(parents=True, exist_ok=True)
    file.save(to_model(f"{images.name}-learned", mlp, preset, SOURCES[images.name], images.half), path)


def _sizes(text: str) -> tuple[int, ...]:
    """Neurons of the hidden layers."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"learn: --hidden must be numbers with commas between, got {text!r}") from None
