"""docs/explanation/ways-through-the-code.md: the file of each step has what the page says, and is reached as it says.

A step comes from an earlier one of its way: *called by k* (the file of step k imports this one), *reads k* (this file
imports the one of step k), *by the ... from k* (data are handed over: neither imports the other).
"""

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from .blocks import ROOT

PAGE = ROOT / "docs" / "explanation" / "ways-through-the-code.md"
ROOMS = ("golden", "hls_gen", "driver", "overlay")
FROM = re.compile(r"called by (\d+)|reads (\d+)|by the [a-z ]+ from (\d+)")


@dataclass(frozen=True)
class Row:
    """A step of a way: how it is reached, its file and what is named there."""

    reached: str
    file: str
    name: str


def ways() -> dict[str, list[Row]]:
    """Title -> steps, of the page."""
    found = {}
    for part in PAGE.read_text().split("\n## ")[1:]:
        title, _, text = part.partition("\n")
        cells = [line.strip("| ").split(" | ") for line in text.splitlines() if re.match(r"\| \d+ \|", line)]
        found[title] = [Row(row[1], row[2].strip("`"), row[3].strip("`")) for row in cells]
    return found


def steps() -> list[object]:
    return [pytest.param(way, n, id=f"{title}, {n + 1}") for title, way in ways().items() for n in range(len(way))]


@cache
def tree(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text())


def module(name: str) -> str | None:
    """The file of module ``name``, without ``bitloom.``; None if it is no file of ours."""
    path = ROOT.joinpath(*name.split("."))
    for found in (path.with_suffix(".py"), path / "__init__.py"):
        if found.exists() and name.partition(".")[0] in ROOMS:
            return found.relative_to(ROOT).as_posix()
    return None


@cache
def imported(file: str) -> frozenset[str]:
    """Files that ``file`` imports, anywhere in it; through a package, the file that the package has a name from."""
    package = ".".join(Path(file).parent.parts)
    found: set[str] = set()
    for node in ast.walk(tree(file)):
        if not isinstance(node, ast.ImportFrom):
            continue
        name = (node.module or "").removeprefix("bitloom.") if not node.level else f"{package}.{node.module or ''}"
        for alias in node.names:
            found |= {made for made in map(module, (name.strip("."), f"{name}.{alias.name}".strip("."))) if made}
            found |= exporting(module(name.strip(".")), alias.name)
    return frozenset(found - {file})


def exporting(file: str | None, name: str) -> set[str]:
    """The file that package ``file`` has ``name`` from."""
    if file is None or not file.endswith("__init__.py"):
        return set()
    package = ".".join(Path(file).parent.parts)
    nodes = [node for node in tree(file).body if isinstance(node, ast.ImportFrom) and node.level]
    given = [node for node in nodes if name in [alias.asname or alias.name for alias in node.names]]
    return {made for node in given if (made := module(f"{package}.{node.module}"))}


def reaches(start: str, end: str) -> bool:
    """Whether ``start`` imports ``end``, perhaps through others."""
    seen, ahead = set[str](), [start]
    while ahead:
        file = ahead.pop()
        if file not in seen:
            seen.add(file)
            ahead += imported(file)
    return end in seen


def defined(file: str, name: str) -> bool:
    """Whether ``file`` defines ``name`` or ``Class.name`` at its top."""
    body, parts = tree(file).body, name.split(".")
    for part in parts:
        found = [node for node in body if part in names(node)]
        if not found:
            return False
        body = getattr(found[0], "body", [])
    return True


def names(node: ast.stmt) -> list[str]:
    """What a statement defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def test_there_are_six():
    assert len(ways()) == 6


@pytest.mark.parametrize(("way", "n"), steps())
def test_a_step_is_where_the_page_says(way: list[Row], n: int):
    step = way[n]
    if step.file.endswith(".py"):
        assert defined(step.file, step.name), f"{step.file} must define {step.name}"
    else:
        assert step.name in (ROOT / step.file).read_text()


@pytest.mark.parametrize(("way", "n"), steps())
def test_a_step_is_reached_as_the_page_says(way: list[Row], n: int):
    step = way[n]
    if n == 0:
        assert step.reached == "begins"
        return
    match = FROM.fullmatch(step.reached)
    assert match, step.reached
    called, reads, given = (int(k) if k else 0 for k in match.groups())
    before = way[(called or reads or given) - 1].file
    assert (called or reads or given) <= n
    if called:
        assert step.file == before or step.file in imported(before), f"{before} must import {step.file}"
    elif reads:
        assert before in imported(step.file), f"{step.file} must import {before}"
    elif step.file.endswith(".py"):
        assert step.file not in imported(before)
        assert before not in imported(step.file)


@pytest.mark.parametrize("way", ways().values(), ids=ways())
def test_a_way_leads_in_one_direction(way: list[Row]):
    """Calls lead down, or readers lead up, never both in a way; and nothing that is called leads back to its caller."""
    assert len({step.reached.split()[0] for step in way} - {"begins", "by"}) == 1
    for step in way:
        match = FROM.fullmatch(step.reached)
        caller = way[int(match[1]) - 1].file if match and match[1] else step.file
        assert step.file == caller or not reaches(step.file, caller)


def test_the_hardware_is_what_is_generated():
    files = {step.file for way in ways().values() for step in way if step.file.startswith("hls_gen/rtl/")}
    assert len(files) > 8
    assert [file for file in files if not reaches("hls_gen/rtl/generate.py", file)] == []


def test_an_import_through_a_package_is_seen():
    assert "hls_gen/compiler/flow/simulate.py" in imported("hls_gen/compiler/shortages.py")
    assert "golden/network.py" in imported("golden/file.py")
