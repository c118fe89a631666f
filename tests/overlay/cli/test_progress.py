"""Progress of commands while they work: lines without a terminal, steps with -v, nothing with -q, a log in a build."""

import logging
import re
import threading
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from rich.console import Console

from bitloom.overlay.cli import progress
from bitloom.overlay.cli.group import bitloom
from bitloom.overlay.steps import step

MOST_SECONDS = 60
"""Until a line must have come; none is waited for in vain."""


class Listener(Console):
    """Standard error, no terminal; tells when a line has come."""

    def __init__(self) -> None:
        super().__init__(stderr=True, force_terminal=False)
        self.come = threading.Event()

    def print(self, *objects, **options) -> None:
        super().print(*objects, **options)
        self.come.set()


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Listener:
    listener = Listener()
    monkeypatch.setattr(progress, "console", listener)
    return listener


def work(wait: threading.Event | None) -> click.Command:
    """A command of three steps, which goes on when a line has come, and has come again."""

    @click.command()
    def command() -> None:
        with progress.bar("counting", "sheep") as update, step("falling asleep"):
            update(3, 1_000)
            if wait:
                assert wait.wait(MOST_SECONDS)
                wait.clear()
        with progress.working("waking"):
            assert wait is None or wait.wait(MOST_SECONDS)
        click.echo("done")

    progress.add_verbosity(command)
    return command


def test_of_what_only_time_ends_the_lines_tell_what_is_done(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    come = threading.Event()

    def hear(line: str) -> None:
        if re.fullmatch(r"fuzz: 1,200 cases, odd ones, \d+ s", line):
            come.set()

    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.01)
    monkeypatch.setattr(progress, "_say", hear)
    with progress.bar("fuzz", "cases") as update:
        update(1_200, None, what="odd ones")
        assert come.wait(MOST_SECONDS)


@pytest.mark.parametrize("option", ["-v", "--verbose"])
def test_steps_with_their_times(option: str, listener: Listener) -> None:
    result = CliRunner().invoke(work(None), [option])
    assert (result.exit_code, result.stdout) == (0, "done\n"), result.output
    lines = [re.fullmatch(r"bitloom: (.+): \d+\.\d s", line) for line in result.stderr.splitlines()]
    assert [one and one.group(1) for one in lines] == ["falling asleep", "counting", "waking"]
    assert not logging.getLogger("bitloom").handlers


@pytest.mark.parametrize("option", ["-q", "--quiet"])
def test_nothing_but_the_result(option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.0001)
    monkeypatch.setattr(progress, "console", Console(stderr=True, force_terminal=True))
    result = CliRunner().invoke(work(None), [option])
    assert (result.stdout, result.stderr) == ("done\n", "")


def test_both_exclude_each_other() -> None:
    result = CliRunner().invoke(bitloom, ["bench", "designs", "digits-cnn", "-q", "--verbose"])
    told = "Error: --verbose and --quiet exclude each other"
    assert (result.exit_code, result.output.splitlines()[-1]) == (2, told)


def test_a_build_keeps_its_log(tmp_path: Path) -> None:
    """Every build adds its part; what a person wrote there stays."""
    (tmp_path / "build").mkdir()
    log = tmp_path / "build" / "build.log"
    for _ in range(2):
        result = CliRunner().invoke(bitloom, ["build", "digits-cnn", "--out", str(log.parent), "--quiet"])
        assert (result.exit_code, result.stderr) == (0, ""), result.output
    text = log.read_text()
    heads = [line for line in text.splitlines() if not line.startswith(" ")]
    assert len(heads) == 2
    for head in heads:
        when, what = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "bitloom build digits-cnn --out "
        assert re.match(rf"{when}  bitloom \S+, design [0-9a-f]{{16}}: {what}", head)
    steps = re.findall(r"^    (.+): \d+\.\d s$", text, re.M)
    assert "compiling digits-cnn" in steps
    assert len(steps) == len(text.splitlines()) - 2
