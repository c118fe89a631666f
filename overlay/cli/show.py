"""What every command shares: errors in one line, progress bars, tables for people and JSON for machines."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from bitloom.driver.errors import DeviceError
from bitloom.hls_gen.check import DesignError
from bitloom.overlay.virtual.bitstream import OverlayError
from bitloom.overlay.virtual.sim import BuildError, ProtocolError, SimulationTimeout

EXPECTED = (
    ValueError,
    OSError,
    ImportError,
    DeviceError,
    DesignError,
    OverlayError,
    BuildError,
    ProtocolError,
    SimulationTimeout,
)
console = Console(stderr=True)


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on standard output.")(command)


def one_line_errors(command: Callable[..., Any]) -> Callable[..., Any]:
    """Expected errors end the command with one line and status 1; an interrupt ends it with status 130."""

    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except EXPECTED as e:
            raise SystemExit(_line(e)) from None
        except KeyboardInterrupt:
            click.echo("bitloom: interrupted", err=True)
            sys.exit(130)

    return wrapped


def _line(error: BaseException) -> str:
    text = str(error) or type(error).__name__
    first, _, rest = text.partition("\n")
    return f"bitloom: {first}" + (f"\n{rest}" if isinstance(error, SimulationTimeout) and rest else "")


@contextmanager
def bar(title: str, unit: str = "frames") -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error, gone when it is done; gives ``update(done, total)``."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner for work of unknown length."""
    with console.status(what):
        yield


def table(title: str, rows: Mapping[str, str]) -> None:
    """Names and values, on standard output."""
    out = Table(title=title, show_header=False, title_justify="left")
    out.add_column(style="bold")
    out.add_column(justify="right")
    for name, value in rows.items():
        out.add_row(name, value)
    Console().print(out)


def grid(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows under headings, on standard output; the first column names them."""
    out = Table(title=title, title_justify="left")
    for k, heading in enumerate(header):
        out.add_column(heading, justify="right" if k else "left", style=None if k else "bold", no_wrap=not k)
    for row in rows:
        out.add_row(*row)
    Console().print(out)


def dump(data: Any) -> None:
    """JSON on standard output."""
    click.echo(json.dumps(data, indent=1))
