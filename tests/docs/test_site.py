"""The site: built without a warning, whole without a network, every link leads somewhere."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import click
import pytest

from bitloom.overlay.cli.group import bitloom

from .blocks import ROOT

LOADS = {"img": "src", "script": "src", "iframe": "src", "source": "src", "video": "src", "link": "href"}
"""Attributes whose target a browser loads by itself."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class Page(HTMLParser):
    """What a page of the site holds: ids, targets of links, addresses that it loads."""

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


def test_every_notebook_is_a_page_with_all_its_cells(site):
    for source in (ROOT / "notebooks").glob("*.ipynb"):
        page = (site / "notebooks" / f"{source.stem}.html").read_text()
        cells = json.loads(source.read_text())["cells"]
        codes = sum(cell["cell_type"] == "code" for cell in cells)
        assert page.count('highlight"><pre>') >= codes
        assert "".join(cells[0]["source"]).partition("\n")[0].removeprefix("# ") in page


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


def test_links_outside_are_whole_addresses(pages):
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            assert parts.scheme in ("", "https"), f"{path}: {link}"
            assert parts.scheme == "" or "." in (parts.hostname or ""), f"{path}: {link}"


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


def test_search_works_from_disk(site, tmp_path):
    """A browser lets a page from disk neither fetch nor start a worker; docs/javascripts/iframe-worker.js helps."""
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        pytest.skip(f"needs a Chromium: none of {', '.join(BROWSERS)} is on the PATH")
    done = subprocess.run(
        [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", f"--user-data-dir={tmp_path / 'profile'}",
            "--virtual-time-budget=10000", "--dump-dom", f"{(site / 'index.html').as_uri()}?q=ping-pong",
        ],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert re.search(r"[1-9]\d* matching documents", done.stdout)


SOUGHT = {
    "bare metal": "how-to/without-pynq/", "C header": "how-to/without-pynq/", "throughput": "how-to/own-block-design/",
    "camera": "how-to/own-block-design/",
}  # fmt: skip
"""Words that users look for, and a page that must be among what is found."""


@pytest.mark.parametrize("words", SOUGHT)
def test_search_knows_the_words_of_users(site, words):
    sections = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    found = {section["location"].partition("#")[0] for section in sections if words in section["text"]}
    assert SOUGHT[words] in {page.removesuffix("index.html").replace(".html", "/") for page in found}


def test_reference_has_what_users_call(pages):
    ids = set().union(*(page.ids for page in pages.values()))
    names = [
        "bitloom.golden.network.Model",
        "bitloom.golden.layers.conv.Conv",
        "bitloom.golden.layers.batch_norm.fold",
        "bitloom.golden.file.save",
        "bitloom.driver.accelerator.Accelerator.predict",
        "bitloom.driver.overlay.BitloomOverlay",
        "bitloom.hls_gen.design.program.Program",
        "bitloom.hls_gen.compiler.emit.compile_model",
        "bitloom.driver.errors.Timeout",
        "bitloom.hls_gen.design.npu.Npu",
        "bitloom.hls_gen.design.topology.ring",
        "bitloom.hls_gen.compiler.sizing.size_memories",
        "bitloom.overlay.build.build.build",
        "bitloom.overlay.build.run.run",
    ]
    assert [name for name in names if name not in ids] == []


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """The command and all commands below it, with their names in full."""
    yield name, command
    for part, below in getattr(command, "commands", {}).items():
        yield from commands(below, f"{name} {part}")


def test_reference_has_every_command(site, pages):
    page = pages[site / "reference" / "cli.html"]
    text = page.path.read_text()
    for name, command in commands(bitloom, "bitloom"):
        assert name.replace(" ", "-") in page.ids, f"{name}: must have a section"
        for option in command.params:
            assert max(option.opts, key=len) in text, f"{name}: {option.opts} must be told"


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "images").glob("*.svg")), ids=lambda path: path.name)
def test_pictures_are_whole_and_used(path):
    assert ElementTree.parse(path).getroot().get("viewBox")
    texts = [page.read_text() for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]]
    assert any(f"images/{path.name})" in text for text in texts), f"{path.name}: must be in a page"


MEASURE = """<script>window.addEventListener("load", () => {
  const cut = [...document.querySelectorAll(".highlight code")].filter(code => code.scrollWidth > code.clientWidth + 1)
    .filter(code => !code.closest(".language-text"));
  document.body.dataset.cut = "lines cut: " + cut.map(code => code.textContent.slice(0, 60)).join(" | ");
})</script>"""
"""Notes the code blocks whose lines are longer than the page is wide; drawings may be."""


@pytest.mark.parametrize("page", ["reference/cli.html", "how-to/network.html", "how-to/board.html"])
def test_no_line_of_a_program_is_cut(site, tmp_path, page):
    """In a window of 1,440 pixels, as laptops have it."""
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        pytest.skip(f"needs a Chromium: none of {', '.join(BROWSERS)} is on the PATH")
    copy = (site / page).with_name(f"measured-{Path(page).name}")
    copy.write_text((site / page).read_text().replace("</body>", f"{MEASURE}</body>"))
    command = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--window-size=1440,900",
        f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=3000", "--dump-dom", copy.as_uri(),
    ]  # fmt: skip
    try:
        shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    finally:
        copy.unlink()
    assert re.findall(r'data-cut="([^"]*)"', shown) == ["lines cut: "]
