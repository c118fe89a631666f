"""Calls of our functions in notebooks and in the pages' Python blocks fit their signatures.

Notebooks and long pages run in the slow tier alone; here nothing runs, so each is looked at in the default tier.
"""

import ast
import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import nbformat
import pytest

from tests.paths import ROOT

from .blocks import blocks, pages


def sources() -> Iterator[object]:
    """A parameter for each notebook and page: its Python."""
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = nbformat.read(notebook, as_version=4).cells
        yield pytest.param("\n".join(cell.source for cell in cells if cell.cell_type == "code"), id=notebook.name)
    for page in pages():
        code = "\n".join(block.text for block in blocks(page) if block.language == "python")
        if "bitloom" in code:
            yield pytest.param(code, id=page.relative_to(ROOT).as_posix())


def imported(tree: ast.Module) -> dict[str, Any]:
    """The object of each name that is imported from us."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "bitloom":
            for alias in node.names:
                module = importlib.import_module(str(node.module))
                if not hasattr(module, alias.name):
                    importlib.import_module(f"{node.module}.{alias.name}")
                names[alias.asname or alias.name] = getattr(module, alias.name)
    return names


def misfits(code: str) -> list[str]:
    """The calls that do not fit."""
    tree = ast.parse(code)
    names = imported(tree)
    bad = []
    for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call)]:
        path = ast.unparse(call.func).split(".")
        starred = any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)
        if path[0] not in names or starred or not all(part.isidentifier() for part in path):
            continue
        function = names[path[0]]
        for part in path[1:]:
            function = getattr(function, part)
        try:
            inspect.signature(function).bind(*call.args, **{str(k.arg): k.value for k in call.keywords})
        except TypeError as error:
            bad.append(f"{ast.unparse(call)}: {error}")
    return bad


@pytest.mark.parametrize("code", list(sources()))
def test_fit(code: str) -> None:
    assert misfits(code) == []


@pytest.mark.parametrize(
    "call",
    [
        "from bitloom.golden import zoo\nzoo.load()",
        "from bitloom.golden.zoo import load\nload('digits-cnn', 1, 2)",
        "from bitloom.golden.zoo import load as get\nget(nobody=1)",
    ],
)
def test_a_call_that_does_not_fit_is_found(call: str) -> None:
    assert len(misfits(call)) == 1
