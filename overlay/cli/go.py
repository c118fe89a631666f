"""The command go: from a network to the folder for a board, a command of bitloom after the other.

    import -> explore -> build -> evaluate, or simulate -> report -> deploy

Each step is the command of that name, run with --json, whose answer is kept in the folder. go.json has of each step the
words of its command, and the digests of the files that it read and wrote: where all of them are still the same, the
step is not run again.
"""

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import join, quote
from time import monotonic
from typing import Any

import click

from bitloom.golden import zoo
from bitloom.golden.atomic import write_bytes, write_text
from bitloom.golden.distribution import version
from bitloom.golden.names import check_name
from bitloom.golden.reading.json_text import parse_json, read_json
from bitloom.overlay.evaluation.data import DEFAULTS, NAMES
from bitloom.overlay.importers.imported import network_name
from bitloom.overlay.platform.boards import CLOCK_MHZ, RESOURCES

from .option_groups import GroupedCommand, option_group
from .options import FILE, FOLDER, LATENCY, PERCENT, POSITIVE, board_option
from .show import dump, json_option, one_line_errors, table
from .simulation import fail_unless_exact

RECORD = "go.json"
"""File in the folder that says which steps were done, and of what."""


@dataclass(frozen=True)
class Step:
    """A command of bitloom."""

    words: tuple[str, ...]
    """Of the command line, without ``bitloom``; the first one is the command's name."""
    reads: tuple[Path, ...]
    writes: tuple[Path, ...]
    """reads, writes: the files on which the result depends, and those that show that the result is there."""

    @property
    def name(self) -> str:
        """The command's name."""
        return self.words[0]

    def record(self, answer: Path) -> dict[str, Any]:
        """What tells whether the step was done: words, version, and the digest of each file."""
        files = (*self.reads, *self.writes, answer)
        return {"words": list(self.words), "version": version(), "files": {str(path): _digest(path) for path in files}}


@click.command("go", cls=GroupedCommand)
@click.argument("net", metavar="NETWORK|FILE")
@click.argument("data", required=False)
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
    click.option("--transform", help="How pixels of DATA become values of the input, as evaluate takes it."),
    click.option("--labels", type=FILE, help="Labels of DATA, as evaluate takes them."),
    click.option("--limit", type=click.IntRange(2), help="Images of DATA to take.  [default: all]"),
)
@click.option("--points", type=click.IntRange(1), help="Intervals of the search's sweep, as explore takes them.")
@click.option("--frames", type=click.IntRange(2), default=16, help="Images that run on simulated hardware.")
@click.option("--out", type=FOLDER, help="Folder of all results.  [default: build/NETWORK]")
@json_option
@one_line_errors
def go_command(net: str, out: Path | None, as_json: bool, **options: Any) -> None:
    """Take a network all the way to a board's folder: import, explore, build, evaluate, report, deploy.

    NETWORK is a name of ours or a model file (.npz), FILE what import takes, DATA labelled images as evaluate takes
    them. Each step is the bitloom command of that name; its answer lies in the folder as STEP.json. The same command
    again goes on where the first one ended, and runs only what has changed since.
    """
    name = net if net in zoo.names() else network_name(Path(net))
    check_name("network", name)
    folder = out or Path("build") / name
    steps = _steps(net, name, folder, options)
    folder.mkdir(parents=True, exist_ok=True)
    answers = {}
    for number, step in enumerate(steps, 1):
        answers[step.name] = _done(step, f"{number}/{len(steps)}", folder)
    card = _card(answers, folder)
    if as_json:
        dump(card)
    else:
        table(name, card)
    _fail_unless_exact(answers)


def _steps(net: str, name: str, folder: Path, options: Mapping[str, Any]) -> list[Step]:
    """The commands for a network, in their order."""
    source = Path(net)
    imported = net not in zoo.names() and source.suffix != ".npz"
    model = folder / f"{name}.npz" if imported else source
    given = () if net in zoo.names() else (model,)
    host = folder / f"{name}.host.json"
    foldings, build, page, board = folder / "foldings.json", folder / "build", folder / "report.html", folder / "board"
    on = ("--board", options["board_name"])
    clock = ("--clock-mhz", f"{options['clock_mhz']:g}")
    steps = []
    if imported:
        words = ("import", net, "--out", str(model), *_options(options, "--input", "fed"))
        steps.append(Step(words, (source,), (model, host)))
    elif options["fed"] is not None:
        raise ValueError(f"{net}: --input is for a file that is imported, got {options['fed']}")
    budget = [word for key in ("share", "rate", "latency", "points") for word in _options(options, f"--{key}", key)]
    picture = ("--plot", str(folder / "explore.svg"))
    words = ("explore", str(model), *on, *clock, *budget, "--save", str(foldings), *picture)
    steps.append(Step(words, given, (foldings,)))
    words = ("build", str(model), "--foldings", str(foldings), *on, *clock, "--out", str(build))
    built = build / "build.json"
    steps.append(Step(words, (*given, foldings), (built,)))
    data = options["data"]
    evaluated = ()
    if data is not None or name in DEFAULTS:
        words = ("evaluate", str(build), *([data] if data else []), *clock, "--hardware", str(options["frames"]))
        more = [word for key in ("transform", "labels", "limit") for word in _options(options, f"--{key}", key)]
        confusion = folder / "confusion.svg"
        reads = (built, *([Path(data)] if data and data not in NAMES else []))
        steps.append(Step((*words, *more, "--plot", str(confusion)), reads, (confusion,)))
        evaluated = ("--evaluated", str(folder / "evaluate.json"))
    else:
        for key in ("labels", "limit"):
            if options[key] is not None:
                raise ValueError(f"{net}: --{key} is for DATA, got {options[key]} and no DATA")
        steps.append(Step(("simulate", str(build), "--frames", str(options["frames"])), (built,), ()))
    words = ("report", str(build), "--out", str(page), *clock, *evaluated)
    steps.append(Step(words, (built,), (page,)))
    transform = _options(options, "--transform", "transform")
    words = ("deploy", str(build), "--to", str(board), *transform)
    bitstreams = tuple(sorted((build / "vivado" / "output").glob("*.bit")))
    steps.append(Step(words, (built, *bitstreams), (board / "deploy.json",)))
    return steps


def _options(options: Mapping[str, Any], word: str, key: str) -> tuple[str, ...]:
    """An option's words, none where it wasn't given."""
    value = options[key]
    if value is None:
        return ()
    return word, f"{value:g}" if isinstance(value, float) else str(value)


def _done(step: Step, place: str, folder: Path) -> dict[str, Any]:
    """Run a step unless its result is there, say so in a line, and give its answer."""
    answer = folder / f"{step.name}.json"
    records = _records(folder)
    if records.get(step.name) == step.record(answer):
        click.echo(f"{place} {step.name}: as before", err=True)
        return dict(parse_json(answer.read_bytes(), str(answer)))
    click.echo(f"{place} bitloom {join(step.words)}", err=True)
    begin = monotonic()
    done = subprocess.run([sys.executable, "-m", "bitloom", *step.words, "--json"], stdout=subprocess.PIPE, check=False)
    if done.returncode:
        again = "the same command again goes on from here"
        click.echo(f"bitloom: go: {step.name} must end with status 0, got {done.returncode}; {again}", err=True)
        raise SystemExit(done.returncode if done.returncode > 0 else 1)
    write_bytes(answer, done.stdout)
    write_text(folder / RECORD, json.dumps({**records, step.name: step.record(answer)}, indent=1) + "\n")
    click.echo(f"    {_line(step.name, json.loads(done.stdout))} [{monotonic() - begin:.1f} s]", err=True)
    return dict(json.loads(done.stdout))


def _records(folder: Path) -> dict[str, Any]:
    """What go.json says of the steps that were done; nothing where it is missing or damaged."""
    try:
        return dict(read_json(folder / RECORD, RECORD))
    except (OSError, ValueError, TypeError):
        return {}


def _digest(path: Path) -> str | None:
    """SHA-256 of a file, or of the names, sizes and times of a folder's files; None where there is neither."""
    if path.is_dir():
        files = sorted(item for item in path.rglob("*") if item.is_file())
        text = "\n".join(f"{item} {item.stat().st_size} {item.stat().st_mtime_ns}" for item in files)
        return hashlib.sha256(text.encode()).hexdigest()
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else None


def _line(name: str, answer: Mapping[str, Any]) -> str:
    """The result of a step in a few words."""
    if name == "import":
        engines = " and ".join(answer["engines"])
        return f"{answer['input']}, engine {engines}, {answer['verified_values']:,} values verified"
    if name == "explore":
        cycles = answer["best"]["cycles_per_frame"]
        return f"{answer['tried']:,} designs tried; the chosen one takes {cycles:,.0f} cycles a frame"
    if name == "build":
        return f"{len(answer['npu'])} NPUs, {answer['lanes']:,} lanes"
    if name == "evaluate":
        return f"{answer['right']:,} of {answer['images']:,} images right"
    if name == "simulate":
        return f"{answer['bit_exact_frames']:,} of {answer['frames']:,} frames bit-exact"
    return str(answer["folder"]) if name == "deploy" else "the page is written"


def _card(answers: Mapping[str, Mapping[str, Any]], folder: Path) -> dict[str, str]:
    """The end's table: how often the network is right, how fast and how large it is, what to open, what comes next."""
    figures = answers["report"]["figures"]
    build = answers["build"]
    share = build["share_of"]
    rows = {}
    if "import" in answers:
        imported = answers["import"]
        off = sum(layer["wrong"][0] for layer in imported["layers"])
        exact = f"{off:,} sums of all channels are one level off" if off else "exact for every sum"
        rows["file to golden"] = f"{exact}, {imported['verified_values']:,} values verified"
    if "evaluate" in answers:
        score = answers["evaluate"]
        rows["accuracy of golden"] = f"{score['accuracy']:.2%}, {score['right']:,} of {score['images']:,} images"
    ran = answers.get("evaluate", {}).get("hardware") or answers["simulate"]
    rows["golden to hardware"] = f"{ran['bit_exact_frames']:,} of {ran['frames']:,} frames bit-exact"
    clock = f"at {build['clock_mhz']:g} MHz"
    rows["frames a second"] = (
        f"{figures['frames_per_second']:,.0f} {clock}, {figures['cycles_per_frame']:,.0f} cycles each"
    )
    rows["latency"] = f"{figures['latency_us']:,.1f} us {clock}, {figures['latency_cycles']:,} cycles"
    rows[f"of {share['board']}, by formula"] = ", ".join(f"{share[key]:.0%} {RESOURCES[key]}" for key in RESOURCES)
    for change in answers["report"]["advice"][:1]:
        which = f"NPU {change['npu']}: " if len(build["npu"]) > 1 else ""
        rows["one step faster"] = f"{which}{change['option']}: {change['gain']:.2f} times, {change['lut']:+,} LUT"
    rows["page"] = str(folder / "report.html")
    rows["front of the search"] = str(folder / "explore.svg")
    deployed = answers["deploy"]
    rows["folder for the board"] = str(deployed["folder"])
    script = quote(str(Path(deployed["folder"]) / "driver.py"))
    if deployed["simulation"]:
        rows["next, with Vivado"] = f"make -C {quote(build['sources'])}, and this command again"
        rows["next, without"] = f"python3 {script} --check --virtual"
    else:
        rows["next"] = f"README.md in {deployed['folder']}"
    return rows


def _fail_unless_exact(answers: Mapping[str, Mapping[str, Any]]) -> None:
    """Exit with status 1 if hardware gave a bit that golden doesn't."""
    figures = answers["report"]["figures"]
    fail_unless_exact(answers["report"]["network"], figures["frames"], figures["bit_exact_frames"])
