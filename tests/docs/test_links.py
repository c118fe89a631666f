"""Links of Markdown files as they stand in the repository."""

import re
from pathlib import Path
from urllib.parse import urlsplit

from markdown_it import MarkdownIt

from .blocks import ROOT, pages

TEXTS = [*pages(), ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "CHANGELOG.md"]


def links(path: Path) -> list[str]:
    targets = []
    for token in MarkdownIt("commonmark").enable("table").parse(path.read_text()):
        for child in token.children or []:
            targets += [str(child.attrs[key]) for key in ("href", "src") if key in child.attrs]
    return targets


def anchors(path: Path) -> set[str]:
    """Of the headings, as both GitHub and the site make them."""
    names = set()
    for line in path.read_text().splitlines():
        if heading := re.match(r"#+ (.+)", line):
            kept = re.sub(r"[^\w\- ]", "", heading[1].lower())
            names.add(re.sub(r"[ ]+", "-", kept.strip()))
    return names


def test_links_lead_to_files_and_headings():
    pairs = [(text, link) for text in TEXTS for link in links(text)]
    assert len(pairs) > 100
    for path, link in pairs:
        parts = urlsplit(link)
        if parts.scheme:
            continue
        target = (path.parent / parts.path).resolve() if parts.path else path
        assert target.exists(), f"{path.name}: {link} must exist"
        assert ROOT in target.parents, f"{path.name}: {link} must be in the repository"
        if parts.fragment:
            assert parts.fragment in anchors(target), f"{path.name}: {link} must be a heading"


FOLDERS = "golden|hls_gen|driver|overlay|tests|docs|boards|notebooks"
NAMED = re.compile(rf"(?<![\w/.\"-])((?:{FOLDERS})/[\w./-]*\w)")
"""Files and folders that a text names."""


def test_files_that_a_text_names_exist():
    """Except for those that tell how a new file is called: X and ROOM stand for names."""
    named = [(text, name) for text in TEXTS for name in NAMED.findall(text.read_text())]
    files = [(text, name) for text, name in named if not re.search(r"X|ROOM", name)]
    assert len(files) > 100
    assert [file for file in files if not any((ROOT / f"{file[1]}{end}").exists() for end in ("", ".py"))] == []
