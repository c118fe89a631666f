"""Commands that are imported when they are called: no command waits for imports of another command.

The commands together take seconds to import (pynq, Veriloggen, ONNX); ``bitloom --version``, the list of commands and
its completion in a shell need none of it. The list has each command's whole first sentence, in terminals of any width.
"""

import ast
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from . import interrupted
from .progress import add_verbosity


class DeferredCommands(Mapping[str, click.Command]):
    """The commands of a group by name, each imported when it is first asked for.

    Parameters
    ----------
    package
        Name of the package that has the modules.
    modules
        Name of a command -> its module. A command ``import`` is its module's ``import_command``.
    """

    def __init__(self, package: str, modules: Mapping[str, str]) -> None:
        self.package = package
        self.modules = dict(modules)
        self._imported: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._imported:
            try:
                module = import_module(f"{self.package}.{self.modules[name]}")
            except KeyboardInterrupt:  # click would say "Aborted!"
                interrupted()
            command = getattr(module, _function(name))
            if not isinstance(command, click.Group):  # a group's own commands have both
                from .show import one_line_errors  # which takes a while to import

                add_verbosity(command)
                command.callback = one_line_errors(command.callback)
            self._imported[name] = command
        return self._imported[name]

    def __contains__(self, name: object) -> bool:
        return name in self.modules

    def __iter__(self) -> Iterator[str]:
        return iter(self.modules)

    def __len__(self) -> int:
        return len(self.modules)

    def sentence(self, name: str) -> str:
        """First sentence of the docstring of the command ``name``, in one line and without its full stop, read without
        an import."""
        spec = find_spec(f"{self.package}.{self.modules[name]}")
        assert spec is not None
        assert spec.origin is not None
        tree = ast.parse(Path(spec.origin).read_bytes())
        functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        paragraph = (ast.get_docstring(functions[_function(name)]) or "").partition("\n\n")[0]
        return " ".join(paragraph.split()).partition(". ")[0].removesuffix(".")


def _function(name: str) -> str:
    """The name that a command's function has in its module."""
    return f"{name.replace('-', '_')}_command"


class CommandList(click.Group):
    """A group of `DeferredCommands` that takes a command's first sentence for its line in the list, where click would
    cut it off."""

    def sentences(self, ctx: click.Context, begin: str = "") -> list[tuple[str, str]]:
        """Name and first sentence of each command whose name begins with ``begin``."""
        assert isinstance(self.commands, DeferredCommands)
        return [(name, self.commands.sentence(name)) for name in self.list_commands(ctx) if name.startswith(begin)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl(self.sentences(ctx))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands, and options of the group, that begin with ``incomplete``."""
        commands = [CompletionItem(name, help=sentence) for name, sentence in self.sentences(ctx, incomplete)]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]
