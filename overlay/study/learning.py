"""Accuracy of perceptrons that learn with each setting of golden.discrete, over several seeds."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bitloom.golden import atomic
from bitloom.golden.discrete.data import LearnData
from bitloom.golden.discrete.learn import LearnPlan, learn
from bitloom.golden.discrete.setting import SETTINGS
from bitloom.golden.names import shown
from bitloom.golden.reading.file import naming
from bitloom.golden.reading.json_text import read_json
from bitloom.golden.training.checkpoint import LARGEST, CheckpointError
from bitloom.overlay.picture import picture


@dataclass(frozen=True)
class LearningRow:
    """What one setting reached."""

    setting: str
    """Name."""
    curves: list[list[float]]
    """Share of right test images after each epoch, a list a seed."""
    losses: list[list[float]]
    """Mean loss of each epoch."""

    @property
    def final(self) -> list[float]:
        """Accuracy at the end, one a seed."""
        return [curve[-1] for curve in self.curves]

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
            "losses": self.losses,
        }


def compare(
    names: Sequence[str],
    plans: Sequence[LearnPlan],
    data: LearnData,
    folder: Path,
    progress: Callable[[int, int], None] | None = None,
    *,
    keep: bool = False,
) -> list[LearningRow]:
    """Learn with each setting and plan; what is in the folder already is not done again.

    Parameters
    ----------
    names : sequence of str
        Settings.
    plans : sequence of LearnPlan
        One a seed.
    data : LearnData
    folder : Path
        Gets a file ``<data>-<setting>-<seed>.json`` for each run, and while it runs a checkpoint from which an
        interrupted run goes on. Files of other settings, plans or data are replaced.
    progress : callable, optional
        Called with epochs done and epochs in all.
    keep : bool
        Whether checkpoints stay when a run has ended.

    Returns
    -------
    list of LearningRow
        In the order of ``names``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    total = len(names) * sum(plan.epochs for plan in plans)
    done = 0
    rows = []
    for name in names:
        curves = []
        losses = []
        for plan in plans:
            before = done
            path = atomic.inside(folder, f"{data.name}-{name}-{plan.seed}.json")
            checkpoint = atomic.inside(folder, path.with_suffix(".npz").name)
            run = _run(
                name, plan, data, path, checkpoint, lambda e, _, base=before: progress and progress(base + e, total)
            )
            if not keep:
                checkpoint.unlink(missing_ok=True)
            done += plan.epochs
            if progress:
                progress(done, total)
            curves.append(run["accuracy"])
            losses.append(run["loss"])
        rows.append(LearningRow(name, curves, losses))
    return rows


def _run(
    name: str, plan: LearnPlan, data: LearnData, path: Path, checkpoint: Path, progress: Callable[[int, int], Any]
) -> dict[str, Any]:
    """One run, read from its file if the file is of the same setting, plan and data."""
    facts = {"setting": asdict(SETTINGS[name]), "plan": asdict(plan), "images": [len(data.train), len(data.test)]}
    facts = json.loads(json.dumps(facts))  # tuples become lists, as in the file
    with suppress(OSError, ValueError):  # what can't be read is made again
        if (saved := read_result(path))["run"] == facts and len(saved["loss"]) == plan.epochs:
            return saved
    learned = _learn_on(name, plan, data, checkpoint, progress)
    result = {
        "run": facts,
        "accuracy": [point.test_accuracy for point in learned.curve],
        "loss": [point.loss for point in learned.curve],
    }
    atomic.write_text(path, json.dumps(result, indent=1) + "\n")
    return result


def _learn_on(
    name: str, plan: LearnPlan, data: LearnData, checkpoint: Path, progress: Callable[[int, int], Any]
) -> Any:
    """Learn from the checkpoint on; one of another run, or a damaged one, is dropped."""
    try:
        return learn(SETTINGS[name], plan, data, progress=progress, checkpoint=checkpoint)
    except CheckpointError:
        checkpoint.unlink()
        return learn(SETTINGS[name], plan, data, progress=progress, checkpoint=checkpoint)


def read_result(path: Path) -> dict[str, Any]:
    """Read a result's file.

    Returns
    -------
    dict
        ``run``, what was learned as JSON knows it; ``accuracy`` and ``loss``, lists of numbers >= 0, one an epoch.

    Raises
    ------
    OSError
        If there is no file.
    ValueError
        If it is another file. One line that begins with the path.
    """
    data = read_json(path, "a result of learning")
    with naming(path):
        if not isinstance(data, dict) or set(data) != {"run", "accuracy", "loss"}:
            raise ValueError(f"a result of learning must be an object with run, accuracy and loss, got {shown(data)}")
        lengths = set()
        for key, most in (("accuracy", 1.0), ("loss", LARGEST)):
            numbers = data[key]
            if not isinstance(numbers, list) or not all(isinstance(x, float) and 0 <= x <= most for x in numbers):
                raise ValueError(f"{key} must be a list of numbers, 0..{most:.12g}, got {shown(numbers)}")
            lengths.add(len(numbers))
        if len(lengths) > 1 or 0 in lengths:
            raise ValueError(f"accuracy and loss must have a number an epoch, got {sorted(lengths)}")
    return data


def plot_curves(path: Path, title: str, rows: Sequence[LearningRow]) -> None:
    """Write a picture of wrong test images by epoch, a line a setting, as PNG or SVG by the file's ending.

    Lines are means over seeds; the legend has the accuracy at the end. The file's folder is made if it isn't there.

    Parameters
    ----------
    path : Path
    title : str
    rows : sequence of LearningRow

    Raises
    ------
    ValueError
        If the file's name has another ending.
    ImportError
        If matplotlib is missing.
    """
    with picture(path, (9, 5.5)) as axes:
        axes.set(title=title, xlabel="epochs", ylabel="wrong test images, %", yscale="log")
        for number, row in enumerate(rows):
            wrong = 100 * (1 - np.array(row.curves).mean(axis=0))
            style = ("-", "--", ":")[number // 10 % 3]
            axes.plot(np.arange(1, len(wrong) + 1), wrong, style, label=f"{row.setting}: {row.mean:.2%}")
        axes.set_yticks([1, 2, 5, 10, 20, 50], labels=["1", "2", "5", "10", "20", "50"])
        axes.minorticks_off()
        axes.grid(True, alpha=0.3)
        axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1))  # beside the curves, not over them
