"""Old names of commands and options do what the new ones do, and say so on standard error."""

import json

import click
import pytest
from click.testing import CliRunner, Result

from bitloom.overlay.cli.group import bitloom
from bitloom.overlay.cli.old_names import Command, Commands


def call(*arguments: str) -> Result:
    return CliRunner().invoke(bitloom, arguments)


def note(old: str, new: str) -> str:
    return f"bitloom: {old} is called {new} now; the old name goes with the next release\n"


def test_orders_is_map_orders():
    old, new = (call(name, "digits-cnn", "--json") for name in ("orders", "map-orders"))
    assert old.exit_code == new.exit_code == 0
    assert json.loads(old.stdout) == json.loads(new.stdout)
    assert (old.stderr, new.stderr) == (note("command orders", "map-orders"), "")


def test_work_is_dataflows():
    old = call("work", "--help")
    assert old.stdout == call("dataflows", "--help").stdout
    assert old.stderr == note("command work", "dataflows")
    nothing = call("work")
    assert nothing.exit_code == 2
    assert nothing.stderr == note("command work", "dataflows") + call("dataflows").stderr
    assert nothing.stderr.count("Usage: bitloom dataflows [OPTIONS] NETWORK") == 1


@pytest.mark.parametrize("command", ["area", "build", "explore"])
def test_order_is_map_order(command):
    """The value is judged as the new option's, so that a wrong one shows which option took it."""
    for words in (("--order", "diagonal"), ("--order=diagonal",)):
        result = call(command, "digits-cnn", *words)
        assert result.exit_code == 2
        assert result.stderr.startswith(note("--order", "--map-order"))
        assert "Invalid value for '--map-order': 'diagonal' is not one of" in result.stderr


def test_an_old_option_gives_its_value_to_the_new_one(tmp_path):
    result = call("build", "digits-cnn", "--order", "raster", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    made = json.loads((tmp_path / "build.json").read_text())
    assert made["map_order"] == "raster"
    assert made["command"] == ["bitloom", "build", "digits-cnn", "--out", str(tmp_path), "--map-order", "raster"]


@pytest.mark.parametrize("command", [[], ["build"], ["area"], ["explore"]], ids=" ".join)
def test_help_shows_new_names_alone(command):
    names = {line.split()[0] for line in call(*command, "--help").stdout.splitlines() if line.startswith("  ")}
    assert names & {"map-orders", "--map-order"}
    assert not names & {"orders", "work", "--order"}


def test_old_names_are_no_longer_in_use():
    """An old name that a new command or option took would never reach its reader."""
    assert not set(bitloom.old_commands) & set(bitloom.commands)
    for command in bitloom.commands.values():
        if isinstance(command, Command):
            names = {name for parameter in command.params for name in parameter.opts}
            assert not set(command.old_options) & names
            assert set(command.old_options.values()) <= names


@click.group(cls=Commands, old_commands={"paint": "colour"})
def small() -> None:
    """Group of one command."""


@small.command("colour", cls=Command, old_options={"--shade": "--tone"})
@click.option("--tone", default="none")
@click.argument("words", nargs=-1)
def colour(tone: str, words: tuple[str, ...]) -> None:
    """Say what was given."""
    click.echo(f"{tone} {words}")


@pytest.mark.parametrize(
    ("arguments", "said", "noted"),
    [
        (["colour", "--tone", "red", "a"], "red ('a',)", ""),
        (["paint", "--shade", "red"], "red ()", note("command paint", "colour") + note("--shade", "--tone")),
        (["colour", "--shade=red=er"], "red=er ()", note("--shade", "--tone")),
        (["colour", "--", "--shade"], "none ('--shade',)", ""),
    ],
)
def test_what_is_renamed(arguments, said, noted):
    result = CliRunner().invoke(small, arguments)
    assert (result.stdout, result.stderr) == (f"{said}\n", noted)


def test_an_unknown_command_stays_unknown():
    assert "No such command 'pain'" in CliRunner().invoke(small, ["pain"]).stderr
