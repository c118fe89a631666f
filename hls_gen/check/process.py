"""Always blocks: how each begins, what may stand in one, what it writes and from what."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from pyverilog.vparser import ast

from .bits import index_refs, refs, targets
from .scope import Ref, Scope


@dataclass
class AlwaysBlock:
    """The signals that an always block writes, and those on which they depend."""

    written: dict[str, int] = field(default_factory=dict)
    """Name of a signal -> its bits that the block writes at all, as a mask."""
    depends: set[Ref] = field(default_factory=set)
    """Bits that what is written depends on in the same cycle; none in a clocked block. In a combinational one each
    signal counts as made from all that the block reads."""


def process(scope: Scope, always: ast.Always, clock: str) -> AlwaysBlock:
    """Read an always block.

    Parameters
    ----------
    scope
        Names of the module, to which broken rules are reported.
    always
        The block.
    clock
        Name of the clock.

    Returns
    -------
    AlwaysBlock
        Signals that the block writes.
    """
    kinds = [(s.type, s.sig.name if isinstance(s.sig, ast.Identifier) else "") for s in always.sens_list.list]
    combinational = kinds == [("all", "")]
    if type(always) is not ast.Always or not (combinational or kinds == [("posedge", clock)]):
        events = " or ".join(f"{kind} {name}".strip() for kind, name in kinds)
        scope.report("always", f"must be @(posedge {clock}) or @(*), got @({events})")
    result = AlwaysBlock()
    for node in _statements(scope, always.statement):
        if combinational:
            result.depends.update(_reads(scope, node))
        if not isinstance(node, ast.Substitution):
            continue
        if node.ldelay or node.rdelay:
            scope.report("always", "delays are for test benches")
        for target in targets(scope, node.left):
            name = target.ref.name
            mask = target.ref.mask
            result.written[name] = result.written.get(name, 0) | mask
            if combinational and not (target.exact and target.ref == scope.signals[name].whole):
                scope.report(name, "a combinational always must assign it as a whole, else some bits may be a latch")
    return result


def _reads(scope: Scope, node: ast.Node) -> Iterator[Ref]:
    """Bits that a condition or an assignment reads."""
    if isinstance(node, ast.Substitution):
        yield from refs(scope, node.right)
        yield from index_refs(scope, node.left)
    else:
        yield from refs(scope, node)


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
