"""Docstrings have NumPy's form, and the stock parser of the documentation understands every one of them."""

import logging
from collections.abc import Iterator

import griffe
import pytest

from .blocks import ROOT


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


def test_every_docstring_is_understood(caplog):
    loader = griffe.GriffeLoader(
        search_paths=[ROOT / "src"], docstring_parser=griffe.Parser.numpy, allow_inspection=False
    )
    package = loader.load("bitloom")
    caplog.clear()
    assert warnings(package, caplog) == []
    assert sum(member.has_docstring for member in everything(package)) > 1500


def test_a_parameter_that_is_none_is_told(caplog):
    text = 'def half(a: int) -> int:\n    """Half.\n\n    Parameters\n    ----------\n    b\n        Even.\n    """\n'
    with griffe.temporary_visited_module(text) as module:
        for member in everything(module):
            if member.docstring:
                member.docstring.parser = griffe.Parser.numpy
        assert any("Parameter 'b' does not appear in the function signature" in w for w in warnings(module, caplog))
