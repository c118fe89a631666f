"""Breaks of the sources drawn at random, and how many of them the tests catch: ``python -m tests.mutation``.

    python -m tests.mutation --count 200 --seed 1 --folder /tmp/mutation    # goes on where an earlier call ended
    python -m tests.mutation --count 200 --seed 1 --folder /tmp/mutation --list

A break changes one place of one file in a copy of the tree: a comparison, an operator of arithmetic, ``and`` or ``or``,
``not``, a Boolean, or an integer. Places are drawn alike from all source files, the seed says which. Tests run in three
rings until one fails: the nearest (those named as the file, and those that import it), then the room's, then the
networks'. A break that no ring catches has survived; it may be one that changes nothing which can be seen.

Results are kept in ``FOLDER/results.json``, a line for each break, by the tree's digest.
"""

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.paths import ROOT

ROOMS = ("golden", "hls_gen", "driver", "overlay")
COPIED = (*ROOMS, "boards", "notebooks", "src", "tests", "docs", "pyproject.toml", "README.md", "CONTRIBUTING.md")
NETWORKS = ("tests/overlay/build", "tests/hls_gen/compiler", "tests/driver")
"""Tests that run whole networks."""
LIMIT_SECONDS = 900
SURVIVED = "survived"
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
"""Operator -> what takes its place."""


@dataclass(frozen=True)
class Break:
    """A change of one place.

    Attributes
    ----------
    file : str
        From the root of the repository.
    line : int
        Of the place, from 1.
    start, end : int
        The place's bytes in the file.
    old, new : str
        What stands there, and what takes its place.
    """

    file: str
    line: int
    start: int
    end: int
    old: str
    new: str

    def text(self) -> bytes:
        """The broken file."""
        text = (ROOT / self.file).read_bytes()
        return text[: self.start] + self.new.encode() + text[self.end :]


def _changed(node: ast.expr) -> ast.expr | None:
    """The expression with its own operator or value changed; None where there is no break for it."""
    match node:
        case ast.Compare(ops=[op, *others]) if type(op) in SWAPS:
            return ast.Compare(node.left, [SWAPS[type(op)](), *others], node.comparators)
        case ast.BinOp(op=op) if type(op) in SWAPS and not _is_text(node):
            return ast.BinOp(node.left, SWAPS[type(op)](), node.right)
        case ast.BoolOp(op=op):
            return ast.BoolOp(SWAPS[type(op)](), node.values)
        case ast.UnaryOp(op=ast.Not()):
            return node.operand
        case ast.Constant(value=bool()):
            return ast.Constant(not node.value)
        case ast.Constant(value=int()):
            return ast.Constant(node.value + 1)
    return None


def _is_text(node: ast.BinOp) -> bool:
    """Whether a side is plainly text or a type, where another operator would only raise TypeError."""
    sides = (node.left, node.right)
    return any(isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
               for side in sides)  # fmt: skip


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    """Every expression below a node but those of annotations."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.JoinedStr) or not isinstance(child, ast.AST):
                continue
            if isinstance(child, ast.expr):
                yield child
            yield from _expressions(child)


def breaks(file: str) -> list[Break]:
    """All breaks of a file."""
    text = (ROOT / file).read_bytes()
    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    found = []
    for node in _expressions(ast.parse(text)):
        changed = _changed(node)
        if changed is None:
            continue
        start = lines[node.lineno - 1] + node.col_offset
        end = lines[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        new = f"({ast.unparse(changed)})" if not isinstance(changed, ast.Constant) else ast.unparse(changed)
        found.append(Break(file, node.lineno, start, end, text[start:end].decode(), new))
    return found


def sources() -> list[str]:
    """All source files, from the root of the repository."""
    return sorted(str(path.relative_to(ROOT)) for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def drawn(count: int, seed: int) -> list[Break]:
    """So many breaks, the same for a seed and a tree."""
    every = [one for file in sources() for one in breaks(file)]
    return random.Random(seed).sample(every, min(count, len(every)))


def rings(file: str) -> list[list[str]]:
    """The tests of each ring, nearest first; none runs twice."""
    path = Path(file)
    module = "bitloom." + ".".join(path.with_suffix("").parts)
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    nearest = [str(test.relative_to(ROOT)) for test in tests
               if test.stem == f"test_{path.stem}" or module in test.read_text(encoding="utf-8")]  # fmt: skip
    room = next(folder for folder in path.parents if (ROOT / "tests" / folder).is_dir())
    return [nearest, [f"tests/{room}"], list(NETWORKS)]


def copy_tree(folder: Path) -> Path:
    """A copy of the tree in ``folder``, with the data folder beside it where there is one."""
    tree = folder / "tree"
    if not tree.exists():
        tree.mkdir(parents=True)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, tree / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, tree / name)
        if (ROOT.parent / "shared").is_dir():
            (folder / "shared").symlink_to((ROOT.parent / "shared").resolve())
    return tree


def run(tests: Sequence[str], tree: Path, workers: int) -> bool:
    """Whether one of the tests fails, or takes too long."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-n", str(workers), *tests]
    environment = {**os.environ, "PYTHONPATH": f"{tree / 'src'}", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode not in (0, 5)  # 5: no test was collected


def verdict(broken: Break, tree: Path, workers: int) -> str:
    """The ring that catches a break: "nearest", "room" or "networks"; or SURVIVED."""
    path = tree / broken.file
    path.write_bytes(broken.text())
    try:
        for name, tests in zip(("nearest", "room", "networks"), rings(broken.file)):
            if tests and run(tests, tree, workers):
                return name
    finally:
        shutil.copy(ROOT / broken.file, path)
    return SURVIVED


def main() -> None:
    """Try the breaks that have no result yet, and print the share that was caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description="Breaks that the tests must catch.")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, required=True, help="where the copy of the tree and the results are")
    parser.add_argument("--workers", type=int, default=2, help="processes of pytest")
    parser.add_argument("--list", action="store_true", help="only print the breaks")
    asked = parser.parse_args()
    chosen = drawn(asked.count, asked.seed)
    if asked.list:
        for one in chosen:
            print(f"{one.file}:{one.line}: {one.old} -> {one.new}")
        return
    tree, results = copy_tree(asked.folder), asked.folder / "results.json"
    known = json.loads(results.read_text()) if results.exists() else []
    for number, one in enumerate(chosen[len(known) :], len(known) + 1):
        begun = time.monotonic()
        known.append({**asdict(one), "verdict": verdict(one, tree, asked.workers)})
        results.write_text(json.dumps(known, indent=1))
        print(f"{number}/{len(chosen)} {known[-1]['verdict']:9} {time.monotonic() - begun:4.0f} s "
              f"{one.file}:{one.line}: {one.old} -> {one.new}", flush=True)  # fmt: skip
    told = Counter(one["verdict"] for one in known)
    print(f"caught {len(known) - told[SURVIVED]} of {len(known)}: {dict(told)}")


if __name__ == "__main__":
    main()
