"""The code blocks of a Markdown page, and what the comment before a block says about it:

    <!-- not run: REASON -->   it can't be run by a test
    <!-- slow: REASON -->      run in the slow tier only; what needs it must be slow too
    <!-- prints -->            in front of a text block: what the block before it prints; ... stands for anything

The comment must stand right before the block.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt

from tests.paths import ROOT

RUN = ("python", "shell", "c", "cpp")
DATA = ("json", "text", "tcl")
"""Languages of blocks that are run, or compiled if they are C or C++, and of those that are not run as a page; Tcl runs
in tests/overlay/platform/vivado/test_own_tcl.py."""

MARK = re.compile(r"<!-- (not run|slow|prints)(?:: (.+))? -->")


@dataclass(frozen=True)
class Block:
    """A block of ``text`` that begins after ``line`` of its page. mark, reason : of the comment before it, or ""."""

    page: Path
    line: int
    language: str
    text: str
    mark: str
    reason: str

    @property
    def name(self) -> str:
        """Where it stands."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """The pages whose blocks are run."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> tuple[Block, ...]:
    """Blocks of ``page`` in order. An indented block has language ``indented``."""
    return _blocks(page, page.read_text())


@cache  # pages are read by several tests, and most of a collection's time in this folder went into reading them
def _blocks(page: Path, text: str) -> tuple[Block, ...]:
    return tuple(_read(page, text))


def _read(page: Path, text: str) -> Iterator[Block]:
    mark = reason = ""
    for token in MarkdownIt("commonmark").parse(text):
        if token.type == "html_block":
            match = MARK.fullmatch(token.content.strip())
            mark, reason = (match[1], match[2] or "") if match else ("", "")
        elif token.type in ("fence", "code_block"):
            language = token.info.strip() if token.type == "fence" else "indented"
            yield Block(page, token.map[0] + 1, language, token.content, mark, reason)
            mark = reason = ""
        elif token.content or token.nesting == 0:
            mark = reason = ""
