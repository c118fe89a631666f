"""docs/reference/requirements.md says what each number in a docstring means, and where to begin to read."""

import re
from collections.abc import Iterator

from .blocks import ROOT

PAGE = ROOT / "docs" / "reference" / "requirements.md"
NUMBERS = re.compile(r"\b(?:spec |\()([A-E]\d+(?:(?:,\s| to )[A-E]\d+)*)")
"""*spec B9*, *spec B9, B10*, *spec B1 to B7*, *(C21)*; a letter alone is a section."""
SOURCES = ("golden", "hls_gen", "driver", "overlay", "docs", "tests")


def rows() -> dict[str, tuple[str, str]]:
    """Requirement and file by number."""
    matches = re.findall(r"(?m)^\| ([A-E]\d+) \| (.+) \| `(\S+)` \|$", PAGE.read_text())
    return {number: (text, place) for number, text, place in matches}


def named() -> Iterator[tuple[str, str]]:
    """File and number of every requirement that a source names."""
    for room in SOURCES:
        for path in sorted((ROOT / room).rglob("*")):
            if path.suffix in (".py", ".md") and path.is_file():
                for numbers in NUMBERS.findall(path.read_text()):
                    yield from ((str(path.relative_to(ROOT)), number) for number in re.findall(r"[A-E]\d+", numbers))


def test_every_number_has_a_row():
    known, numbers = rows(), set(named())
    assert len({number for _, number in numbers}) > 35
    assert sorted(one for one in numbers if one[1] not in known) == []


def test_numbers_are_without_gaps():
    for letter, count in {"A": 12, "B": 20, "C": 26, "D": 10, "E": 15}.items():
        assert [one for one in rows() if one[0] == letter] == [f"{letter}{n}" for n in range(1, count + 1)]


def test_places_exist():
    assert {number: place for number, (_, place) in rows().items() if not (ROOT / place).exists()} == {}
