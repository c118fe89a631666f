"""Groups of commands whose help lists each command with its whole first sentence, in terminals of any width."""

import click
from click.shell_completion import CompletionItem

from .deferred import DeferredCommands, first_sentence


class CommandList(click.Group):
    """A group that takes a command's first sentence for its line in the list, where click would cut it off."""

    def sentence(self, name: str) -> str:
        """First sentence on the command ``name``; a deferred command stays unimported."""
        if isinstance(self.commands, DeferredCommands):
            return self.commands.sentence(name)
        return first_sentence(self.commands[name].help or "")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.sentence(name)) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands, and options of the group, that begin with ``incomplete``."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        commands = [CompletionItem(name, help=self.sentence(name)) for name in names]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]
