"""The command learn: perceptrons that learn on discrete data."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import click
import numpy as np

from bitloom.golden import file
from bitloom.golden.discrete.data import DATA, SOURCES, LearnData
from bitloom.golden.discrete.export import to_model
from bitloom.golden.discrete.learn import LearnPlan, learn
from bitloom.golden.discrete.setting import SETTINGS, Setting
from bitloom.golden.names import shown
from bitloom.overlay.picture import check_plot
from bitloom.overlay.study.learning import FloatRun, LearningRow, LearningRun, compare, plot_curves
from bitloom.overlay.study.machine_learning import (
    RUNNERS,
    MachinePlan,
    plot_timeline,
    work_of_a_sample,
)
from bitloom.overlay.study.machine_setting import MACHINE_SETTINGS, MachineSetting

from .option_groups import GroupedCommand, in_group, option_group
from .options import MACHINE_SLAVES, WRITTEN_FILE, given, held_out_option, out_option
from .progress import bar
from .show import dump, grid, json_option

HIDDEN = "256,256"
"""Neurons of the hidden layers by default."""
MACHINE_HIDDEN = "128"
"""The same with --machine."""
EPOCHS = {"digits": 100, "mnist": 20}
"""Default epochs by data: enough for the curve to become flat."""
MACHINE_EPOCHS = 30
"""Default epochs with --machine."""
NAMES = list(dict.fromkeys([*SETTINGS, *MACHINE_SETTINGS]))
"""Names of all settings, without and with --machine."""
MOST_SEEDS = 1000
WITHOUT_MACHINE = "Without the training machine"
WITH_MACHINE = "Training machine"
"""Groups of the options at which only learning without --machine looks, and only learning with it."""
DRAWN_EVERY = 5.0
"""Seconds between two pictures of curves that are still growing, at least."""


@click.command("learn", cls=GroupedCommand)
@click.argument("data", type=click.Choice(list(DATA)))
@click.option(
    "--machine",
    type=click.Choice(RUNNERS),
    help="Learn on the training machine: verilator is its hardware, interpreter its interpreter, words its "
    "arithmetic alone, which is the fastest and has no cycles. What is learned is the same.",
)
@option_group(
    "Training",
    click.option(
        "--setting",
        "settings",
        type=click.Choice(NAMES),
        metavar="NAME",
        multiple=True,
        help="What is discrete, and the update rule; may be given several times.  "
        f"[{', '.join(NAMES)}; default: codes-1, with --machine words]",
    ),
    click.option("--all-settings", is_flag=True, help="All settings."),
    click.option(
        "--seeds",
        type=click.IntRange(1, MOST_SEEDS),
        default=1,
        help="Runs of each setting, each with a seed of its own.",
    ),
    click.option("--first-seed", type=click.IntRange(0), default=0, help="Seed of the first run; the others count on."),
    click.option(
        "--epochs",
        type=click.IntRange(1),
        help="Passes over the images.  [default: digits 100, mnist 20, with --machine 30]",
    ),
    held_out_option,
    click.option(
        "--hidden", help=f"Neurons of each hidden layer.  [default: {HIDDEN}, with --machine {MACHINE_HIDDEN}]"
    ),
)
@option_group(
    "Results",
    click.option("--plot", "picture", type=WRITTEN_FILE, help="Draw the learning curves as they come, .png or .svg."),
)
@option_group(
    WITHOUT_MACHINE,
    click.option("--rate-times", type=float, default=1.0, help="Multiplies the rates of each setting."),
    click.option("--save", type=WRITTEN_FILE, help="Write what setting hardware learned with its first seed, .npz."),
)
@option_group(
    WITH_MACHINE,
    click.option("--slaves", type=click.Choice(MACHINE_SLAVES), default="8", help="Slaves of the machine."),
    click.option(
        "--rate-places",
        type=click.IntRange(0, 31),
        help="k of the machine's learning rate 2^-k at the start.  [default: that of the setting]",
    ),
    click.option(
        "--mu-places",
        type=click.IntRange(0, 31),
        help="k of the source rule's mu 2^-k.  [default: that of the setting]",
    ),
    click.option(
        "--decay-places",
        type=click.IntRange(0, 31),
        help="k of the share 2^-k that a velocity loses with each batch.  [default: that of the setting]",
    ),
    click.option("--batch", type=click.IntRange(1, 4096), help="Images of a batch.  [default: that of the setting]"),
    click.option(
        "--windows",
        type=(click.IntRange(1), click.IntRange(1)),
        metavar="SIZE STRIDE",
        help="The first hidden layer is a convolution: its neurons see square windows of this size and stride.",
    ),
    click.option("--normalised", is_flag=True, help="Sums of hidden layers are normalised over the batch."),
    click.option(
        "--timeline", type=WRITTEN_FILE, help="Write a picture of what its units do for a sample, .png or .svg."
    ),
)
@out_option(Path("build/learn"), "Folder for results; an interrupted command goes on from what is there.")
@json_option
def learn_command(
    data: str,
    settings: tuple[str, ...],
    all_settings: bool,
    seeds: int,
    first_seed: int,
    epochs: int | None,
    held_out: bool,
    rate_times: float,
    hidden: str | None,
    picture: Path | None,
    save: Path | None,
    machine: str | None,
    slaves: str,
    rate_places: int | None,
    mu_places: int | None,
    decay_places: int | None,
    batch: int | None,
    windows: tuple[int, int] | None,
    normalised: bool,
    timeline: Path | None,
    out: Path,
    as_json: bool,
) -> None:
    """Train perceptrons on discrete data, and show their accuracy on test images.

    DATA is digits, scikit-learn's, or mnist: MNIST's 10,000 test images, 8,000 of them to learn from, where
    BITLOOM_DATA names their folder. Accuracy is that with the nearest codes of the weights.

    Without --machine perceptrons compute in floating point, and a second table says what their training takes: memory,
    and products by the number of codes among their factors. With --machine they learn by
    programs of the training machine, in fixed-point words and codes.
    """
    if option := given(in_group(WITH_MACHINE if machine is None else WITHOUT_MACHINE)):
        raise ValueError(f"learn: {option} {'needs' if machine is None else 'must be left out with'} --machine")
    if all_settings and settings:
        raise ValueError("learn: give --setting or --all-settings, not both")
    for drawn in (picture, timeline):
        if drawn is not None:
            check_plot(drawn)
    known: Mapping[str, Setting | MachineSetting] = SETTINGS if machine is None else MACHINE_SETTINGS
    names = list(dict.fromkeys(settings or ["codes-1" if machine is None else "words"]))
    names = list(known) if all_settings else names
    for name in names:
        if name not in known:
            when = "without" if machine is None else "with"
            raise ValueError(f"learn: {when} --machine --setting must be one of {', '.join(known)}, got {name}")
    if save is not None and names != ["hardware"]:
        raise ValueError(f"learn: --save needs --setting hardware alone, got {', '.join(names)}")
    if save is not None and held_out:
        raise ValueError("learn: --save needs all training images, so not --held-out")
    if timeline is not None and len(names) > 1:
        raise ValueError(f"learn: --timeline needs a single setting, got {', '.join(names)}")
    runs: list[LearningRun] = []
    for name, number in product(names, range(seeds)):
        seed = first_seed + number
        if machine is None:
            float_plan = LearnPlan(
                hidden=_sizes(hidden or HIDDEN),
                epochs=epochs or EPOCHS[data],
                seed=seed,
                rate_times=rate_times,
                held_out=held_out,
            )
            runs.append(FloatRun(setting=name, plan=float_plan))
            continue
        runs.append(
            MachinePlan(
                hidden=_sizes(hidden or MACHINE_HIDDEN),
                epochs=epochs or MACHINE_EPOCHS,
                seed=seed,
                slaves=int(slaves),
                runner=machine,
                setting=name,
                rate_places=rate_places,
                mu_places=mu_places,
                decay_places=decay_places,
                batch=batch,
                windows=windows,
                normalised=normalised,
                held_out=held_out,
            )
        )
    images = DATA[data]()
    title = f"{_about(images, first_seed, held_out)}, {seeds} seed{'s' * (seeds > 1)}"
    with bar(f"learning {data}", "epochs") as update:
        rows = compare(runs, images, out, update, watch=_drawing(picture, title), keep=save is not None)
    if picture is not None:
        plot_curves(picture, title, rows)
    if save is not None:
        assert isinstance(runs[0], FloatRun)
        _save(save, images, runs[0].plan, out)
    if timeline is not None:
        assert isinstance(runs[0], MachinePlan)
        plot_timeline(timeline, f"a sample of {data}, {slaves} slaves", work_of_a_sample(runs[0], images))
    float_runs = {run.setting: run for run in runs if isinstance(run, FloatRun)}
    costs = {name: {"discrete": SETTINGS[name].kinds(), **asdict(run.cost(images))} for name, run in float_runs.items()}
    if as_json:
        dicts = [{**row.to_dict(), **costs.get(row.setting, {})} for row in rows]
        dump({"data": data, "seeds": seeds, "epochs": runs[0].epochs, "settings": dicts})
        return
    _show(title, rows, {name: setting.about for name, setting in known.items()})
    if costs:
        _show_costs(costs)


def _drawing(picture: Path | None, title: str) -> Callable[[list[LearningRow]], None] | None:
    """Draws curves as they come, now and then."""
    if picture is None:
        return None
    drawn = time.monotonic()

    def draw(rows: list[LearningRow]) -> None:
        nonlocal drawn
        if time.monotonic() - drawn >= DRAWN_EVERY:
            plot_curves(picture, title, rows)
            drawn = time.monotonic()

    return draw


def _about(images: LearnData, seed: int, held_out: bool) -> str:
    """Which images are learned from and tested with, in words."""
    used = images.held_out(seed) if held_out else images
    tested = "held out" if held_out else "to test"
    return f"{images.name}: {len(used.train):,} images to learn from, {len(used.test):,} {tested}"


def _show(title: str, rows: Sequence[LearningRow], about: Mapping[str, str]) -> None:
    """Print a row for each setting, with cycles a sample where there is a clock."""
    clock = any(row.figure == "cycles" and row.figures[0][-1] for row in rows)
    cells = []
    for row in rows:
        figures = [f"{100 * value:.2f}" for value in (row.mean, min(row.final), max(row.final))]
        cycles = [f"{np.mean([epochs[-1] for epochs in row.figures]):,.0f}"] if clock else []
        cells.append([row.setting, *figures, *cycles, about[row.setting]])
    columns = ["setting", "mean %", "lowest", "highest", *["cycles"] * clock, "what is discrete"]
    grid(title, columns, cells)


def _show_costs(costs: Mapping[str, Mapping[str, Any]]) -> None:
    """Print what training takes with each setting."""
    cells = []
    for name, cost in costs.items():
        products = [f"{cost[key]:,.0f}" for key in ("multiplications", "shifts", "look_ups")]
        cells.append([name, f"{cost['parameter_bits']:.1f}", f"{cost['batch_bits'] / 8 / 1024:,.0f}", *products])
    columns = ["setting", "bits a parameter", "KiB a batch", "multiplications", "shifts", "look-ups"]
    grid("What training takes, and products of a sample", columns, cells)


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
        raise ValueError(f"learn: --hidden must be numbers with commas between, got {shown(text)}") from None
