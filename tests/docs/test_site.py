"""The site: built without a warning, whole without a network, every link leads somewhere."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from .blocks import ROOT

pytestmark = pytest.mark.slow  # `make docs` builds it, too, and a hosted job does so at each push

LOADS = {"img": "src", "script": "src", "iframe": "src", "source": "src", "video": "src", "link": "href"}
"""Attributes whose target a browser loads by itself."""


class Page(HTMLParser):
    """Contents of a page of the site: ids, targets of links, addresses that it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.ids.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if LOADS.get(tag) in given:
            self.loads.append(given[LOADS[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "WARNING" not in done.stderr, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def test_every_markdown_file_is_a_page(site):
    for source in (ROOT / "docs").rglob("*.md"):
        page = source.relative_to(ROOT / "docs")
        page = page.with_name("index.html") if page.name == "README.md" else page.with_suffix(".html")
        assert (site / page).exists(), f"{page}: must be in the site"


def test_links_inside_lead_to_pages_and_places(site, pages):
    wrong = []
    for path, page in pages.items():
        if path.name == "404.html":  # its links begin with the address at which the site is served
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = pages.get(target)
            if not target.exists() or (parts.fragment and there and unquote(parts.fragment) not in there.ids):
                wrong.append(f"{path.relative_to(site)}: {link}")
    assert wrong == []


def test_nothing_is_loaded_from_elsewhere(site, pages):
    loads = [(path, address) for path, page in pages.items() for address in page.loads]
    for path in site.rglob("*.css"):
        loads += [(path, address) for address in re.findall(r"url\(['\"]?([^'\")]+)", path.read_text())]
    assert len(loads) > 100
    for path, address in loads:
        if path.name != "404.html" and not address.startswith("data:"):
            parts = urlsplit(address)
            assert (parts.scheme, parts.netloc) == ("", ""), f"{path}: loads {address}"
            assert (path.parent / unquote(parts.path)).exists(), f"{path}: loads {address}, which is not there"
