"""Accuracy of perceptrons that learn with several settings, over several seeds, on the training machine or without."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bitloom.golden import atomic
from bitloom.golden.discrete.cost import Cost, training_cost
from bitloom.golden.discrete.data import LearnData
from bitloom.golden.discrete.learn import CurvePoint, LearnPlan, learn
from bitloom.golden.discrete.setting import SETTINGS
from bitloom.golden.names import shown
from bitloom.golden.reading.file import naming
from bitloom.golden.reading.json_text import read_json
from bitloom.golden.training.checkpoint import LARGEST, CheckpointError
from bitloom.overlay.picture import picture


class LearningRun(Protocol):
    """A perceptron that learns once, by a setting."""

    @property
    def setting(self) -> str:
        """Name of the setting."""

    @property
    def seed(self) -> int:
        """Of all that is random."""

    @property
    def epochs(self) -> int:
        """Points of the curve."""

    @property
    def figure(self) -> str:
        """Name of the number that is known of each epoch besides accuracy, one of `FIGURES`."""

    @property
    def runner(self) -> str:
        """In names of files, what learns; nothing for floating point."""

    def facts(self) -> dict[str, Any]:
        """All that the result depends on besides the images, as JSON knows it."""

    def learn(self, data: LearnData, seen: "Seen", checkpoint: Path) -> None:
        """Learn from the checkpoint on; after each epoch, and at the end, ``seen`` gets the curve so far."""


Seen = Callable[[Sequence[tuple[float, float]]], None]
"""Takes points of a curve: share of right test images, and the run's figure."""
FIGURES = ("loss", "cycles")
"""Mean loss of an epoch; cycles a sample."""


@dataclass(frozen=True, kw_only=True)
class FloatRun:
    """A run in floating point, without the training machine."""

    setting: str
    """A name of `SETTINGS`."""
    plan: LearnPlan
    figure = "loss"
    runner = ""

    @property
    def seed(self) -> int:
        """Of the plan."""
        return self.plan.seed

    @property
    def epochs(self) -> int:
        """Of the plan."""
        return self.plan.epochs

    def facts(self) -> dict[str, Any]:
        """Setting and plan."""
        return {"setting": asdict(SETTINGS[self.setting]), "plan": asdict(self.plan)}

    def cost(self, data: LearnData) -> Cost:
        """Memory and products of training."""
        setting = SETTINGS[self.setting]
        inputs = data.train.shape[1]
        specs = setting.specs(inputs, self.plan.hidden, int(data.train_labels.max()) + 1)
        return training_cost(inputs, specs, setting.rule, setting.batch)

    def learn(self, data: LearnData, seen: Seen, checkpoint: Path) -> None:
        """Learn."""

        def progress(curve: Sequence[CurvePoint]) -> None:
            seen([(point.test_accuracy, point.loss) for point in curve])

        progress(learn(SETTINGS[self.setting], self.plan, data, progress=progress, checkpoint=checkpoint).curve)


@dataclass(frozen=True)
class LearningRow:
    """The figures that one setting reached, or has reached so far."""

    setting: str
    """Name."""
    figure: str
    """One of `FIGURES`."""
    points: list[list[tuple[float, float]]] = field(default_factory=list)
    """Share of right test images after each epoch, with the figure, a list a seed."""

    @property
    def curves(self) -> list[list[float]]:
        """Share of right test images after each epoch, a list a seed."""
        return [[right for right, _ in points] for points in self.points]

    @property
    def figures(self) -> list[list[float]]:
        """The figure of each epoch, a list a seed."""
        return [[figure for _, figure in points] for points in self.points]

    @property
    def final(self) -> list[float]:
        """Accuracy at the end, one a seed."""
        return [curve[-1] for curve in self.curves if curve]

    @property
    def mean(self) -> float:
        """Mean of `final`."""
        return float(np.mean(self.final))

    def to_dict(self) -> dict[str, Any]:
        """As JSON knows it."""
        return {
            "setting": self.setting,
            "mean": self.mean,
            "final": self.final,
            "curves": self.curves,
            self.figure: self.figures,
        }


def compare(
    runs: Sequence[LearningRun],
    data: LearnData,
    folder: Path,
    progress: Callable[[int, int], None] | None = None,
    *,
    watch: Callable[[list[LearningRow]], None] | None = None,
    keep: bool = False,
) -> list[LearningRow]:
    """Learn with each run; what is in the folder already is not done again.

    Parameters
    ----------
    runs : sequence of LearningRun
        One or more a setting.
    data : LearnData
    folder : Path
        Gets a file ``<data>-<setting>-<seed>.json`` for each run, with its runner behind the data if it has one, and
        while it runs a checkpoint from which an interrupted run goes on. Files of other runs are replaced.
    progress : callable, optional
        Called with epochs done and epochs in all.
    watch : callable, optional
        Called after each epoch with what there is so far.
    keep : bool
        Whether checkpoints stay when a run has ended.

    Returns
    -------
    list of LearningRow
        One a setting, in the order of ``runs``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    total = sum(run.epochs for run in runs)
    done = 0
    rows: dict[str, LearningRow] = {}
    for run in runs:
        row = rows.setdefault(run.setting, LearningRow(run.setting, run.figure))
        row.points.append([])

        def seen(points: Sequence[tuple[float, float]], row: LearningRow = row, before: int = done) -> None:
            row.points[-1] = list(points)
            if progress:
                progress(before + len(points), total)
            if watch:
                watch(list(rows.values()))

        name = "-".join(str(part) for part in (data.name, run.runner, run.setting, run.seed) if part != "")
        path = atomic.inside(folder, f"{name}.json")
        checkpoint = atomic.inside(folder, f"{name}.npz")
        seen(_run(run, data, path, checkpoint, seen))
        if not keep:
            checkpoint.unlink(missing_ok=True)
        done += run.epochs
    return list(rows.values())


def _run(run: LearningRun, data: LearnData, path: Path, checkpoint: Path, seen: Seen) -> list[tuple[float, float]]:
    """The curve of one run, read from its file if the file is of the same run and data."""
    facts = {**run.facts(), "images": [len(data.train), len(data.test)]}
    facts = json.loads(json.dumps(facts))  # tuples become lists, as in the file
    with suppress(OSError, ValueError):  # what can't be read is made again
        saved = read_result(path)
        if saved["run"] == facts and run.figure in saved and len(saved["accuracy"]) == run.epochs:
            return list(zip(saved["accuracy"], saved[run.figure]))
    curve: list[tuple[float, float]] = []

    def keep(points: Sequence[tuple[float, float]]) -> None:
        curve[:] = points
        seen(points)

    try:
        run.learn(data, keep, checkpoint)
    except CheckpointError:  # of another run, or damaged
        checkpoint.unlink()
        run.learn(data, keep, checkpoint)
    result = {"run": facts, "accuracy": [right for right, _ in curve], run.figure: [figure for _, figure in curve]}
    atomic.write_text(path, json.dumps(result, indent=1) + "\n")
    return curve


def read_result(path: Path) -> dict[str, Any]:
    """Read a result's file.

    Returns
    -------
    dict
        ``run``, what was learned as JSON knows it; ``accuracy``, and one of `FIGURES`, lists of numbers >= 0, one an
        epoch.

    Raises
    ------
    OSError
        If there is no file.
    ValueError
        If it is another file. One line that begins with the path.
    """
    data = read_json(path, "a result of learning")
    with naming(path):
        known = [figure for figure in FIGURES if isinstance(data, dict) and set(data) == {"run", "accuracy", figure}]
        if not known:
            rule = f"must be an object with run, accuracy and {' or '.join(FIGURES)}"
            raise ValueError(f"a result of learning {rule}, got {shown(data)}")
        lengths = set()
        for key, most in (("accuracy", 1.0), (known[0], LARGEST)):
            numbers = data[key]
            if not isinstance(numbers, list) or not all(isinstance(x, float) and 0 <= x <= most for x in numbers):
                raise ValueError(f"{key} must be a list of numbers, 0..{most:.12g}, got {shown(numbers)}")
            lengths.add(len(numbers))
        if len(lengths) > 1 or 0 in lengths:
            raise ValueError(f"accuracy and {known[0]} must have a number an epoch, got {sorted(lengths)}")
    return data


def plot_curves(path: Path, title: str, rows: Sequence[LearningRow]) -> None:
    """Write a picture of wrong test images by epoch, a line a setting, as PNG or SVG by the file's ending.

    Lines are means over the seeds that have come so far; the legend has the accuracy at the end. The file's folder is
    made if it isn't there.

    Parameters
    ----------
    path : Path
    title : str
    rows : sequence of LearningRow

    Raises
    ------
    ValueError, ImportError
        As `bitloom.overlay.picture.check_plot`.
    """
    with picture(path, (9, 5.5)) as axes:
        axes.set(title=title, xlabel="epochs", ylabel="wrong test images, %", yscale="log")
        for number, row in enumerate(rows):
            epochs = zip_longest(*row.curves)
            wrong = [100 * (1 - np.mean([right for right in epoch if right is not None])) for epoch in epochs]
            style = ("-", "--", ":")[number // 10 % 3]
            axes.plot(np.arange(1, len(wrong) + 1), wrong, style, label=f"{row.setting}: {row.mean:.2%}")
        axes.set_yticks([1, 2, 5, 10, 20, 50], labels=["1", "2", "5", "10", "20", "50"])
        axes.minorticks_off()
        axes.grid(True, alpha=0.3)
        axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1))  # beside the curves, not over them
