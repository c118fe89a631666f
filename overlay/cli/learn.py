"""The command learn: perceptrons that learn on discrete data."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import click

from bitloom.golden import file
from bitloom.golden.discrete.data import DATA, SOURCES, LearnData
from bitloom.golden.discrete.export import to_model
from bitloom.golden.discrete.learn import LearnPlan, learn
from bitloom.golden.discrete.setting import SETTINGS
from bitloom.golden.names import shown
from bitloom.overlay.picture import check_plot
from bitloom.overlay.study.learning import LearningRow, compare, plot_curves
from bitloom.overlay.study.machine_learning import MachinePlan, learn_on_machine, plot_timeline, work_of_a_sample
from bitloom.overlay.study.machine_setting import MACHINE_SETTINGS

from .option_groups import GroupedCommand, option_group
from .options import FILE, given, held_out_option, out_option
from .progress import bar
from .show import dump, grid, json_option, one_line_errors

HIDDEN = "256,256"
"""Neurons of the hidden layers by default."""
EPOCHS = {"digits": 100, "mnist": 20}
"""Default epochs by data: enough for the curve to become flat."""
NAMES = list(dict.fromkeys([*SETTINGS, *MACHINE_SETTINGS]))
"""Names of all settings, without and with --machine."""
MOST_SEEDS = 1000
WITHOUT_MACHINE = ("all_settings", "seeds", "rate_times", "picture", "save")
WITH_MACHINE = ("slaves", "rate_places", "timeline")
"""Parameters that only learning without --machine looks at, and those that only learning with it looks at."""


@click.command("learn", cls=GroupedCommand)
@click.argument("data", type=click.Choice(list(DATA)))
@option_group(
    "Training",
    click.option(
        "--setting",
        "settings",
        type=click.Choice(NAMES),
        metavar="NAME",
        multiple=True,
        help="What is discrete, and the update rule; may be given several times, once with --machine.  "
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
    click.option("--epochs", type=click.IntRange(1), help="Passes over the images.  [default: digits 100, mnist 20]"),
    held_out_option,
    click.option("--rate-times", type=float, default=1.0, help="Multiplies the rates of each setting."),
    click.option("--hidden", default=HIDDEN, help="Neurons of each hidden layer."),
)
@option_group(
    "Results",
    click.option("--plot", "picture", type=FILE, help="Write a picture of the learning curves, .png or .svg."),
    click.option("--save", type=FILE, help="Write what setting hardware learned with its first seed, .npz."),
)
@option_group(
    "Training machine",
    click.option(
        "--machine",
        type=click.Choice(["interpreter", "verilator"]),
        help="Learn on the training machine: its interpreter, or its hardware in Verilator.",
    ),
    click.option("--slaves", type=click.Choice(["1", "2", "4", "8", "16"]), default="8", help="Slaves of the machine."),
    click.option(
        "--rate-places",
        type=click.IntRange(0, 31),
        help="k of the machine's learning rate 2^-k.  [default: that of the setting]",
    ),
    click.option("--timeline", type=FILE, help="Write a picture of what its units do for a sample, .png or .svg."),
)
@out_option(Path("build/learn"), "Folder for results; an interrupted command goes on from what is there.")
@json_option
@one_line_errors
def learn_command(
    data: str,
    settings: tuple[str, ...],
    all_settings: bool,
    seeds: int,
    first_seed: int,
    epochs: int | None,
    held_out: bool,
    rate_times: float,
    hidden: str,
    picture: Path | None,
    save: Path | None,
    machine: str | None,
    slaves: str,
    rate_places: int | None,
    timeline: Path | None,
    out: Path,
    as_json: bool,
) -> None:
    """Train perceptrons with batch normalisation on discrete data, and show their accuracy on test images.

    DATA is digits, scikit-learn's, or mnist: MNIST's 10,000 test images, 8,000 of them to learn from, where
    BITLOOM_DATA names their folder. Accuracy is that with the nearest codes of the weights.

    With --machine a perceptron without normalisation learns sample by sample, with weights that are words, or codes as
    --setting says; hidden layers are 32 then, unless --hidden says something else.
    """
    if machine is None and (option := given(WITH_MACHINE)):
        raise ValueError(f"learn: {option} needs --machine")
    if machine is not None:
        if option := given(WITHOUT_MACHINE):
            raise ValueError(f"learn: {option} must be left out with --machine, which has one run of its own")
        plan = MachinePlan(
            hidden=(32,) if hidden == HIDDEN else _sizes(hidden),
            epochs=epochs or 5,
            seed=first_seed,
            slaves=int(slaves),
            hardware=machine == "verilator",
            setting=_machine_setting(settings),
            rate_places=rate_places,
            held_out=held_out,
        )
        _on_machine(data, plan, timeline, out, as_json)
        return
    if all_settings and settings:
        raise ValueError("learn: give --setting or --all-settings, not both")
    if picture is not None:
        check_plot(picture)
    names = list(SETTINGS) if all_settings else list(dict.fromkeys(settings or ["codes-1"]))
    _check_settings("without --machine", names, SETTINGS)
    if save is not None and names != ["hardware"]:
        raise ValueError(f"learn: --save needs --setting hardware alone, got {', '.join(names)}")
    if save is not None and held_out:
        raise ValueError("learn: --save needs all training images, so not --held-out")
    common = LearnPlan(
        hidden=_sizes(hidden), epochs=epochs or EPOCHS[data], seed=first_seed, rate_times=rate_times, held_out=held_out
    )
    plans = [replace(common, seed=first_seed + number) for number in range(seeds)]
    images = DATA[data]()
    with bar(f"learning {data}", "epochs") as update:
        rows = compare(names, plans, images, out, update, keep=save is not None)
    title = f"{_about(images, common)}, {seeds} seeds"
    if picture is not None:
        plot_curves(picture, title, rows)
    if save is not None:
        _save(save, images, plans[0], out)
    if as_json:
        dump({"data": data, "seeds": seeds, "epochs": plans[0].epochs, "settings": [row.to_dict() for row in rows]})
        return
    _show(title, rows)


def _about(images: LearnData, plan: LearnPlan) -> str:
    """Which images are learned from and tested with, in words."""
    used = images.held_out(plan.seed) if plan.held_out else images
    tested = "held out" if plan.held_out else "to test"
    return f"{images.name}: {len(used.train):,} images to learn from, {len(used.test):,} {tested}"


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


def _check_settings(when: str, names: Sequence[str], known: Collection[str]) -> None:
    """ValueError if a setting is none of those that are known."""
    for name in names:
        if name not in known:
            raise ValueError(f"learn: {when} --setting must be one of {', '.join(known)}, got {name}")


def _machine_setting(settings: Sequence[str]) -> str:
    """The setting of a training on the machine."""
    names = list(dict.fromkeys(settings or ["words"]))
    _check_settings("with --machine", names, MACHINE_SETTINGS)
    if len(names) > 1:
        raise ValueError(f"learn: with --machine --setting must be given once, got {', '.join(names)}")
    return names[0]


def _on_machine(data: str, plan: MachinePlan, timeline: Path | None, out: Path, as_json: bool) -> None:
    """Learn on the training machine, and show accuracy and cycles of each epoch."""
    if timeline is not None:
        check_plot(timeline)
    images = DATA[data]()
    name = "verilator" if plan.hardware else "interpreter"
    out.mkdir(parents=True, exist_ok=True)
    given = {"seed": plan.seed or None, "rate": plan.rate_places, "held": "out" if plan.held_out else None}
    parts = [data, name, plan.setting, plan.slaves, *plan.hidden]
    parts += [f"{what}-{value}" for what, value in given.items() if value is not None]
    checkpoint = out / f"{'-'.join(map(str, parts))}.npz"
    with bar(f"learning {data} on the machine", "epochs") as update:
        learned = learn_on_machine(plan, images, checkpoint, update)
    if timeline is not None:
        plot_timeline(timeline, f"a sample of {data}, {plan.slaves} slaves", work_of_a_sample(plan, images))
    if as_json:
        dump({"data": data, "accuracy": learned.curve, "cycles": learned.cycles, "ideal": learned.ideal})
        return
    rows = [
        [str(n), f"{100 * right:.2f}", f"{cycles:,.0f}", f"{learned.ideal:,.0f}"]
        for n, (right, cycles) in enumerate(zip(learned.curve, learned.cycles), 1)
    ]
    about = f"{plan.slaves} slaves, {plan.kinds.about}, rate 2^-{plan.kinds.rule.rate_places}"
    title = f"{data} on the training machine, {about}{', held-out images' if plan.held_out else ''}"
    grid(title, ["epoch", "right %", "cycles a sample", "ideal"], rows)


def _sizes(text: str) -> tuple[int, ...]:
    """Neurons of the hidden layers."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"learn: --hidden must be numbers with commas between, got {shown(text)}") from None
