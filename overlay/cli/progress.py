"""Progress of a command on the screen: bars and spinners in a terminal, a line now and then elsewhere, steps with -v.

All of it goes to standard error. ``-q`` leaves only what the command was asked for, warnings and errors.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from bitloom.golden.atomic import write_bytes
from bitloom.overlay.steps import logger, step

EVERY_SECONDS = 10.0
"""Seconds between two lines where there is no terminal."""
QUIET = -1
NORMAL = 0
VERBOSE = 1
console = Console(stderr=True)


def verbosity() -> int:
    """QUIET, NORMAL or VERBOSE: what the options of the command that runs say."""
    context = click.get_current_context(silent=True)
    return int(context.meta.get(__name__, NORMAL)) if context else NORMAL


def add_verbosity(command: click.Command) -> None:
    """Give a command the options ``-v`` and ``-q``."""
    for name, level, help in (
        ("--verbose/-v", VERBOSE, "Show every step with its time."),
        ("--quiet/-q", QUIET, "Show the result, warnings and errors only."),
    ):
        long, short = name.split("/")
        command.params.append(
            click.Option([short, long], is_flag=True, expose_value=False, help=help, callback=_set(level))
        )


def _set(level: int) -> Callable[[click.Context, click.Parameter, bool], None]:
    """A callback that notes ``level``, and with VERBOSE begins to show steps."""

    def note(context: click.Context, parameter: click.Parameter, given: bool) -> None:
        if not given:
            return
        if context.meta.get(__name__, level) != level:
            raise click.UsageError("--verbose and --quiet exclude each other", context)
        context.meta[__name__] = level
        if level == VERBOSE:
            context.call_on_close(_LineHandler(_say).close)

    return note


class _LineHandler(logging.Handler):
    """Gives each record's message to a function, from its making until ``close``."""

    def __init__(self, say: Callable[[str], Any]) -> None:
        super().__init__(logging.INFO)
        self.say = say
        self._before = logger.level
        logger.setLevel(min(self._before or logging.WARNING, logging.INFO))
        logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.say(record.getMessage())

    def close(self) -> None:
        """Take no more records."""
        logger.removeHandler(self)
        logger.setLevel(self._before)
        super().close()


def _say(line: str) -> None:
    """A line on standard error, above a bar if there is one."""
    console.print(Text(f"bitloom: {line}"), soft_wrap=True)


@contextmanager
def step_lines() -> Iterator[list[str]]:
    """The steps that end within the block, a line each."""
    lines: list[str] = []
    handler = _LineHandler(lines.append)
    try:
        yield lines
    finally:
        handler.close()


def append_log(path: Path, head: str, lines: list[str]) -> None:
    """Append what was done to a log file, after a line with the time; what stands in the file stays."""
    now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    text = "".join(f"{line}\n" for line in (f"{now}  {head}", *(f"    {line}" for line in lines)))
    before = path.read_bytes() if path.exists() else b""
    write_bytes(path, before + text.encode("utf-8", "surrogateescape"))  # paths may have any bytes


@contextmanager
def bar(title: str, unit: str = "frames") -> Iterator[Callable[..., None]]:
    """A progress bar on standard error, gone when it is done; gives ``update(done, total, what="")``.

    The total is None where only the time ends the work, ``what`` says what is under way. Without a terminal it is a
    line every EVERY_SECONDS, with ``-q`` nothing.
    """
    with step(title):
        if verbosity() == QUIET:
            yield lambda done, total, what="": None
        elif not console.is_terminal:
            with _spoken(title, unit) as update:
                yield update
        else:
            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=max(4, min(40, console.width - 70))),  # the figures beside it are never cut
                MofNCompleteColumn(),
                TextColumn(unit, markup=False),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
            )
            with Progress(*columns, console=console, transient=True) as progress:
                task = progress.add_task(title, total=None)
                yield lambda done, total, what="": progress.update(
                    task, completed=done, total=total, description=title + f", {what}" * bool(what)
                )


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner for work of unknown length; without a terminal a line every EVERY_SECONDS, with ``-q`` nothing."""
    with step(what):
        if verbosity() == QUIET:
            yield
        elif not console.is_terminal:
            with _spoken(what, ""):
                yield
        else:
            with console.status(Text(what)):
                yield


@contextmanager
def _spoken(title: str, unit: str) -> Iterator[Callable[..., None]]:
    """Says every EVERY_SECONDS how far the work is; gives ``update(done, total, what="")``."""
    begin = time.monotonic()
    ended = threading.Event()
    state = list[str]()

    def say() -> None:
        while not ended.wait(EVERY_SECONDS):
            far = f" {state[-1]}," if state else ""
            _say(f"{title}:{far} {time.monotonic() - begin:.0f} s")

    def update(done: int, total: int | None, what: str = "") -> None:
        state[:] = [f"{done:,}{'' if total is None else f' of {total:,}'} {unit}" + f", {what}" * bool(what)]

    thread = threading.Thread(target=say, daemon=True)
    thread.start()
    try:
        yield update
    finally:
        ended.set()
        thread.join()
