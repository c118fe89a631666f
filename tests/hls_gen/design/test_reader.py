"""Every rule of a reader, just kept and broken."""

from collections.abc import Callable
from typing import Any

import pytest

from bitloom.hls_gen.design.reader import MOST_ENTRIES, Reader
from tests.errors import value_error

HEX = "0123456789abcdef" * 4
VLNVS = (["a:b:c:1.0"], ["a:b:c", "a:b:c:d:e", "a:b:c:\n"], "vlnv must be vendor:library:name:version")
DIGESTS = ([HEX], [HEX[1:], HEX + "0", "G" + HEX[1:], HEX.upper()], "k must be 64 lower-case hex digits")
REALS = ([1, 1.5], [0.99, float("inf"), float("nan"), True, "1"], "k must be a finite number >= 1")
CASES: dict[str, tuple[Callable[[Reader], Any], list[Any], list[Any], str]] = {
    "text": (lambda r: r.text("k"), ["x"], ["", None, 1, True], "k must be a non-empty string"),
    "one of": (lambda r: r.one_of("k", ["a", "b"]), ["a", "b"], ["c", None], "k must be a or b"),
    "vlnv": (lambda r: Reader({"vlnv": r.data["k"]}, "file").vlnv(), *VLNVS),
    "digest": (lambda r: r.digest("k"), *DIGESTS),
    "number": (lambda r: r.number("k"), [0, 1 << 80], [-1, 1.0, True, None], "k must be an integer >= 0"),
    "range": (lambda r: r.number("k", 2, 4), [2, 4], [1, 5], "k must be an integer 2..4"),
    "real": (lambda r: r.real("k", 1), *REALS),
    "no real": (lambda r: r.real("k"), [0, 0.0], [-1e-9], "k must be a finite number >= 0"),
    "entries": (lambda r: r.entries("k"), [[], [None]], [{}, "x"], "k must be a list"),
    "so many entries": (lambda r: r.entries("k", 2), [[1, 2]], [[1]], "k must have at least 2 entries"),
    "numbers": (lambda r: list(r.numbers("k", 1, 3)), [[1, 3], []], [[2, 4]], "k must be an integer 1..3"),
    "table": (lambda r: r.table("k"), [{}], [[], None], "k must be a JSON object"),
}
"""A reader, values that it takes and others that it does not, and the rule."""


@pytest.mark.parametrize("case", CASES)
def test_rules(case: str) -> None:
    read, taken, refused, rule = CASES[case]
    for value in taken:
        assert read(Reader({"k": value}, "file")) == value
    for value in refused:
        with pytest.raises(ValueError, match=rf"^file: {rule}, got "):
            read(Reader({"k": value}, "file"))


def test_as_many_entries_as_may_be() -> None:
    assert len(Reader({"k": [0] * MOST_ENTRIES}, "file").entries("k")) == 100_000
    with value_error("file: k must have at most 100,000 entries, got 100001"):
        Reader({"k": [0] * (MOST_ENTRIES + 1)}, "file").entries("k")


@pytest.mark.parametrize("version", [1, 3, 2.0, True, None])
def test_formats(version: object) -> None:
    Reader({"format": "bitloom", "version": 2}, "file").format("bitloom", 2)
    with value_error(f"file: version must be 2, got {version!r}"):
        Reader({"format": "bitloom", "version": version}, "file").format("bitloom", 2)
    with value_error("file: format must be bitloom, got 'x'"):
        Reader({"format": "x", "version": 2}, "file").format("bitloom", 2)
