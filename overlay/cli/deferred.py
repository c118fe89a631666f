"""Commands that are imported when they are called: no command waits for imports of another command.

The commands together take seconds to import (pynq, Veriloggen, ONNX); ``bitloom --version``, the list of commands and
its completion in a shell need none of it.
"""

import ast
import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import click

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
            if not isinstance(command, click.Group):  # a group's own commands have the options
                add_verbosity(command)
            self._imported[name] = command
        return self._imported[name]

    def __contains__(self, name: object) -> bool:
        return name in self.modules

    def __iter__(self) -> Iterator[str]:
        return iter(self.modules)

    def __len__(self) -> int:
        return len(self.modules)

    def sentence(self, name: str) -> str:
        """First sentence of the docstring of the command ``name``, read without an import."""
        spec = find_spec(f"{self.package}.{self.modules[name]}")
        assert spec is not None
        assert spec.origin is not None
        tree = ast.parse(Path(spec.origin).read_bytes())
        functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        return first_sentence(ast.get_docstring(functions[_function(name)]) or "")


def first_sentence(text: str) -> str:
    """The first sentence of a docstring, in one line and without its full stop."""
    paragraph = inspect.cleandoc(text).partition("\n\n")[0]
    return " ".join(paragraph.split()).partition(". ")[0].removesuffix(".")


def _function(name: str) -> str:
    """The name that a command's function has in its module."""
    return f"{name.replace('-', '_')}_command"
