"""The command go: from a network to the folder for a board, a command of bitloom after the other.

    import -> explore -> build -> evaluate, or simulate -> report -> deploy

Each step is the command of that name, run with --json, whose answer is kept as steps/NAME.json. go.json has for each
step the words of its command, and digests: of the user's files, of what the steps before gave, of what Vivado gave
where the step reads it, and of what the step gave. Where all of these are the same again, the step is not run again.
"""

import hashlib
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import join, quote
from time import monotonic
from typing import Any

import click

from bitloom.golden import zoo
from bitloom.golden.atomic import write_bytes, write_text
from bitloom.golden.host.file import path_of
from bitloom.golden.names import check_name
from bitloom.golden.reading.json_text import parse_json, read_json
from bitloom.overlay.build.build import SOURCES
from bitloom.overlay.build.folder import PART, listed_files
from bitloom.overlay.build.loading import LOADING, loading_rows
from bitloom.overlay.deploy.deploy import OUTPUT
from bitloom.overlay.deploy.wheel import package_digest
from bitloom.overlay.evaluation.data import DEFAULTS, NAMES, labelled_images
from bitloom.overlay.evaluation.host_transform import HostTransform, check_transform
from bitloom.overlay.evaluation.score import class_rule, inputs
from bitloom.overlay.explore.advice import Advice, advice_rows
from bitloom.overlay.importers.imported import network_name
from bitloom.overlay.platform.board_file import find_board, is_board_file
from bitloom.overlay.platform.boards import CLOCK_MHZ, RESOURCES

from .evaluate import check_count, transform_for
from .option_groups import GroupedCommand, option_group
from .options import FILE, LATENCY, PERCENT, POSITIVE, WRITTEN_FOLDER, board_option, words_or_paths
from .progress import QUIET, VERBOSE, verbosity
from .show import dump, fail_unless_exact, json_option, table
from .simulation import require_pynq
from .subject import hosts_of

RECORD = "go.json"
"""File in the folder that says which steps were done, and of what."""
START = "import sys; sys.path = [p for p in sys.path if p]; from bitloom.overlay.cli import main; main()"
"""A Python program that is the command line, whatever lies in the working folder."""


@dataclass(frozen=True)
class CommandStep:
    """A command of bitloom."""

    words: tuple[str, ...]
    """Of the command line, without ``bitloom``; the first one is the command's name."""
    gives: tuple[Path, ...] = ()
    """Files that it writes, and folders with a listing of their files, beside its answer."""
    reads: tuple[Path, ...] = ()
    """Folders that the command reads and that neither the user nor a step gives; each may be missing."""

    @property
    def name(self) -> str:
        """The command's name."""
        return self.words[0]


@click.command("go", cls=GroupedCommand)
@click.argument("net", metavar="NETWORK|FILE", shell_complete=words_or_paths(zoo.names))
@click.argument("data", required=False, shell_complete=words_or_paths(lambda: NAMES))
@option_group(
    "Board",
    board_option("Board that the network is for.", required=True),
    click.option("--share", type=PERCENT, help="Percent of the device that the design may take.  [default: all]"),
    click.option("--rate", type=POSITIVE, help="Frames a second at least: the smallest design that does it."),
    click.option("--latency", type=LATENCY, help="Latency at most: cycles, or a time such as 500us or 2ms."),
    click.option("--clock-mhz", type=POSITIVE, default=CLOCK_MHZ, help="Clock of the device."),
)
@option_group(
    "Network",
    click.option("--input", "fed", help="What a FILE's network is fed with, as import takes it."),
    click.option(
        "--transform",
        help="How pixels of DATA become values of the input, as evaluate takes it; needed for DATA of a FILE.",
    ),
    click.option("--labels", type=FILE, help="Labels of DATA, as evaluate takes them."),
    click.option("--limit", type=click.IntRange(2), help="Images of DATA to take.  [default: all]"),
)
@click.option("--points", type=click.IntRange(1), help="Intervals of the search's sweep, as explore takes them.")
@click.option("--frames", type=click.IntRange(2), default=16, help="Images that run on simulated hardware.")
@click.option("--out", type=WRITTEN_FOLDER, help="Folder of all results.  [default: build/go/NETWORK]")
@json_option
def go_command(net: str, out: Path | None, as_json: bool, **options: Any) -> None:
    """Take a network all the way to a board's folder: import, explore, build, evaluate, report, deploy.

    NETWORK is a name of ours or a model file (.npz), FILE what import takes, DATA labelled images as evaluate takes
    them. Each step is the bitloom command of that name; its answer lies in the folder as steps/STEP.json. The same
    command again runs only what has changed since, and what was not reached.
    """
    file = None if net in zoo.names() else Path(net)
    name = network_name(file) if file else net
    _check(net, file, options)
    folder = out or Path("build") / "go" / name
    if folder.is_dir() and any(folder.iterdir()) and not (folder / RECORD).exists():
        raise ValueError(f"{folder}: must be empty or hold the {RECORD} of before, got a folder with other files")
    steps = _steps(net, name, file, _typed(folder), options)
    model = next(step.words[1] for step in steps if step.name == "explore")
    evaluated = any(step.name == "evaluate" for step in steps)
    if evaluated and steps[0].name != "import":
        _check_data(model, options)
    (folder / "steps").mkdir(parents=True, exist_ok=True)
    if not (folder / RECORD).exists():  # by which the next go knows the folder, wherever this one ends
        write_text(folder / RECORD, "{}\n")
    answers: dict[str, dict[str, Any]] = {}
    before = {str(path): _digest(path) for path in _users_files(file, options)}
    for number, step in enumerate(steps, 1):
        answers[step.name] = _answer(step, f"{number}/{len(steps)}", folder, before)
        if evaluated and step.name == "import":
            _check_data(model, options)
    card = _card(answers, folder)
    if as_json:
        dump(card)
    else:
        table(answers["report"]["network"], _rows(card))
    ran = answers["report"]["figures"]
    fail_unless_exact(answers["report"]["network"], ran["frames"], ran["bit_exact_frames"])


def _check(net: str, file: Path | None, options: Mapping[str, Any]) -> None:
    """Refuse before the search what a later step would refuse."""
    require_pynq()
    find_board(options["board_name"])
    imported = file is not None and file.suffix not in ("", ".npz")
    if file is not None and not imported:
        zoo.find(net)
    elif file is not None and not file.is_file():
        raise ValueError(f"{net}: must be a file, got {'a folder' if file.is_dir() else 'no such file'}")
    if file is not None:
        check_name("network", network_name(file))
    data = options["data"]
    if not imported and options["fed"] is not None:
        raise ValueError(f"{net}: --input is for a file that is imported, got {options['fed']}")
    for path in (None if data in (None, *NAMES) else Path(data), options["labels"]):
        if path is not None and not path.exists():
            raise ValueError(f"{path}: must exist, got no such file or folder")
    if options["transform"] is not None:
        check_transform(options["transform"])
    has_data = data is not None or net in DEFAULTS
    for key in ("labels", "limit"):
        if options[key] is not None and not has_data:
            raise ValueError(f"{net}: --{key} is for DATA, got {options[key]} and no DATA")


def _check_data(given: str, options: Mapping[str, Any]) -> None:
    """Refuse, behind an import and before the search, what evaluate would refuse: a network without classes, images
    that aren't for it, and the first of them with values that its input can't have."""
    model = zoo.find(given)
    network = model.network
    host = hosts_of([given], [model]).get(network.name)
    try:
        class_rule(network, host=host)
    except ValueError as e:
        raise ValueError(f"{e}; without DATA its outputs are compared with golden's on random images") from None
    pixels = transform_for(model, host, options["transform"])
    real = isinstance(pixels, HostTransform)
    images = labelled_images(options["data"], network, labels=options["labels"], real=real)
    check_count(images, options["limit"], options["frames"], "--frames")
    inputs(images, network, pixels, 0, options["frames"])


def _users_files(file: Path | None, options: Mapping[str, Any]) -> list[Path]:
    """The files and folders of the user's on which the results depend."""
    paths = [] if file is None else [file, path_of(file)]
    if is_board_file(options["board_name"]):
        paths.append(Path(options["board_name"]))
    if options["data"] not in (None, *NAMES):
        data = Path(options["data"])
        paths += [data, *([] if data.is_dir() else sorted(data.parent.glob("*label*")))]
    return paths if options["labels"] is None else [*paths, options["labels"]]


def _typed(path: Path) -> Path:
    """A path that no command takes for an option."""
    return Path.cwd() / path if str(path).startswith("-") else path


def _steps(net: str, name: str, file: Path | None, folder: Path, options: Mapping[str, Any]) -> list[CommandStep]:
    """The commands for a network, in their order."""
    build = folder / "build"
    board = ("--board", options["board_name"])
    clock = _option(options, "clock_mhz")
    steps = []
    model = net if file is None else str(_typed(file))
    if file is not None and file.suffix != ".npz":
        source, model = model, str(folder / f"{name}.npz")
        fed = () if options["fed"] is None else ("--input", options["fed"])
        steps.append(CommandStep(("import", source, "--out", model, *fed), (Path(model), path_of(Path(model)))))
    foldings = folder / "foldings.json"
    front = folder / "explore.svg"
    budget = [word for key in ("share", "rate", "latency", "points") for word in _option(options, key)]
    each = folder / "front"
    saved = ("--save", str(foldings), "--save-front", str(each), "--plot", str(front))
    resume = ("--resume", str(folder / "steps" / "search.json"))
    steps.append(CommandStep(("explore", model, *board, *clock, *budget, *saved, *resume), (foldings, each, front)))
    build_options = ("--foldings", str(foldings), *board, *clock, "--out", str(build))
    steps.append(CommandStep(("build", model, *build_options), (build,)))
    evaluated = options["data"] is not None or net in DEFAULTS
    simulation = CommandStep(("simulate", str(build), *_option(options, "frames")))
    steps.append(_evaluation(folder, options) if evaluated else simulation)
    page = folder / "report.html"
    accuracy = ("--evaluated", str(folder / "steps" / "evaluate.json")) if evaluated else ()
    explored = ("--explored", str(folder / "steps" / "explore.json"))
    steps.append(CommandStep(("report", str(build), "--out", str(page), *board, *clock, *explored, *accuracy), (page,)))
    to = folder / "board"
    deploy = ("deploy", str(build), "--to", str(to), *_option(options, "transform"))
    steps.append(CommandStep(deploy, (to,), reads=(build / SOURCES / OUTPUT,)))
    return steps


def _evaluation(folder: Path, options: Mapping[str, Any]) -> CommandStep:
    """Labelled images through golden, and some of them through hardware."""
    confusion = folder / "confusion.svg"
    data = [] if options["data"] is None else [str(_typed(Path(options["data"])))]
    chosen = [word for key in ("clock_mhz", "transform", "labels", "limit") for word in _option(options, key)]
    hardware = ("--hardware", str(options["frames"]), "--plot", str(confusion))
    return CommandStep(("evaluate", str(folder / "build"), *data, *chosen, *hardware), (confusion,))


def _option(options: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """The words of an option, which each command calls as go does; none where it wasn't given."""
    value = options[name]
    if value is None:
        return ()
    return f"--{name.replace('_', '-')}", f"{value:.15g}" if isinstance(value, float) else str(value)


def _answer(step: CommandStep, number: str, folder: Path, before: dict[str, str | None]) -> dict[str, Any]:
    """Run a step unless its results are there, and give its answer; what it gave joins ``before``."""
    place = folder / "steps" / f"{step.name}.json"

    def record() -> dict[str, Any]:
        gave = {str(path): _digest(path) for path in (place, *step.gives)}
        read = before | {str(path): _digest(path) for path in step.reads}
        return {"words": list(step.words), "bitloom": package_digest(), "before": read, "gave": gave}

    done = _records(folder)
    now = record()
    if done.get(step.name) == now and None not in now["gave"].values():
        _say(f"{number} {step.name}: as before")
    else:
        _say(f"{number} bitloom {join(step.words)}")
        begin = monotonic()
        _run(step, place)
        now = record()
        write_text(folder / RECORD, json.dumps({**done, step.name: now}, indent=1) + "\n")
        _say(f"    {monotonic() - begin:.1f} s")
    before.update(now["gave"])
    return dict(parse_json(place.read_bytes(), str(place)))


def _run(step: CommandStep, place: Path) -> None:
    """Run the command and keep what it prints; where it fails, go ends with its exit status."""
    level = {QUIET: ["-q"], VERBOSE: ["-v"]}.get(verbosity(), [])
    command = [sys.executable, "-c", START, *step.words, "--json", *level]
    with _process(command) as process:
        answer, _ = process.communicate()
    if answer:  # also of a search that found nothing within its budget: its front, and what came nearest
        write_bytes(place, answer)
    if process.returncode:
        kept = f"; its answer is {place}" if answer else ""
        click.echo(f"bitloom: go: {step.name} must end with status 0, got {process.returncode}{kept}", err=True)
        raise SystemExit(max(process.returncode, 1))


@contextmanager
def _process(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A command that runs, with a pipe for what it prints; SIGTERM kills the command, and ends go behind the block.

    The handler of SIGTERM raises no exception: one in the middle of Popen's constructor would leave a process behind.
    """
    processes: list[subprocess.Popen[bytes]] = []
    numbers: list[int] = []

    def end(number: int, frame: object) -> None:
        numbers.append(number)
        for each in processes:
            each.kill()

    is_main = threading.current_thread() is threading.main_thread()  # no other one may say what a signal does
    before = signal.signal(signal.SIGTERM, end) if is_main else None
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            processes.append(process)
            if numbers:  # SIGTERM came while the process was made
                process.kill()
            try:
                yield process
            except BaseException:
                process.kill()
                raise
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, before)
    if numbers:
        sys.exit(128 + numbers[0])


def _say(line: str) -> None:
    """A line about a step, on standard error."""
    if verbosity() != QUIET:
        click.echo(line, err=True)


def _records(folder: Path) -> dict[str, Any]:
    """Contents of go.json: the steps that were done; {} where the file is missing or damaged."""
    try:
        return dict(read_json(folder / RECORD, RECORD))
    except (OSError, ValueError, TypeError):
        return {}


def _digest(path: Path) -> str | None:
    """SHA-256 of a file, or of all files of a folder, of one with a listing of those that it lists; None where one is
    missing."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    if not path.is_dir():
        return None
    files = listed_files(path)
    if files is None:
        files = [item for item in sorted(path.rglob("*")) if item.is_file() and PART not in item.parts]
    digests = {str(item.relative_to(path)): _digest(item) for item in files}
    if None in digests.values():
        return None
    return hashlib.sha256(json.dumps(digests).encode()).hexdigest()


def _card(answers: Mapping[str, Mapping[str, Any]], folder: Path) -> dict[str, Any]:
    """How often the network is right, how fast and how large it is, what to open, and what comes next."""
    report = answers["report"]["figures"]
    build = answers["build"]
    deployed = answers["deploy"]
    ran = answers["simulate"] if "simulate" in answers else answers["evaluate"]["hardware"]
    card = {
        "frames": ran["frames"],
        "bit_exact_frames": ran["bit_exact_frames"],
        "clock_mhz": build["clock_mhz"],
        **{key: report[key] for key in ("frames_per_second", "cycles_per_frame", "latency_us", "latency_cycles")},
        **{key: report[key] for key in LOADING if key in report},
        "share_of": build["share_of"],
        "advice": answers["report"]["advice"],
        "page": str(folder / "report.html"),
        "front": str(folder / "explore.svg"),
        "board_folder": deployed["folder"],
        "sources": build["sources"],
        "simulation": deployed["simulation"],
    }
    if "import" in answers:
        imported = answers["import"]
        card["sums_one_level_off"] = sum(layer["wrong"][0] for layer in imported["layers"])
        card["verified_values"] = imported["verified_values"]
    if "evaluate" in answers:
        card |= {key: answers["evaluate"][key] for key in ("accuracy", "right", "images")}
    return card


def _rows(card: Mapping[str, Any]) -> dict[str, str]:
    """The card as rows of a table."""
    rows = {}
    if "verified_values" in card:
        off = card["sums_one_level_off"]
        exact = f"{off:,} sums of all channels are one level off" if off else "exact for every sum"
        rows["file to golden"] = f"{exact}, {card['verified_values']:,} values verified"
    if "accuracy" in card:
        rows["accuracy of golden"] = f"{card['accuracy']:.2%}, {card['right']:,} of {card['images']:,} images"
    clock = f"at {card['clock_mhz']:g} MHz"
    share = card["share_of"]
    script = quote(str(Path(card["board_folder"]) / "driver.py"))
    if card["simulation"]:
        after = {
            "next, with Vivado": f"make -C {quote(card['sources'])}, and this command again",
            "next, without": f"python3 {script} --check --virtual",
        }
    else:
        after = {"next": f"README.md in {card['board_folder']}"}
    return {
        **rows,
        "golden to hardware": f"{card['bit_exact_frames']:,} of {card['frames']:,} frames bit-exact",
        "frames a second": f"{card['frames_per_second']:,.0f} {clock}, {card['cycles_per_frame']:,.0f} cycles each",
        **loading_rows(card),
        "latency": f"{card['latency_us']:,.1f} us {clock}, {card['latency_cycles']:,} cycles",
        f"of {share['board']}, by formula": ", ".join(f"{share[key]:.0%} {RESOURCES[key]}" for key in RESOURCES),
        **advice_rows([Advice(**change) for change in card["advice"]]),
        "page": card["page"],
        "front of the search": card["front"],
        "folder for the board": card["board_folder"],
        **after,
    }
