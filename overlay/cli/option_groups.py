"""Options in groups: the help of a command with many options shows each group under a heading of its own."""

from collections.abc import Callable
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class GroupedCommand(click.Command):
    """A command whose help shows the options of `option_group` under the headings of their groups.

    Options without a group come first, under click's own heading.
    """

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                groups.setdefault(getattr(parameter, "group", ""), []).append(record)
        for heading in sorted(groups, key=bool):  # stable: groups stay in the order in which they were added
            with formatter.section(heading or "Options"):
                formatter.write_dl(groups[heading])


def in_group(heading: str) -> list[str]:
    """Parameters of the command that runs whose options stand under ``heading``."""
    parameters = click.get_current_context().command.params
    return [str(parameter.name) for parameter in parameters if getattr(parameter, "group", "") == heading]


def together(*several: Decorator) -> Decorator:
    """One decorator that adds all of ``several``; help shows their options in this order."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(several):
            command = option(command)
        return command

    return add


def option_group(heading: str, *several: Decorator) -> Decorator:
    """As `together`, for options that a `GroupedCommand` shows under ``heading``."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        before = len(getattr(command, "__click_params__", ()))
        command = together(*several)(command)
        for parameter in command.__click_params__[before:]:  # type: ignore[attr-defined]
            parameter.group = heading
        return command

    return add
