"""Breaks of the sources drawn at random, and how many of them the tests catch: ``python -m tests.mutation``.

    python -m tests.mutation --count 200 --seed 1 --folder /tmp/mutation    # goes on where an earlier call ended
    python -m tests.mutation --count 200 --seed 1 --folder /tmp/mutation --list

A break changes one place of one file in a copy of the tree: a comparison, an operator of arithmetic, ``and`` or ``or``,
``not``, a Boolean, or an integer. Places are drawn alike from all source files, the seed says which. The tests that
execute the broken statement run in three rings until one fails: the nearest (of files named as the source, or that
import it), then the room's, then the networks'. In each ring the shortest run first, up to RING_SECONDS of their usual
time, and one in any case. A break that no ring catches has survived: it may be one that changes nothing which can be
seen, or one that only a longer test sees. A run that doesn't end is stopped, and counts as caught ("time" in the
verdict).

Which tests execute a statement, and how long each takes, comes from a run of all tests::

    python -m pytest --cov --cov-config=tests/mutation.cfg --cov-context=test --junitxml=FOLDER/tests.xml
    mv .coverage FOLDER/tests.coverage

Results are kept in ``FOLDER/results.json``, an entry for each break. Compiled models come from ``FOLDER/cache`` (a copy
of ``~/.cache/bitloom`` saves hours); what a break adds there is removed again.
"""

import argparse
import ast
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from xml.etree import ElementTree

from tests.paths import ROOT

ROOMS = ("golden", "hls_gen", "driver", "overlay")
COPIED = (*ROOMS, "boards", "notebooks", "src", "tests", "docs", "pyproject.toml", "README.md", "CONTRIBUTING.md")
NETWORKS = ("tests/overlay/build", "tests/hls_gen/compiler", "tests/driver")
"""Tests that run whole networks."""
LIMIT_SECONDS = 600
"""Seconds that a break's tests may take, with compiling of changed hardware."""
RING_SECONDS = 30
RING_TESTS = 400
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
    constants = [side.value for side in sides if isinstance(side, ast.Constant)]
    return any(isinstance(side, ast.JoinedStr) for side in sides) or any(isinstance(one, str) for one in constants)


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
    places = []
    for node in _expressions(ast.parse(text)):
        changed = _changed(node)
        if changed is None:
            continue
        start = lines[node.lineno - 1] + node.col_offset
        end = lines[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        new = f"({ast.unparse(changed)})" if not isinstance(changed, ast.Constant) else ast.unparse(changed)
        places.append(Break(file, node.lineno, start, end, text[start:end].decode(), new))
    return places


def sources() -> list[str]:
    """All source files, from the root of the repository."""
    return sorted(str(path.relative_to(ROOT)) for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def drawn(count: int, seed: int) -> list[Break]:
    """So many breaks, the same for a seed and a tree."""
    every = [one for file in sources() for one in breaks(file)]
    return random.Random(seed).sample(every, min(count, len(every)))


def rings(file: str) -> dict[str, list[str]]:
    """The test files of each ring, nearest first; none twice."""
    path = Path(file)
    module = "bitloom." + ".".join(path.with_suffix("").parts)
    tests = [str(test.relative_to(ROOT)) for test in sorted((ROOT / "tests").rglob("test_*.py"))]
    room = next(folder for folder in path.parents if (ROOT / "tests" / folder).is_dir())
    nearest = [
        test for test in tests if Path(test).stem == f"test_{path.stem}" or module in (ROOT / test).read_text("utf-8")
    ]
    rooms = [test for test in tests if test.startswith(f"tests/{room}/") and test not in nearest]
    networks = [test for test in tests if test.startswith(NETWORKS) and test not in nearest + rooms]
    return {"nearest": nearest, "room": rooms, "networks": networks}


def _statement(broken: Break) -> range:
    """The lines of the statement that a break changes; none where it runs at import, outside functions."""
    inside = range(0)
    for function in ast.walk(ast.parse((ROOT / broken.file).read_bytes())):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for statement in (node for part in function.body for node in ast.walk(part) if isinstance(node, ast.stmt)):
            body = getattr(statement, "body", None)
            end = body[0].lineno - 1 if body else statement.end_lineno or 0
            if statement.lineno <= broken.line <= max(end, statement.lineno):
                inside = range(statement.lineno, max(end, statement.lineno) + 1)
    return inside


class Tests:
    """Which tests execute a line, and how long each takes: from a run of all tests with a context for each.

    Parameters
    ----------
    coverage, times : Path
        What coverage.py and ``--junitxml`` wrote.
    """

    def __init__(self, coverage: Path, times: Path) -> None:
        from coverage import CoverageData  # only runs need it

        self.data = CoverageData(str(coverage))
        self.data.read()
        names = self.data.measured_files()
        self.files = {file: name for file in sources() for name in names if name.endswith(f"/{file}")}
        self.seconds: dict[str, dict[str, float]] = {}  # test file -> test -> seconds
        self.failing: set[str] = set()  # tests that fail without a break, too
        for case in ElementTree.parse(times).getroot().iter("testcase"):
            file = (case.get("classname") or "").replace(".", "/") + ".py"
            self.seconds.setdefault(file, {})[f"{file}::{case.get('name')}"] = float(case.get("time") or 0)

    def executing(self, broken: Break) -> set[str] | None:
        """Tests that execute a break's statement; None where that isn't known, as it runs at import."""
        lines = _statement(broken)
        contexts = self.data.contexts_by_lineno(self.files[broken.file]) if broken.file in self.files else {}
        during = {context.partition("|")[0] for line in lines for context in contexts.get(line, [])}
        return None if not lines or during == {""} else during - {""}

    def chosen(self, broken: Break) -> dict[str, list[str]]:
        """Ring -> its tests for a break, in the order in which they run.

        Behind those that execute the statement come the others of the same files: tests of a file share fixtures, and
        a value that a function keeps is computed in the first of them.
        """
        executing = self.executing(broken)
        chosen = {}
        for ring, files in rings(broken.file).items():
            tests = {test: seconds for file in files for test, seconds in self.seconds.get(file, {}).items()}
            if executing is not None:
                with_one = {test.partition("::")[0] for test in executing}
                tests = {test: seconds for test, seconds in tests.items() if test.partition("::")[0] in with_one}
            order = sorted(tests, key=lambda test: (executing is not None and test not in executing, tests[test]))
            ends = itertools.accumulate(tests[test] for test in order)
            in_time = sum(end <= RING_SECONDS for end in ends)
            chosen[ring] = order[: min(max(1, in_time), RING_TESTS)]
        return chosen


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


def verdict(broken: Break, tests: Tests, tree: Path) -> str:
    """The ring that catches a break: "nearest", "room" or "networks"; "time" if it doesn't end; or SURVIVED."""
    chosen = tests.chosen(broken)
    path = tree / broken.file
    while names := [test for ring in chosen.values() for test in ring if test not in tests.failing]:
        path.write_bytes(broken.text())
        try:
            failed = failure(names, tree)
        except subprocess.TimeoutExpired:
            return "time"
        finally:
            shutil.copy(ROOT / broken.file, path)
        if failed is None:
            break
        if failure([failed], tree) is None:
            return next(ring for ring, of in chosen.items() if failed in of)
        tests.failing.add(failed)
    return SURVIVED


def failure(names: Sequence[str], tree: Path) -> str | None:
    """The first test that fails in a tree; where the tests can't begin, the first of all. None: all pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-n", "0", "--tb=no", *names]
    cache = tree.parent / "cache"
    environment = {
        "PYTHONPATH": f"{tree / 'src'}",
        "PYTHONDONTWRITEBYTECODE": "always",  # a break may be as long as what was there, and come in the same second
        "BITLOOM_CACHE": str(cache),
    }
    before = set(cache.rglob("*"))
    try:
        surroundings = {"cwd": tree, "env": os.environ | environment, "timeout": LIMIT_SECONDS}
        done = subprocess.run(command, capture_output=True, text=True, **surroundings)
    finally:
        for added in sorted(set(cache.rglob("*")) - before, reverse=True):
            added.rmdir() if added.is_dir() else added.unlink()
    if done.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (\S.*)", done.stdout, re.MULTILINE)
    said = failed[1] if failed else ""  # of a test, or of its file; none: a conftest can't be imported
    of_test = [name for name in names if f"{said} - ".startswith(f"{name} - ")]
    of_file = [name for name in names if name.startswith(f"{said.partition('::')[0].partition(' - ')[0]}::")]
    return (of_test or of_file or names)[0]


def main() -> None:
    """Try the breaks that have no result yet, and print the share that was caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description="Breaks that the tests must catch.")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, required=True, help="where the copy of the tree and the results are")
    parser.add_argument("--list", action="store_true", help="only print the breaks")
    asked = parser.parse_args()
    chosen = drawn(asked.count, asked.seed)
    if asked.list:
        for one in chosen:
            print(f"{one.file}:{one.line}: {one.old} -> {one.new}")
        return
    tree = copy_tree(asked.folder)
    results = asked.folder / "results.json"
    known = json.loads(results.read_text()) if results.exists() else []
    tests = Tests(asked.folder / "tests.coverage", asked.folder / "tests.xml")
    for number, one in enumerate(chosen[len(known) :], len(known) + 1):
        begun = time.monotonic()
        known.append({**asdict(one), "verdict": verdict(one, tests, tree)})
        results.write_text(json.dumps(known, indent=1))
        took = f"{time.monotonic() - begun:4.0f} s"
        change = f"{one.file}:{one.line}: {one.old} -> {one.new}"
        print(f"{number}/{len(chosen)} {known[-1]['verdict']:14} {took} {change}", flush=True)
    told = Counter(one["verdict"] for one in known)
    print(f"caught {len(known) - told[SURVIVED]} of {len(known)}: {dict(told)}")


if __name__ == "__main__":
    main()
