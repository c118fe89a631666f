"""Functions, files and signatures stay small; what is too large today is listed and the list may only shrink.

Lines of a function are those from its ``def`` to its end, docstring and comments included. Names of files that are
tables of data are in DATA. Options of a command are its interface, so click's commands may have any number of
parameters.
"""

import ast
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

from tests.paths import ROOT

ROOMS = ("golden", "hls_gen", "driver", "overlay")
FILE_LINES, FUNCTION_LINES, PARAMETERS = 300, 60, 6
DATA: frozenset[str] = frozenset()
"""Files that are tables of data, of any length."""

LONG_FILES: dict[str, int] = {
    "hls_gen/design/memories.py": 306,
    "overlay/explore/layer_demand.py": 328,
    "overlay/explore/one_npu.py": 373,
}
LONG_FUNCTIONS: dict[str, int] = {"overlay/cli/explore.py: explore_command": 63}
MANY_PARAMETERS: dict[str, int] = {}
"""Exceptions and their size: each may shrink, none may grow, and what keeps to the rule is taken off the list."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def files() -> list[Path]:
    return [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


@cache
def functions() -> dict[str, Function]:
    """``file: outer.inner`` -> each function and method."""

    def inside(node: ast.AST, name: str) -> Iterator[tuple[str, Function]]:
        for child in ast.iter_child_nodes(node):
            named = isinstance(child, Function | ast.ClassDef)
            below = f"{name}.{child.name}".removeprefix(".") if named else name
            if isinstance(child, Function):
                yield below, child
            yield from inside(child, below)

    found: dict[str, Function] = {}
    for path in files():
        for name, node in inside(ast.parse(path.read_text(encoding="utf-8")), ""):
            found[f"{path.relative_to(ROOT).as_posix()}: {name}"] = node
    return found


def is_command(node: Function) -> bool:
    """Whether click makes a command of it."""
    names = {ast.unparse(d.func if isinstance(d, ast.Call) else d).rpartition(".")[2] for d in node.decorator_list}
    return bool(names & {"command", "group"})


def parameters(node: Function) -> int:
    """Parameters, ``self`` and ``cls`` apart."""
    spec = node.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg) if a]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def file_lines() -> dict[str, int]:
    sizes = {p.relative_to(ROOT).as_posix(): len(p.read_text(encoding="utf-8").splitlines()) for p in files()}
    return {name: size for name, size in sizes.items() if name not in DATA}


def function_lines() -> dict[str, int]:
    return {name: (node.end_lineno or node.lineno) - node.lineno + 1 for name, node in functions().items()}


def function_parameters() -> dict[str, int]:
    return {name: parameters(node) for name, node in functions().items() if not is_command(node)}


RULES = {
    "lines of a file": (file_lines, FILE_LINES, LONG_FILES),
    "lines of a function": (function_lines, FUNCTION_LINES, LONG_FUNCTIONS),
    "parameters of a function": (function_parameters, PARAMETERS, MANY_PARAMETERS),
}


@pytest.mark.parametrize("rule", RULES)
def test_nothing_new_is_too_large(rule: str) -> None:
    measure, most, exceptions = RULES[rule]
    large = [f"{name}: {size}" for name, size in measure().items() if size > max(most, exceptions.get(name, 0))]
    assert not large, f"{rule}: at most {most}, got\n" + "\n".join(large)


@pytest.mark.parametrize("rule", RULES)
def test_no_exception_is_left_over(rule: str) -> None:
    measure, most, exceptions = RULES[rule]
    sizes = measure()
    over = [name for name in exceptions if sizes.get(name, 0) <= most]
    assert not over, f"{rule}: these keep to the rule or are gone, take them off the list:\n" + "\n".join(over)


def test_what_is_measured() -> None:
    tree = ast.parse("class A:\n def f(self, a, *b, c=1, **d):\n  def g(): pass\n\n@click.command()\ndef h(): pass\n")
    (f,), h = tree.body[0].body, tree.body[1]
    assert (parameters(f), parameters(h), is_command(f), is_command(h)) == (4, 0, False, True)
    assert "overlay/cli/show.py: grid" in functions()
    assert len(files()) > 150


def test_a_class_name_is_used_once() -> None:
    """In all rooms, so that a reader who meets a name knows which class is meant."""
    places: dict[str, list[str]] = {}
    for path in files():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(path.relative_to(ROOT).as_posix())
    assert len(places) > 150
    several = [f"{name}: {', '.join(where)}" for name, where in places.items() if len(where) > 1]
    assert not several, "a class name is used once, got\n" + "\n".join(several)


def test_every_test_file_is_collected(pytestconfig: pytest.Config) -> None:
    """No folder of tests has a name that pytest passes over."""
    passed_over = pytestconfig.getini("norecursedirs")
    folders = {part for path in (ROOT / "tests").rglob("test_*.py") for part in path.relative_to(ROOT).parts[:-1]}
    assert [name for name in sorted(folders) if any(fnmatch(name, pattern) for pattern in passed_over)] == []
