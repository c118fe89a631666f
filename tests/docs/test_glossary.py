"""docs/reference/glossary.md is the authority for words: in order, places exist, what it abolished stays away."""

import re
from pathlib import Path

import pytest

from .blocks import ROOT

PAGE = ROOT / "docs" / "reference" / "glossary.md"
ABOLISHED = (
    r"orders? of work",
    r"orders? of (the |a network's |its )?maps?\b(?!')",
    r"\border `?(input|output)`",
    r"\bkinds? of (an |the )?NPUs?\b",
    r"\bNPUs? of (different|both|one|the same|another) kinds?\b",
    r"\bNPU's kind\b",
    r"`fit`|'fit'|\"fit\"|\bfit (makes|finds|sizes|gives|doubles)\b|\bfit:",
    r"\bbitloom (orders|work)\b",
    r"--order\b",
)
"""Words of before, as regular expressions."""
OLD_NAMES = (
    "cli/old_names.py",
    "cli/test_old_names.py",
    "cli/options.py",
    "docs/test_glossary.py",
    "training/train.py",
)
"""Files that must name them; a network, unlike a design, is fitted to its training images."""


def rows() -> list[list[str]]:
    """Word, meaning, unit, where."""
    table = PAGE.read_text().partition("|---|---|---|---|\n")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def texts() -> list[Path]:
    """What people read of the project; decisions and the changelog tell of former times."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
    for folder in ("docs", "notebooks", "golden", "hls_gen", "driver", "overlay", "tests"):
        for end in ("md", "py", "ipynb", "html", "svg"):
            found += sorted((ROOT / folder).rglob(f"*.{end}"))
    return [path for path in found if "decisions" not in path.parts and path != PAGE and not path.match("*/.ipynb_*/*")]


def test_words_are_in_order_and_have_one_meaning():
    words = [row[0] for row in rows()]
    assert len(words) > 60
    assert words == sorted(set(words), key=str.lower)
    assert all(len(row) == 4 and row[1] for row in rows())


def test_places_exist():
    places = {row[0]: row[3].strip("`") for row in rows()}
    assert {word: place for word, place in places.items() if not (ROOT / place).exists()} == {}


def test_words_that_refer_to_others_find_them():
    words = [row[0] for row in rows()]
    for word, meaning, *_ in rows():
        if meaning.startswith("see "):
            assert meaning.removeprefix("see ") in words, word


def test_the_readme_has_seven_of_them():
    table = (ROOT / "README.md").read_text().partition("## Seven words\n")[2].partition("\n## ")[0]
    words = re.findall(r"^\| (\w+) \|", table, re.M)[1:]
    assert len(words) == 7
    assert set(words) <= {row[0] for row in rows()}


@pytest.mark.parametrize("abolished", ABOLISHED)
def test_abolished_words_stay_away(abolished):
    pattern, found = re.compile(abolished), {}
    for path in texts():
        if path.as_posix().endswith(OLD_NAMES):
            continue
        if hit := pattern.search(path.read_text(encoding="utf-8")):
            found[path.relative_to(ROOT).as_posix()] = hit.group()
    assert found == {}


@pytest.mark.parametrize(
    ("abolished", "text"),
    [
        *zip(
            ABOLISHED,
            (
                "the orders of work", "order of maps", "in order `input`", "kind of NPU", "NPUs of both kinds",
                "an NPU's kind", "`fit`", "bitloom orders x", "--order raster",
            ),
        )
    ],
)  # fmt: skip
def test_an_abolished_word_would_be_found(abolished, text):
    assert re.search(abolished, text)
