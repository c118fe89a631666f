"""MkDocs hook: files of the repository's root and notebooks are pages too, so that nothing is said twice.

Pages are written to be read in the repository as well, so their links lead to files of the repository. Here they become
links between pages; one to a file that is no page becomes plain text. What leads nowhere stays, and the build warns.
"""

import json
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "SECURITY.md": "SECURITY.md",
    "CHANGELOG.md": "CHANGELOG.md",
    **{f"notebooks/{path.name}": f"notebooks/{path.stem}.md" for path in sorted(ROOT.glob("notebooks/*.ipynb"))},
}
"""File of the repository outside of docs -> page."""
FILES = {page: file for file, page in PAGES.items()}

LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")


def on_config(config: Any) -> Any:
    """Put all notebooks and decisions into the navigation."""
    for entry in config.nav:
        if "Notebooks" in entry:
            entry["Notebooks"] += [page for page in PAGES.values() if page.startswith("notebooks/")]
        if "Decisions" in entry:
            entry["Decisions"] += sorted(f"decisions/{path.name}" for path in ROOT.glob("docs/decisions/[0-9]*.md"))
    return config


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages of PAGES."""
    for name, page in PAGES.items():
        text = (ROOT / name).read_text()
        files.append(File.generated(config, page, content=_markdown(text) if name.endswith(".ipynb") else text))
    return files


def _markdown(notebook: str) -> str:
    """The cells of a notebook; they are kept without outputs."""
    cells = []
    for cell in json.loads(notebook)["cells"]:
        text = "".join(cell["source"])
        cells.append(f"```python\n{text}\n```" if cell["cell_type"] == "code" else text)
    return "\n\n".join(cells)


def on_page_markdown(markdown: str, *, page: Page, **others: Any) -> str:
    """The page with links between pages."""
    here = page.file.src_uri
    return LINK.sub(lambda match: _link(match, here), markdown)


def _link(match: re.Match[str], here: str) -> str:
    """A link of page ``here``."""
    text, target = match.groups()
    path, _, anchor = target.partition("#")
    if "://" in target or not path:
        return match.group()
    source = posixpath.dirname(FILES.get(here, f"docs/{here}"))
    file = posixpath.normpath(posixpath.join(source, path))
    if not (ROOT / file).exists():
        return match.group()
    if (ROOT / file / "README.md").exists():
        file = f"{file}/README.md"
    if file not in PAGES and not file.startswith("docs/"):
        return text
    there = PAGES.get(file, file.removeprefix("docs/"))
    return f"[{text}]({posixpath.relpath(there, posixpath.dirname(here) or '.')}{'#' + anchor if anchor else ''})"
