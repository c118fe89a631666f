"""Every code block in README.md and docs is run, page by page, or has a comment that says why not."""

import os
import subprocess
import sys
from codeop import compile_command
from collections.abc import Set
from pathlib import Path

import pytest

from .blocks import DATA, ROOT, RUN, Block, blocks, pages
from .run_page import run


def of(page: Path) -> list[Block]:
    return [b for b in blocks(page) if b.language in RUN]


def named(files: list[Path], slow: Set[str] = frozenset()) -> list[object]:
    """A parameter for each page, by its name; those of ``slow`` with that marker."""
    names = [page.relative_to(ROOT).as_posix() for page in files]
    marks = [[pytest.mark.slow] if name in slow else [] for name in names]
    return [pytest.param(page, id=name, marks=mark) for page, name, mark in zip(files, names, marks)]


HOW_TO = ("board", "evaluate", "import", "large-networks", "many-boards", "network", "without-pynq")
LONG = {*(f"docs/how-to/{name}.md" for name in HOW_TO), "docs/reference/cli.md", "docs/start/tour.md"}
"""Pages whose blocks take more than two seconds: they run in the slow tier alone. README runs in both."""
FAST = [page for page in pages() if any(b.mark == "" for b in of(page))]
SLOW = [page for page in pages() if any(b.mark == "slow" for b in of(page))]


def run_in(folder: Path, page: Path, *options: str) -> None:
    """Run a page in ``folder`` as in a checkout, whose build/ is its own."""
    for entry in ROOT.iterdir():
        if entry.name not in ("build", ".venv", ".git"):
            (folder / entry.name).symlink_to(entry)
    (folder / ".venv").symlink_to(sys.prefix)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    sources = os.pathsep.join([str(ROOT / "src"), str(ROOT)])  # an environment may have another checkout's package
    environment = {**os.environ, "PATH": path, "PYTHONPATH": sources, "COLUMNS": "100", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "tests.docs.run_page", str(page), *options]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.sample(6)
@pytest.mark.parametrize("page", named(FAST, LONG))
def test_runs(page, tmp_path):
    run_in(tmp_path, page)


@pytest.mark.slow
@pytest.mark.parametrize("page", named(SLOW))
def test_runs_slow(page, tmp_path):
    run_in(tmp_path, page, "--slow")


def test_languages():
    """An unknown language, an indented block or a mark without its reason would not be run, and nobody would know."""
    for block in (block for page in pages() for block in blocks(page)):
        assert block.language in RUN + DATA, f"{block.name}: a block must be {' or '.join(RUN + DATA)}"
        assert block.mark == "prints" or bool(block.mark) == bool(block.reason), f"{block.name}: {block.mark} why?"
        assert block.mark == "" or (block.mark == "prints") == (block.language == "text"), block.name


def pasted(text: str) -> str:
    """The error of lines that are pasted into an interpreter, whose blocks end at a blank line; "" if there is none."""
    lines: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        lines.append(line)
        try:
            whole = compile_command("\n".join(lines), symbol="single")
        except SyntaxError as error:
            return f"line {number}: {error.msg}"
        lines = [] if whole else lines
    return "it has no end" if any(lines) else ""


def test_python_can_be_pasted_into_an_interpreter():
    faults = {
        block.name: pasted(block.text) for page in pages() for block in blocks(page) if block.language == "python"
    }
    assert {name: fault for name, fault in faults.items() if fault} == {}


def page_of(folder: Path, text: str) -> Path:
    page = folder / "page.md"
    page.write_text(text)
    return page


def test_a_failing_block_names_page_and_line(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.docs.blocks.ROOT", tmp_path)
    with pytest.raises(AssertionError, match=r"^page\.md:3: exit status 7\nout\nerr\n$"):
        run(page_of(tmp_path, "Text\n\n```shell\necho out\necho err >&2; false || exit 7\n```\n"), slow=False)


def test_blocks_share_names_and_print_what_the_page_says(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.docs.blocks.ROOT", tmp_path)
    text = "```python\na = 6\n```\n\n```python\nprint(7 * a, 'is it')\n```\n\n<!-- prints -->\n\n```text\n{}\n```\n"
    run(page_of(tmp_path, text.format("42 ... it")), slow=False)
    with pytest.raises(AssertionError, match=r"^page\.md:11: must be what is printed, got:\n42 is it\n$"):
        run(page_of(tmp_path, text.format("43 is it")), slow=False)


def test_marks(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.docs.blocks.ROOT", tmp_path)
    text = "<!-- {} -->\n\n```python\nraise KeyError\n```\n"
    run(page_of(tmp_path, text.format("not run: board")), slow=True)
    run(page_of(tmp_path, text.format("slow: minutes")), slow=False)
    with pytest.raises(KeyError):
        run(page_of(tmp_path, text.format("slow: minutes")), slow=True)
    with pytest.raises(KeyError):  # a comment is for the next block only
        run(page_of(tmp_path, "<!-- not run: board -->\n\nText\n\n```python\nraise KeyError\n```\n"), slow=False)
