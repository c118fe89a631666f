"""A Python file that a docstring or a comment of a source names is there."""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from .blocks import ROOT

ROOMS = ("golden", "hls_gen", "driver", "overlay", "boards", "notebooks")
FILES = {
    PurePosixPath(path.relative_to(ROOT).as_posix())
    for room in (*ROOMS, "tests")
    for path in (ROOT / room).rglob("*.py")
}
FILE = re.compile(r"(?<![\w/.])\w[\w/]*\.py\b")
OF_OTHERS = "pynq/"


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each docstring and comment."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and token.string.startswith('"""')):
            yield token.start[0], token.string


def missing(source: PurePosixPath, text: str) -> list[str]:
    """Files that a text in ``source`` names and that aren't there: not in a folder around the source, not beside
    another file that the text names, and not in the source's room."""
    names = [name for name in FILE.findall(text) if not name.startswith(OF_OTHERS)]
    folders = {*source.parents, *(PurePosixPath(name).parent for name in names)}
    room = source.parts[:2]
    return [
        name
        for name in names
        if not any(folder / name in FILES for folder in folders)
        and not any(path.name == name and path.parts[:2] == room for path in FILES)
    ]


def test_files_that_sources_name_are_there():
    found = [
        f"{path}:{line}: {name}"
        for path in sorted(FILES)
        if path.parts[0] in ROOMS
        for line, text in texts((ROOT / path).read_text(encoding="utf-8"))
        for name in missing(path, text)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("hls_gen/design/npu.py", []),
        ("hls_gen/design/neither.py", ["hls_gen/design/neither.py"]),
        ("(hls_gen/design/npu.py, flat.py)", []),
        ("(flat.py)", ["flat.py"]),
        ("issuer --issuer.py--> beats", ["issuer.py"]),
        ("flow/results.py, layer.py, plan.py", []),
        ("pynq/lib/dma.py", []),
    ],
)
def test_names_are_found(text, names):
    assert missing(PurePosixPath("hls_gen/compiler/flow/pool_unit.py"), text) == names
