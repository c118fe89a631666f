"""Docstrings have NumPy's form, and the stock parser of the documentation understands every one of them."""

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
    """Complaints of the parser of the docstrings of ``part``."""
    with caplog.at_level(logging.WARNING):
        for member in everything(part):
            if member.docstring:
                _ = member.docstring.parsed
    return [record.getMessage() for record in caplog.records]


@pytest.fixture(scope="module")
def package() -> griffe.Object:
    """Everything in bitloom, read as the documentation's parser reads it."""
    paths = [ROOT / "src"]
    parser = griffe.Parser.numpy
    return griffe.GriffeLoader(search_paths=paths, docstring_parser=parser, allow_inspection=False).load("bitloom")


def test_every_docstring_is_understood(package, caplog):
    assert warnings(package, caplog) == []
    assert sum(member.has_docstring for member in everything(package)) > 1500


def test_names_in_pages_exist(package):
    """Those whose docstrings a page shows, with their members, and those that it links to."""
    text = "\n".join(page.read_text() for page in pages())
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
