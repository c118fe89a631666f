"""The command evaluate: how often a network is right on labelled images, and how fast its hardware is."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click

from bitloom.golden import zoo as networks
from bitloom.golden.host.file import load as load_host
from bitloom.golden.host.file import name_of
from bitloom.golden.host.host import Host
from bitloom.golden.network import Model
from bitloom.golden.reading.file import reason
from bitloom.golden.transform import NONE, Transform
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.chosen_design import chosen_design
from bitloom.overlay.build.loading import loading, loading_rows
from bitloom.overlay.evaluation.data import NAMES, labelled_images
from bitloom.overlay.evaluation.hardware import FrameCycles, cycles_by_flow, cycles_by_simulation
from bitloom.overlay.evaluation.host_transform import HostTransform, fitting_transforms, transform_of
from bitloom.overlay.evaluation.input_use import InputUse
from bitloom.overlay.evaluation.labelled import LabelledImages
from bitloom.overlay.evaluation.plot import plot_confusion
from bitloom.overlay.evaluation.score import RULES, Score, as_counted, class_rule, classifier, evaluate, inputs
from bitloom.overlay.picture import check_plot
from bitloom.overlay.platform.boards import CLOCK_MHZ

from .option_groups import GroupedCommand, option_group
from .options import FILE, POSITIVE, WRITTEN_FILE, WRITTEN_FOLDER, words_or_paths
from .progress import bar, working
from .show import dump, fail_unless_exact, grid, json_option, table
from .simulation import require_pynq
from .subject import hosts_of, loaded, model_of, tell_kept

CONFUSED = 5
"""Commonest mistakes that are shown."""
MOST_CLASSES = 10
"""Classes up to which the confusion matrix is shown as a table."""
MOST_RECALLS = 20
"""Classes whose recall is shown; of more of them those with the lowest."""


@click.command("evaluate", cls=GroupedCommand)
@click.argument("net", metavar="NETWORK|FOLDER", shell_complete=words_or_paths(networks.names))
@click.argument("data", required=False, shell_complete=words_or_paths(lambda: NAMES))
@option_group(
    "Images",
    click.option(
        "--labels", type=FILE, help="Labels of a file of images, .npy or IDX.  [default: where they usually are]"
    ),
    click.option("--transform", help="How pixels become values of the input.  [default: the network's own; else none]"),
    click.option(
        "--host",
        "host_file",
        type=FILE,
        help="Host file of an imported network.  [default: beside the model, or in the build]",
    ),
    click.option("--resize", is_flag=True, help="Bring pictures of a folder to the input's size, bilinearly."),
)
@click.option(
    "--class-rule",
    "class_rule_name",
    type=click.Choice(list(RULES)),
    help="How outputs tell the class.  [default: highest-set where they are single bits; else largest]",
)
@click.option("--limit", type=click.IntRange(1), help="Images to take, the first ones.  [default: all]")
@option_group(
    "Hardware",
    click.option("--network", help="Which network of the build in FOLDER.  [default: the first one]"),
    click.option(
        "--hardware", type=click.IntRange(2), help="Images that also run on simulated hardware, the first ones."
    ),
    click.option("--clock-mhz", type=POSITIVE, default=CLOCK_MHZ, help="Clock for frames a second."),
    click.option(
        "--out", type=WRITTEN_FOLDER, help="Folder for the build of --hardware.  [default: build/evaluate/NETWORK]"
    ),
)
@click.option("--plot", "picture", type=WRITTEN_FILE, help="Write a picture of the confusion matrix, .png or .svg.")
@json_option
def evaluate_command(
    net: str,
    data: str | None,
    labels: Path | None,
    transform: str | None,
    host_file: Path | None,
    resize: bool,
    class_rule_name: str | None,
    limit: int | None,
    network: str | None,
    hardware: int | None,
    clock_mhz: float,
    out: Path | None,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Classify labelled images: accuracy, confusion matrix, and the cycles that hardware takes.

    Takes a NETWORK, a name of ours (digits-cnn) or a model file (.npz), or a build's FOLDER. DATA is an npz with x and
    y, a file of images (.npy, or IDX as MNIST has it), a folder of pictures by class, digits or mnist; without it, the
    test images that a network of ours was made for. All images are classified by golden; those of --hardware run on the
    simulated board too, and every bit is compared.

    A transform is none, or steps with commas between them: minus:128, shift:3, threshold:128, fixed:8. For what
    bitloom import made it says which real number of the training a pixel stands for: host, the pixel itself;
    host:1/255, the pixel divided by 255; host:2/255:-1, that from -1 to 1. The file's own scale and zero point follow.
    """
    if picture is not None:
        check_plot(picture)
    if hardware:
        require_pynq()
    subject = _subject(net, network, host_file, out, hardware)
    rule = class_rule(subject.model.network, class_rule_name, subject.host)
    pixels = transform_for(subject.model, subject.host, transform)
    counted = as_counted(subject.model.network, rule, subject.host)
    images = labelled_images(data, counted, labels=labels, resize=resize, real=isinstance(pixels, HostTransform))
    check_count(images, limit, hardware or 0, "--hardware")
    with bar(f"{subject.name}: classifying", "images") as update:
        classify = classifier(rule, subject.host)
        score = evaluate(subject.model, images, transform=pixels, classify=classify, limit=limit, progress=update)
        score = replace(score, classes=counted.classes or score.classes)
    _tell_doubts(images, pixels, score.use)
    cycles = _simulated(subject, images, pixels, hardware) if hardware else _modelled(subject)
    if isinstance(cycles, FrameCycles) and subject.build is not None:
        cycles = replace(cycles, loading=loading(subject.build.program_of(subject.model), subject.build.manifest))
    if picture is not None:
        plot_confusion(picture, f"{subject.name}: {score.accuracy:.2%} of {score.images:,} images", score)
    about = {
        "network": subject.name,
        "weights": subject.weights,
        "data": images.name,
        "transform": str(pixels),
        "class_rule": rule,
    }
    speed = cycles.figures(clock_mhz) if isinstance(cycles, FrameCycles) else {"unknown": cycles}
    if as_json:
        dump({**about, **_facts(score), "hardware": speed})
    else:
        _show(about, score, speed)
    if isinstance(cycles, FrameCycles):
        fail_unless_exact(subject.name, cycles.frames, cycles.bit_exact_frames)


@dataclass(frozen=True)
class _Evaluated:
    """The network that NETWORK|FOLDER names, with its weights and its build."""

    model: Model
    """The network that is evaluated."""
    weights: str
    """Where they come from."""
    host: Host | None
    """The host's part of an imported network; None for others."""
    build: builds.Build | None
    """The build in FOLDER; None where a network was named."""
    out: Path
    """Where a build goes that --hardware needs."""

    @property
    def name(self) -> str:
        """The network's name."""
        return self.model.network.name


def _subject(
    net: str, network: str | None, host_file: Path | None, out: Path | None, hardware: int | None
) -> _Evaluated:
    """The network that the command is about; ValueError if an option is given that would be ignored."""
    folder = Path(net).is_dir()
    if network is not None and not folder:
        raise ValueError(f"{net}: --network is for a build's folder, which has several, got {network}")
    if out is not None and (folder or not hardware):
        raise ValueError(f"{net}: --out is for the build that --hardware makes of a network, got {out}")
    build = loaded(Path(net)) if folder else None
    model = networks.find(net) if build is None else model_of(build, network)
    if host_file is None and build is not None and (build.folder / name_of(model.network.name)).exists():
        host_file = build.folder / name_of(model.network.name)
    hosts = hosts_of([net], [model]) if host_file is None and not folder else {}
    return _Evaluated(
        model,
        networks.source(net) if build is None else f"build {net}",
        hosts.get(model.network.name) if host_file is None else load_host(host_file, model),
        build,
        out or Path("build") / "evaluate" / model.network.name,
    )


def check_count(images: LabelledImages, limit: int | None, count: int, option: str) -> None:
    """Refuse an option that wants more images than are classified: all, or ``limit``."""
    most = limit or len(images.labels)
    if count > most:
        raise ValueError(f"{images.name}: {option} must be <= {most}, the images to classify, got {count}")


def transform_for(model: Model, host: Host | None, text: str | None) -> Transform | HostTransform:
    """How pixels become values of the input: as was said, else as a network of ours was trained, else not at all.

    An imported network was fed with numbers, and nobody but the user knows which number a pixel stood for.
    """
    if text is not None:
        return transform_of(text, host)
    name = model.network.name
    if host is not None:
        rule = f"--transform must say which real number a pixel stands for ({_proposal(host)})"
        raise ValueError(f"{name}: {rule}, got none")
    return networks.TRANSFORMS.get(name, Transform(NONE))


def _proposal(host: Host) -> str:
    """The transforms that a user may mean: those that fit the input's range where the host file tells it."""
    real = host.real_range()
    fits = fitting_transforms(host)
    if real is None:
        return "host: the pixel itself; host:1/255: pixels of 0..255 for 0..1"
    takes = f"the input takes {real}"
    return f"{takes}: {' or '.join(fits)} fits pixels of 0..255" if fits else f"{takes}: host:SCALE:OFFSET"


def _tell_doubts(images: LabelledImages, pixels: Transform | HostTransform, use: InputUse | None) -> None:
    """Say where the images use little of the input's range, or leave it: then the transform is probably wrong."""
    fits = fitting_transforms(pixels.host) if isinstance(pixels, HostTransform) else ()
    advice = f"; {' or '.join(fits)} fits pixels of 0..255" if fits and str(pixels) not in fits else ""
    for doubt in use.doubts if use is not None else ():
        click.echo(f"bitloom: warning: {images.name}: with transform {pixels} {doubt}{advice}", err=True)


def _modelled(subject: _Evaluated) -> FrameCycles | str:
    """Cycles of the design by the flow model, or one line that says why there are none."""
    with working("following frames through the flow model"):
        if subject.build is not None:
            choices = subject.build.choices_of(subject.name)
            return cycles_by_flow(subject.model, subject.build.design, choices)
        try:
            chosen = chosen_design(subject.model)
            return cycles_by_flow(subject.model, chosen.design(subject.name, [subject.model]), chosen.choices)
        except ValueError as e:  # golden computes networks that the compiler doesn't take
            return f"no design by default: {reason(e)}"


def _simulated(
    subject: _Evaluated, images: LabelledImages, transform: Transform | HostTransform, count: int
) -> FrameCycles:
    """The first images on the simulated board."""
    build = subject.build
    if build is None:
        with working("generating Verilog and compiling the network"):
            chosen = chosen_design(subject.model)
            design = chosen.sized(subject.name, [subject.model])
            hosts = {subject.name: subject.host} if subject.host is not None else {}
            origin = builds.Origin(hosts=hosts)
            build = builds.build(subject.out, design, [subject.model], choices=chosen.choices, origin=origin)
        tell_kept(build)
    values = inputs(images, subject.model.network, transform, 0, count)
    with bar("building and running the simulation") as update:
        return cycles_by_simulation(build, subject.model, values, update)


def _facts(score: Score) -> dict[str, Any]:
    """The facts of the score for --json."""
    confused = [
        {"class": score.classes[row], "taken_for": score.classes[column], "images": count}
        for row, column, count in score.confused(CONFUSED)
    ]
    return {
        "images": score.images,
        "right": score.right,
        "accuracy": score.accuracy,
        "interval": list(score.interval),
        "classes": list(score.classes),
        "recall": score.recall,
        "confused": confused,
        "confusion": score.confusion.tolist(),
        "input": asdict(score.use) if score.use is not None else None,
    }


def _show(about: Mapping[str, str], score: Score, speed: Mapping[str, Any]) -> None:
    """Print the score and the cycles as tables."""
    low, high = score.interval
    rows = {
        "weights": about["weights"],
        "transform of the pixels": about["transform"],
        "class": RULES[about["class_rule"]],
        "images": f"{score.images:,}",
        "right": f"{score.right:,}",
        "accuracy": f"{score.accuracy:.2%}",
        "95 % interval": f"{low:.2%} .. {high:.2%}",
    }
    table(f"{about['network']}: {about['data']}", {**rows, **_speed_rows(speed)})
    _show_recall(score)
    if confused := score.confused(CONFUSED):
        rows_confused = [[score.classes[row], score.classes[column], f"{count:,}"] for row, column, count in confused]
        grid("most confused", ["class", "taken for", "images"], rows_confused, labels=2)
    if len(score.classes) <= MOST_CLASSES:
        cells = [[name, *map("{:,}".format, row)] for name, row in zip(score.classes, score.confusion.tolist())]
        grid("confusion matrix: a row a class, a column what it is taken for", ["", *score.classes], cells)


def _speed_rows(speed: Mapping[str, Any]) -> dict[str, str]:
    """The cycles as rows of a table."""
    if "unknown" in speed:
        return {"cycles": f"not known: {speed['unknown']}"}
    by = speed["by"]
    clock = f"{speed['clock_mhz']:g} MHz"
    exact = {"bit-exact frames": f"{speed['bit_exact_frames']:,} of {speed['frames']:,}"} if "frames" in speed else {}
    return {
        **exact,
        f"cycles a frame, by {by}": f"{speed['cycles_per_frame']:,.1f}",
        **loading_rows(speed),
        f"latency, by {by}": f"{speed['latency_cycles']:,} cycles",
        f"frames a second at {clock}": f"{speed['frames_per_second']:,.0f}",
        f"latency at {clock}": f"{speed['latency_us']:,.1f} us",
    }


def _show_recall(score: Score) -> None:
    """Print the recall of each class, of many classes the lowest ones."""
    counts, hits = score.confusion.sum(axis=1).tolist(), score.confusion.diagonal().tolist()
    order = list(range(len(counts)))
    title = "recall"
    if len(order) > MOST_RECALLS:
        known = [number for number in order if counts[number]]
        order = sorted(known, key=lambda number: hits[number] / counts[number])[:MOST_RECALLS]
        title = f"recall, the {len(order)} lowest of {len(counts)} classes"
    rows = [
        [score.classes[n], f"{counts[n]:,}", f"{hits[n]:,}", f"{hits[n] / counts[n]:.1%}" if counts[n] else "-"]
        for n in order
    ]
    grid(title, ["class", "images", "right", "recall"], rows)
