"""Always blocks: what they write, on which paths, and from what."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from pyverilog.vparser import ast

from .scope import Ref, Scope, Target

Refs = frozenset[Ref]


class Value(NamedTuple):
    """A target of a combinational block so far: the bits assigned on every path, and what its value depends on."""

    assigned: int = 0
    depends: Refs = frozenset()


Values = dict[str, Value]


@dataclass
class Process:
    """One always block."""

    clocked: bool
    line: int
    written: dict[str, int] = field(default_factory=dict)
    """Bits that are written at all, as a mask, by signal."""
    reads: set[Ref] = field(default_factory=set)
    values: Values = field(default_factory=dict)


def process(scope: Scope, always: ast.Always, clock: str) -> Process:
    """Read an always block; broken rules go to ``scope``."""
    sensitivity = always.sens_list.list
    kinds = [(s.type, s.sig.name if isinstance(s.sig, ast.Identifier) else "") for s in sensitivity]
    found = Process(clocked=kinds != [("all", "")], line=always.lineno)
    if type(always) is not ast.Always or kinds not in ([("all", "")], [("posedge", clock)]):
        events = " or ".join(f"{kind} {name}".strip() for kind, name in kinds)
        scope.report("always", f"must be @(posedge {clock}) or @(*), got @({events})")
    for statement in _statements(scope, always.statement):
        _assignment(scope, statement, found)
    if not found.clocked:
        found.values = _follow(scope, always.statement, {}, frozenset())
        for name, written in found.written.items():
            missing = written & ~found.values[name].assigned
            if missing:
                scope.report(name, "a combinational always must assign it on every path, else it is a latch")
    return found


def _statements(scope: Scope, node: ast.Node | None) -> Iterator[ast.Node]:
    """Assignments and conditions below ``node``."""
    if node is None:
        return
    if isinstance(node, ast.Block):
        for statement in node.statements:
            yield from _statements(scope, statement)
    elif isinstance(node, ast.IfStatement):
        yield node.cond
        yield from _statements(scope, node.true_statement)
        yield from _statements(scope, node.false_statement)
    elif isinstance(node, ast.CaseStatement):
        yield node.comp
        for case in node.caselist:
            yield from case.cond or ()
            yield from _statements(scope, case.statement)
    elif isinstance(node, ast.SingleStatement) and isinstance(node.statement, ast.DelayStatement):
        scope.report("always", "delays are for test benches")
    elif isinstance(node, (ast.BlockingSubstitution, ast.NonblockingSubstitution)):
        yield node
    else:
        what = node.statement if isinstance(node, ast.SingleStatement) else node
        scope.report("always", f"statements must be assignments, if or case, got {type(what).__name__}")


def _assignment(scope: Scope, node: ast.Node, found: Process) -> None:
    """Account for one assignment or condition."""
    if not isinstance(node, ast.Substitution):
        found.reads.update(scope.refs(node))
        return
    if node.ldelay or node.rdelay:
        scope.report("always", "delays are for test benches")
    found.reads.update(scope.refs(node.right))
    found.reads.update(scope.index_refs(node.left))
    blocking = isinstance(node, ast.BlockingSubstitution)
    for target in scope.targets(node.left, node.lineno):
        name = target.ref.name
        found.written[name] = found.written.get(name, 0) | target.ref.mask
        if found.clocked and blocking:
            scope.report(name, "a clocked always must assign with <=, got =")
        if not found.clocked and not blocking:
            scope.report(name, "a combinational always must assign with =, got <=")


def _follow(scope: Scope, node: ast.Node | None, before: Values, guard: Refs) -> Values:
    """Values after ``node``, where ``guard`` decides whether it runs."""
    if isinstance(node, ast.Block):
        for statement in node.statements:
            before = _follow(scope, statement, before, guard)
        return before
    if isinstance(node, ast.IfStatement):
        guard = guard | _inside(scope.refs(node.cond), before)
        return _merge([_follow(scope, branch, before, guard) for branch in (node.true_statement, node.false_statement)])
    if isinstance(node, ast.CaseStatement):
        conditions = [c for case in node.caselist for c in case.cond or ()]
        guard = guard | _inside((r for e in (node.comp, *conditions) for r in scope.refs(e)), before)
        branches = [_follow(scope, case.statement, before, guard) for case in node.caselist]
        return _merge(branches if _complete(scope, node) else [*branches, before])
    if isinstance(node, ast.Substitution):
        return _assign(scope, node, before, guard)
    return before


def _assign(scope: Scope, node: ast.Substitution, before: Values, guard: Refs) -> Values:
    after = dict(before)
    indices = _inside(scope.index_refs(node.left), before)
    for target in scope.targets(node.left, node.lineno):
        old = before.get(target.ref.name, Value())
        depends = guard | indices | _inside(_source(scope, node.right, target), before)
        mask = target.ref.mask if target.exact else 0
        if mask != scope.signals[target.ref.name].whole.mask:
            depends |= old.depends
        after[target.ref.name] = Value(old.assigned | mask, depends)
    return after


def _source(scope: Scope, right: ast.Node, target: Target) -> Iterable[Ref]:
    if not target.exact:
        return scope.refs(right)
    return scope.bits(right, target.offset, target.offset + target.ref.high - target.ref.low)


def _inside(refs: Iterable[Ref], values: Values) -> Refs:
    """``refs`` with what the block itself has assigned before replaced by what that depends on."""
    found: set[Ref] = set()
    for ref in refs:
        value = values.get(ref.name, Value())
        found |= value.depends
        if ref.mask & ~value.assigned:
            found.add(ref)
    return frozenset(found)


def _merge(branches: list[Values]) -> Values:
    """Values after one of several branches."""
    merged: Values = {}
    for name in {name: None for branch in branches for name in branch}:
        values = [branch.get(name, Value()) for branch in branches]
        assigned = values[0].assigned
        for value in values[1:]:
            assigned &= value.assigned
        merged[name] = Value(assigned, frozenset().union(*(value.depends for value in values)))
    return merged


def _complete(scope: Scope, node: ast.CaseStatement) -> bool:
    """One of the cases is always taken: there is a default, or all values are named."""
    if any(case.cond is None for case in node.caselist):
        return True
    values = {scope.const(c) for case in node.caselist for c in case.cond}
    width = scope.width(node.comp)
    return type(node) is ast.CaseStatement and None not in values and width is not None and len(values) == 1 << width
