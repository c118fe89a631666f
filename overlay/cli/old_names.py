"""Commands and options that have new names answer to the old ones for one release.

An old name does what the new one does. A line on standard error names the new one; help shows the new one alone.
"""

from collections.abc import Mapping
from typing import Any

import click

from .command_list import CommandList
from .option_groups import GroupedCommand


class Commands(CommandList):
    """A group of commands, some of which had another name.

    Parameters
    ----------
    *args, **others
        As for ``click.Group``.
    old_commands
        Old name of a command -> its name now.
    """

    def __init__(self, *args: Any, old_commands: Mapping[str, str], **others: Any) -> None:
        super().__init__(*args, **others)
        self.old_commands = old_commands

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The name that the command has now, the command, and its arguments."""
        if args and args[0] in self.old_commands:
            args = [_told(f"command {args[0]}", self.old_commands[args[0]]), *args[1:]]
        return super().resolve_command(ctx, args)


class Command(GroupedCommand):
    """A command, some of whose options had another name.

    Parameters
    ----------
    *args, **others
        As for `GroupedCommand`.
    old_options
        Old name of an option, with its dashes -> its name now.
    """

    def __init__(self, *args: Any, old_options: Mapping[str, str], **others: Any) -> None:
        super().__init__(*args, **others)
        self.old_options = old_options

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse ``args`` with the new names in place of the old ones; what follows ``--`` are no options."""
        end = args.index("--") if "--" in args else len(args)
        return super().parse_args(ctx, [*map(self._renamed, args[:end]), *args[end:]])

    def _renamed(self, word: str) -> str:
        """``--old`` and ``--old=value`` with the option's new name; every other word as it is."""
        name, equals, value = word.partition("=")
        return _told(name, self.old_options[name]) + equals + value if name in self.old_options else word


def _told(old: str, new: str) -> str:
    """The new name, after a line that names it."""
    click.echo(f"bitloom: {old} is called {new} now; the old name goes with the next release", err=True)
    return new
