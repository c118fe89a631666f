"""Docstrings have NumPy's form, and the stock parser of the documentation understands every one of them."""

import ast
import logging
import re
from collections.abc import Iterator

import griffe
import pytest

from .blocks import ROOT, pages


def everything(part: griffe.Object) -> Iterator[griffe.Object]:
    """``part`` and all that is defined in it."""
    yield part
    for member in part.members.values():
        if not member.is_alias:
            yield from everything(member)


def warnings(part: griffe.Object, caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the parser says of the docstrings of ``part``."""
    with caplog.at_level(logging.WARNING):
        for member in everything(part):
            if member.docstring:
                _ = member.docstring.parsed
    return [record.getMessage() for record in caplog.records]


@pytest.fixture(scope="module")
def package() -> griffe.Object:
    """Everything in bitloom, read as the documentation's parser reads it."""
    paths, parser = [ROOT / "src"], griffe.Parser.numpy
    return griffe.GriffeLoader(search_paths=paths, docstring_parser=parser, allow_inspection=False).load("bitloom")


def test_every_docstring_is_understood(package, caplog):
    assert warnings(package, caplog) == []
    assert sum(member.has_docstring for member in everything(package)) > 1500


def test_docstrings_are_markdown(package):
    """Two colons before an example are reStructuredText; Markdown shows them."""
    found = [m.path for m in everything(package) if m.docstring and re.search(r"::$", m.docstring.value, re.M)]
    assert found == []


RUN_ON = re.compile(r"[.`)] +[a-z_]+(?:, [a-z_]+)* : ")
"""A parameter that is explained in the middle of a line: "A FIFO. depth : words.  width : bits."."""
ENTRY = re.compile(r"^ *[a-z_]+(?:, [a-z_]+)* : ", re.M)
SECTION = re.compile(r"^ *[A-Z][A-Za-z ]+\n *-{3,}$", re.M)


def run_on(text: str) -> bool:
    """Whether a docstring explains a parameter outside NumPy's sections."""
    section = SECTION.search(text)
    return bool(RUN_ON.search(text) or ENTRY.search(text[: section.start()] if section else text))


def test_parameters_stand_in_sections(package):
    assert [m.path for m in everything(package) if m.docstring and run_on(m.docstring.value)] == []


SOURCES = [path for room in ("golden", "hls_gen", "driver", "overlay") for path in sorted((ROOT / room).rglob("*.py"))]


def fields_in_sections(text: str) -> list[str]:
    """Fields of classes that an ``Attributes`` section describes, though a text can stand below the field."""
    twice = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            _, _, section = (ast.get_docstring(node) or "").partition("\nAttributes\n")
            entries = re.findall(r"^(\w[\w, ]*?)(?: : .*)?$", section, re.M)
            described = {name for entry in entries for name in entry.split(", ")}
            declared = {
                field.target.id
                for field in node.body
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
            }
            twice += [f"{node.name}.{name}" for name in sorted(described & declared)]
    return twice


def test_a_field_is_described_below_it_alone():
    assert {path: twice for path in SOURCES if (twice := fields_in_sections(path.read_text()))} == {}


def test_a_field_in_a_section_is_found():
    text = 'class A:\n    """A.\n\n    Attributes\n    ----------\n    b, c : int\n        D.\n    """\n\n    c: int\n'
    assert fields_in_sections(text) == ["A.c"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A FIFO. depth : words.", True),
        ("A FIFO.\n\ndepth : words.  width : bits.", True),
        ("A FIFO.\n\ndepth, width : words and bits.", True),
        ("A FIFO.\n\nAttributes\n----------\ndepth : int\n    Words.  width : bits.", True),
        ("A FIFO.\n\nAttributes\n----------\ndepth : int\n    Words.", False),
        ("A FIFO: words in order. None: without limit.", False),
    ],
)
def test_what_runs_on_is_found(text, found):
    assert run_on(text) == found


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_names_in_pages_exist(package, page):
    """Those whose docstrings a page shows, with their members, and those that it links to."""
    text = page.read_text()
    names = re.findall(r"\]\[bitloom\.([\w.]+)\]", text)
    for name, members in re.findall(r"^::: bitloom\.([\w.]+)\n(?: +options: .*members: \[(.*)\])?", text, re.M):
        names += [name, *(f"{name}.{member.strip()}" for member in members.split(",") if member)]
    assert [name for name in names if not exists(package, name)] == []


def exists(package: griffe.Object, name: str) -> bool:
    try:
        return bool(package[name])
    except KeyError:
        return False


def test_a_parameter_that_is_none_is_told(caplog):
    text = 'def half(a: int) -> int:\n    """Half.\n\n    Parameters\n    ----------\n    b\n        Even.\n    """\n'
    with griffe.temporary_visited_module(text) as module:
        for member in everything(module):
            if member.docstring:
                member.docstring.parser = griffe.Parser.numpy
        assert any("Parameter 'b' does not appear in the function signature" in w for w in warnings(module, caplog))
