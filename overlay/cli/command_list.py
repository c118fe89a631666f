"""Groups of commands whose help lists each command with its whole first sentence, in terminals of any width."""

import inspect

import click


class CommandList(click.Group):
    """A group that takes a command's first sentence for its line in the list, where click would cut it off."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command, as ``click.Group`` does."""
        if cmd.short_help is None and cmd.help:
            paragraph = inspect.cleandoc(cmd.help).partition("\n\n")[0]
            cmd.short_help = " ".join(paragraph.split()).partition(". ")[0].removesuffix(".")
        super().add_command(cmd, name)
