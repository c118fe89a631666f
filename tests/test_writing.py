"""Every file goes through golden/atomic.py: no source opens a file for writing around it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.paths import ROOT

ROOMS = ("golden", "hls_gen", "driver", "overlay", "boards", "notebooks")
HELPER = "golden/atomic.py"
METHODS = {"write_text", "write_bytes", "tofile", "rename", "symlink_to", "hardlink_to"}
"""Methods of paths and arrays that write by themselves."""
OF_OS = ("replace", "rename", "open", "fdopen", "link", "symlink", "mkfifo", "truncate")
FUNCTIONS = {f"os.{name}" for name in OF_OS}
FUNCTIONS |= {f"shutil.{name}" for name in ("copy", "copy2", "copyfile", "copytree", "move")}
FUNCTIONS |= {f"tempfile.{name}" for name in ("NamedTemporaryFile", "mkstemp", "mkdtemp")}
FUNCTIONS |= {"np.memmap", "np.lib.format.open_memmap"}
IN_MEMORY = {"save": 0, "savez": 0, "savez_compressed": 0, "savetxt": 0, "savefig": 0, "dump": 1, "ZipFile": 0}
"""Functions that write to a file of Python's or to a path, and which argument that is: it must be one in memory."""
LAST = {"open", "replace", *METHODS, *IN_MEMORY, *(function.rpartition(".")[2] for function in FUNCTIONS)}
CALLS = re.compile(rf"\b(?:{'|'.join(sorted(LAST))})\(")
"""Names behind the last point of a call that writes; a file without any needn't be read as Python."""
ALLOWED = {
    "overlay/evaluation/pictures.py": {"Image.open"},  # Pillow's, which reads
    "overlay/build/folder.py": {"os.rename", "os.replace"},  # the moves of a build, which go on after a kill
}
"""Calls that each file may make besides, with the reason."""


def name(node: ast.expr) -> str:
    """``os.path.join`` of such an expression."""
    return ast.unparse(node)


def in_memory(tree: ast.AST) -> set[str]:
    """Names that are assigned a file in memory."""
    names = set()
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Assign) else None
        if isinstance(value, ast.Call) and name(value.func) in ("io.BytesIO", "io.StringIO"):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def modes(call: ast.Call, position: int) -> str:
    """The mode with which a call of ``open`` opens; w where it isn't written down."""
    given = [k.value for k in call.keywords if k.arg == "mode"] + call.args[position : position + 1]
    if not given:
        return "r"
    return given[0].value if isinstance(given[0], ast.Constant) and isinstance(given[0].value, str) else "w"


def writes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of each call that writes a file around the helper."""
    memory = in_memory(tree)
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        last = getattr(call.func, "attr", None) or getattr(call.func, "id", None)
        if last not in LAST:  # the names of all expressions would take seconds
            continue
        called = name(call.func)
        if called in FUNCTIONS or (last in METHODS and not called.startswith("atomic.") and called != last):
            yield call.lineno, called
        elif last == "open" and called not in ("os.open", "np.lib.format.open"):
            if set(modes(call, int(called == "open"))) & set("wax+"):
                yield call.lineno, called
        elif last == "replace" and called != "replace" and len(call.args) == 1 and not call.keywords:
            yield call.lineno, called  # of a path; that of a text has two arguments
        elif last in IN_MEMORY:
            place = call.args[IN_MEMORY[last] : IN_MEMORY[last] + 1]
            mode = modes(call, 1)
            reads = last == "ZipFile" and "r" in mode
            own = last in ("save", "dump") and called.split(".")[0] not in ("np", "json", "pickle")
            if not reads and not own and not (place and name(place[0]) in memory):
                yield call.lineno, called


def sources() -> list[Path]:
    return [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py")) if path != ROOT / HELPER]


def test_no_source_writes_around_the_helper() -> None:
    files = sources()
    assert len(files) > 150
    places = []
    for path in files:
        own = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        for line, called in writes(ast.parse(text)) if CALLS.search(text) else ():
            if called not in ALLOWED.get(own, ()):
                places.append(f"{own}:{line}: {called}")
    assert not places, "files are written with bitloom.golden.atomic, got\n" + "\n".join(places)


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("open(p)", []),
        ("open(p, 'w')", ["open"]),
        ("open(p, mode='ab')", ["open"]),
        ("open(p, mode)", ["open"]),
        ("(a / 'b').open('x')", ["(a / 'b').open"]),
        ("p.write_text('x')", ["p.write_text"]),
        ("write_bytes(p, x)", []),
        ("atomic.write_bytes(p, x)", []),
        ("part.replace(path)", ["part.replace"]),
        ("text.replace('a', 'b')", []),
        ("shutil.copyfile(a, b)", ["shutil.copyfile"]),
        ("np.save(path, x)", ["np.save"]),
        ("out = io.BytesIO()\nnp.save(out, x)", []),
        ("figure.savefig(path)", ["figure.savefig"]),
        ("out = io.StringIO()\nfigure.savefig(out, format='svg')", []),
        ("zipfile.ZipFile(path)", []),
        ("zipfile.ZipFile(path, 'w')", ["zipfile.ZipFile"]),
        ("out = io.BytesIO()\nzipfile.ZipFile(out, 'w')", []),
        ("program.save(path)", []),
    ],
)
def test_what_is_found(text: str, calls: list[str]) -> None:
    assert [called for _, called in writes(ast.parse(text))] == calls
