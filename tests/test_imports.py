"""Imports go one way: golden <- hls_gen <- overlay and golden <- driver <- overlay (docs/decisions/0001-shape.md)."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("golden", "driver", "hls_gen", "overlay")
ALLOWED = {
    "golden": {"golden", "numpy"},
    "driver": {"driver", "golden", "numpy", "pynq"},
    "hls_gen": {"hls_gen", "golden", "numpy", "veriloggen", "pyverilog", "ply"},
}
LAZY = {"golden/digits.py": {"sklearn"}, "golden/tiled/gpu.py": {"cupy", "cuda"}}
"""What a file may import inside a function, for an optional extra."""

BOARD_PYTHON = (3, 10)


def sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports(tree: ast.AST, package: str, lazy: bool = False) -> Iterator[tuple[str, bool]]:
    """Top-level names that ``tree`` imports, and whether inside a function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (package if node.level else (node.module or "").partition(".")[0]), lazy
        else:
            function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            yield from imports(node, package, lazy or function)


def foreign(path: Path, package: str) -> list[str]:
    """Imports of ``path`` that its package may not have."""
    return sorted(
        imported
        for imported, lazy in set(imports(ast.parse(path.read_text()), package))
        if imported not in ALLOWED[package] | sys.stdlib_module_names
        and not (lazy and imported in LAZY.get(name(path), ()))
    )


@pytest.mark.parametrize("package", ALLOWED)
def test_imports_only_what_it_may(package):
    assert sources(package), f"{package} has no sources"
    assert {name(path): found for path in sources(package) if (found := foreign(path, package))} == {}


def test_sees_imports_inside_functions():
    text = "import numpy.linalg\nfrom . import y\ndef f():\n    from sklearn import datasets\n    import veriloggen\n"
    assert list(imports(ast.parse(text), "golden")) == [
        ("numpy", False), ("golden", False), ("sklearn", True), ("veriloggen", True),
    ]


def test_packages_have_no_cycle():
    uses = {
        package: {
            imported
            for path in sources(package)
            for imported, _ in imports(ast.parse(path.read_text()), package)
            if imported in PACKAGES and imported != package
        }
        for package in PACKAGES
    }
    order: list[str] = []
    while free := [p for p in PACKAGES if p not in order and uses[p] <= set(order)]:
        order += free
    assert sorted(order) == sorted(PACKAGES), f"cycle among {set(PACKAGES) - set(order)}: {uses}"


@pytest.mark.parametrize("path", [p for package in ("golden", "driver") for p in sources(package)], ids=name)
def test_boards_can_read_it(path):
    """Boards run Python 3.10."""
    ast.parse(path.read_text(), filename=str(path), feature_version=BOARD_PYTHON)


def test_a_newer_syntax_would_be_noticed():
    with pytest.raises(SyntaxError):
        ast.parse("try:\n    pass\nexcept* ValueError:\n    pass\n", feature_version=BOARD_PYTHON)
