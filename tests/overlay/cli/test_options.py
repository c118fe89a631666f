"""Types of options, their limits and defaults."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from bitloom.overlay.cli.group import bitloom
from bitloom.overlay.cli.options import POSITIVE


@pytest.mark.parametrize("text", ["0.25", "1", "1e-9", "1000"])
def test_a_number_above_0(text: str) -> None:
    assert POSITIVE.convert(text, None, None) == float(text)


@pytest.mark.parametrize("text", ["0", "-1", "inf", "nan"])
def test_no_number_above_0(text: str) -> None:
    with pytest.raises(click.BadParameter, match=f"^must be a number above 0, got {text}$"):
        POSITIVE.convert(text, None, None)


OPTIONS = Path(__file__).parent / "options.txt"
"""Options with limits or with a default, and arguments that must be given or may be several, with their commands."""


def parameters(command: click.Command, name: str) -> Iterator[tuple[str, click.Parameter]]:
    """The parameters of a command and of those in it, with the command's name."""
    for inner, other in getattr(command, "commands", {}).items():
        yield from parameters(other, f"{name} {inner}".strip())
    yield from ((name, parameter) for parameter in command.params)


def form(parameter: click.Parameter) -> str:
    """An option's limits and default; how an argument must be given."""
    default = parameter.default
    given = [parameter.opts[-1]]
    if isinstance(parameter.type, click.IntRange | click.FloatRange):
        given.append(parameter.type._describe_range())
    if isinstance(default, int | float | str | tuple) and default is not False and default != "":
        given.append(f"default {default}")
    given += ["required"] * parameter.required + [f"{parameter.nargs} values"] * (parameter.nargs != 1)
    return " ".join([*given, *["multiple"] * parameter.multiple])


def test_limits_and_defaults() -> None:
    """Scripts of users rely on them; a change on purpose changes options.txt."""
    options_by_text = defaultdict[str, list[str]](list)
    for name, parameter in parameters(bitloom, ""):
        if " " in (told := form(parameter)):
            options_by_text[told].append(name)
    assert [
        f"{told}: {', '.join(sorted(names))}" for told, names in sorted(options_by_text.items())
    ] == OPTIONS.read_text().splitlines()
