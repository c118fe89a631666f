"""Imports go one way: golden <- hls_gen.design <- hls_gen.compiler, hls_gen.rtl, driver <- overlay (decision 0010)."""

import ast
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from .paths import ROOT

NUMPY = {"numpy"}
GENERATOR = {"numpy", "veriloggen", "pyverilog", "ply"}
MAY_IMPORT = {
    "golden": {"golden", *NUMPY},
    "hls_gen.design": {"hls_gen.design", "golden", *NUMPY},
    "hls_gen.compiler": {"hls_gen.compiler", "hls_gen.design", "golden", *NUMPY},
    "hls_gen.check": {"hls_gen.check", "golden", *GENERATOR},
    "hls_gen.rtl": {"hls_gen.rtl", "hls_gen.check", "hls_gen.design", "golden", *GENERATOR},
    "driver": {"driver", "hls_gen.design", "golden", "numpy", "pynq"},
}
"""Room -> rooms and packages that its files may import, the standard library besides. overlay may import anything."""
LAZY = {"golden/zoo/digits.py": {"sklearn"}, "golden/kernels/tiled/gpu.py": {"cupy", "cuda"}}
"""Modules that a file may import inside a function, for an optional extra."""
UNITS = ("primitives", "results", "array", "sequencer", "pool_unit", "former", "stores", "ports", "loader", "shell")
TOOLS = ("steps", "picture", "area", "area_model", "timing", "platform", "virtual", "build", "evaluation", "deploy")
FLOORS = {
    "hls_gen/rtl": (*UNITS, "cores", "dma", "packetizer", "training", "generate"),
    "overlay": (*TOOLS, "exporters", "explore", "importers", "study", "show", "fuzz", "cli"),
}
"""Room -> the folders and files in it, from the ground up: each imports from those before it only."""
ON_BOARDS = ("golden", "hls_gen.design", "hls_gen.compiler", "driver")
BOARD_PYTHON = (3, 10)


def sources(room: str) -> list[Path]:
    return sorted((ROOT / room.replace(".", "/")).rglob("*.py"))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def room(module: str) -> str:
    """The room of a module of ours, else its top-level name."""
    parts = module.split(".")
    if parts[0] != "bitloom":
        return parts[0]
    return ".".join(parts[1:3] if parts[1:2] == ["hls_gen"] else parts[1:2])


Import = ast.Import | ast.ImportFrom


def statements(tree: ast.AST, lazy: bool = False) -> Iterator[tuple[Import, bool]]:
    """Imports anywhere in ``tree``, also for annotations alone, and whether inside a function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Import):
            yield node, lazy
        elif isinstance(node, (ast.stmt, ast.excepthandler, ast.match_case)):
            yield from statements(node, lazy or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


@cache
def of_file(path: Path) -> list[tuple[Import, bool]]:
    """Imports of a file."""
    return list(statements(ast.parse(path.read_text())))


def imports(import_statements: Iterable[tuple[Import, bool]], own: str) -> Iterator[tuple[str, bool]]:
    """Rooms that such imports of a file of room ``own`` are from, and whether inside a function."""
    for node, lazy in import_statements:
        if isinstance(node, ast.Import):
            yield from ((room(alias.name), lazy) for alias in node.names)
        else:
            modules = [node.module or ""]
            if node.module in ("bitloom", "bitloom.hls_gen"):  # the rooms are what is imported from these
                modules = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from ((own if node.level else room(module), lazy) for module in modules)


def foreign(path: Path, own: str) -> list[str]:
    """Imports of ``path`` that its room may not have."""
    return sorted(
        imported
        for imported, lazy in set(imports(of_file(path), own))
        if imported not in MAY_IMPORT[own] | sys.stdlib_module_names
        and not (lazy and imported in LAZY.get(name(path), ()))
    )


def imported_files(path: str, import_statements: Iterable[tuple[Import, bool]], files: Collection[str]) -> set[str]:
    """Those of ``files`` that such imports of the file ``path`` are from."""
    folder = path.split("/")[:-1]
    modules = set()
    for node, _ in import_statements:
        if isinstance(node, ast.Import):
            modules |= {alias.name.removeprefix("bitloom.") for alias in node.names}
        else:
            parents = folder[: len(folder) - node.level + 1] if node.level else []
            module = ".".join([*parents, *([node.module] if node.module else [])]).removeprefix("bitloom.")
            modules |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return {name for module in modules if (name := module.replace(".", "/") + ".py") in files} - {path}


def circles(arrows: Mapping[str, Collection[str]]) -> set[tuple[str, ...]]:
    """The names that reach each other, sorted, for each group of more than one."""

    @cache
    def reached(begin: str) -> frozenset[str]:
        files = set()
        waiting = list(arrows[begin])
        while waiting:
            name = waiting.pop()
            if name not in files:
                files.add(name)
                waiting += arrows[name]
        return frozenset(files)

    return {tuple(sorted(n for n in reached(name) if name in reached(n))) for name in arrows if name in reached(name)}


@cache
def tree_of_imports() -> dict[str, set[str]]:
    """Each file of the package with the files that it imports."""
    paths = {name(path): path for top in ("golden", "hls_gen", "driver", "overlay") for path in sources(top)}
    return {file: imported_files(file, of_file(path), paths) for file, path in paths.items()}


def test_no_file_reaches_itself():
    assert circles(tree_of_imports()) == set()


def test_a_circle_is_seen():
    assert circles({"a": ["b"], "b": ["c"], "c": ["b"], "d": ["d", "a"]}) == {("b", "c"), ("d",)}
    text = "from . import b\nfrom .c import d\ndef f():\n    import bitloom.e.f\n    from bitloom.e import g, h\n"
    files = {"a/x.py", "a/b.py", "a/c.py", "a/d.py", "e/f.py", "e/g.py"}
    assert imported_files("a/x.py", statements(ast.parse(text)), files) == {"a/b.py", "a/c.py", "e/f.py", "e/g.py"}


@pytest.mark.parametrize("room", FLOORS)
def test_imports_go_down_in_a_room(room: str):
    floors = {folder: floor for floor, folder in enumerate(FLOORS[room])}

    def floor(file: str) -> int:
        return floors[file.removeprefix(f"{room}/").removesuffix(".py").partition("/")[0]]

    arrows = {
        file: {other for other in files if other.startswith(f"{room}/")}
        for file, files in tree_of_imports().items()
        if file.startswith(f"{room}/") and file != f"{room}/__init__.py"
    }
    assert {file: up for file, files in arrows.items() if (up := {f for f in files if floor(f) > floor(file)})} == {}


@pytest.mark.parametrize("own", MAY_IMPORT)
def test_imports_only_what_it_may(own):
    assert sources(own), f"{own} has no sources"
    assert {name(path): others for path in sources(own) if (others := foreign(path, own))} == {}


def test_every_file_has_a_room():
    packages = ("golden", "hls_gen", "driver", "overlay")
    homeless = {path for package in packages for path in sources(package)}
    homeless -= {path for own in (*MAY_IMPORT, "overlay") for path in sources(own)}
    assert [name(path) for path in sorted(homeless)] == ["hls_gen/__init__.py"]


def test_sees_imports_wherever_they_are():
    text = (
        "import numpy.linalg\nfrom . import y\nfrom bitloom.hls_gen import rtl\nfrom bitloom import driver\n"
        "def f():\n    from sklearn import datasets\n    from bitloom.hls_gen.compiler.plan import plan\n"
    )
    expected = [("numpy", False), ("golden", False), ("hls_gen.rtl", False), ("driver", False), ("sklearn", True)]
    assert list(imports(statements(ast.parse(text)), "golden")) == [*expected, ("hls_gen.compiler", True)]


def test_folders_are_imported_as_parts_of_bitloom():
    """``import driver`` works in the root of a checkout, and would make a second copy of every class."""
    files = [path for folder in ("golden", "hls_gen", "driver", "overlay", "tests") for path in sources(folder)]
    outside = {"golden", "hls_gen", "driver", "overlay", "boards", "notebooks"}
    bare = {}
    named = re.compile(rf"^\s*(?:from\s+|import\b.*\b)(?:{'|'.join(sorted(outside))})\b", re.MULTILINE)
    for path in (path for path in files if named.search(path.read_text())):
        for node, _ in of_file(path):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else modules
            bare |= {name(path): m for m in modules if m.partition(".")[0] in outside}
    assert bare == {}


def test_boards_can_read_it():
    """Boards run Python 3.10."""
    for path in (path for own in ON_BOARDS for path in sources(own)):
        ast.parse(path.read_text(), filename=str(path), feature_version=BOARD_PYTHON)


def test_annotations_are_ones_that_numpy_1_21_knows() -> None:
    """numpy's own types can't be subscripted there when a module is imported; as text they may stand."""
    types = re.compile(r"np\.(dtype|ndarray|number)\b")
    places = [
        f"{name(path)}:{node.lineno}"
        for path in (path for own in ON_BOARDS for path in sources(own))
        if re.search(rf"{types.pattern}\[", path.read_text())
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Subscript) and types.fullmatch(ast.unparse(node.value))
    ]
    assert not places
