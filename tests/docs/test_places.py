"""Places that tables of pages name are there: of requirements, of words, of steps of ways through the code."""

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from .blocks import ROOT

DOCS = ROOT / "docs"
NUMBERS = re.compile(r"\b(?:spec |\()([A-E]\d+(?:(?:,\s| to )[A-E]\d+)*)")
"""*spec B9*, *spec B9, B10*, *spec B1 to B7*, *(C21)*; a letter alone is a section."""
SOURCES = ("golden", "hls_gen", "driver", "overlay", "docs", "tests")
STEP = re.compile(r"(?m)^\| \d+ \| .+? \| `(\S+)` \| `(\S+)` \|")


def requirements() -> dict[str, str]:
    """File of each requirement by its number."""
    text = (DOCS / "reference" / "requirements.md").read_text()
    return dict(re.findall(r"(?m)^\| ([A-E]\d+) \| .+ \| `(\S+)` \|$", text))


def words() -> dict[str, str]:
    """Place of each word of the glossary."""
    table = (DOCS / "reference" / "glossary.md").read_text().partition("|---|---|---|---|\n")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert [row[0] for row in rows] == sorted({row[0] for row in rows}, key=str.lower), "in order, each once"
    return {row[0]: row[3].strip("`") for row in rows}


@pytest.mark.parametrize("places", [requirements, words])
def test_places_exist(places):
    stated = places()
    assert len(stated) > 60
    assert {name: place for name, place in stated.items() if not (ROOT / place).exists()} == {}


def named() -> Iterator[tuple[str, str]]:
    """File and number of every requirement that a source names."""
    for room in SOURCES:
        for path in sorted((ROOT / room).rglob("*")):
            if path.suffix in (".py", ".md") and path.is_file():
                for numbers in NUMBERS.findall(path.read_text()):
                    yield from ((str(path.relative_to(ROOT)), number) for number in re.findall(r"[A-E]\d+", numbers))


def test_every_requirement_that_a_source_names_has_a_row():
    known = requirements()
    assert sorted(place for place in set(named()) if place[1] not in known) == []


@cache
def tree(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text())


def defined(file: str, name: str) -> bool:
    """Whether ``file`` defines ``name`` or ``Class.name`` at its top."""
    body = tree(file).body
    for part in name.split("."):
        definitions = [node for node in body if part in names(node)]
        if not definitions:
            return False
        body = getattr(definitions[0], "body", [])
    return True


def names(node: ast.stmt) -> list[str]:
    """Names that a statement defines."""
    targets = getattr(node, "targets", [getattr(node, "target", None)])
    return [getattr(node, "name", ""), *(target.id for target in targets if isinstance(target, ast.Name))]


def test_steps_of_ways_are_where_the_page_says():
    steps = STEP.findall((DOCS / "explanation" / "ways-through-the-code.md").read_text())
    assert len(steps) > 40
    wrong = [(f, n) for f, n in steps if not (defined(f, n) if f.endswith(".py") else n in (ROOT / f).read_text())]
    assert wrong == []
