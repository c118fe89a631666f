"""Constructs that may not stand in a module: each is legal Verilog, so Verilator accepts it."""

import re
from collections.abc import Iterable, Iterator

from pyverilog.vparser import ast

from .scope import Scope

_NUMBERED = re.compile("Tmp_|_tmp")
_ITEMS = (ast.Decl, ast.Assign, ast.Always, ast.InstanceList, ast.Function, ast.Pragma)
SYSTEM_CALLS = ("countones", "signed", "unsigned", "clog2")
"""System functions that depend on their arguments alone, so that simulation and synthesis agree."""


def check_constructs(scope: Scope, module: ast.ModuleDef) -> None:
    """Report items, system calls, delays, functions, instances and names that are not allowed.

    Statements of ``always`` are held to their rules by ``process.py``.

    Parameters
    ----------
    scope
        Names of the module, to which findings are reported.
    module
        Its syntax tree.
    """
    for item in module.items:
        if not isinstance(item, _ITEMS):
            kind = {"Initial": "initial blocks are", "GenerateStatement": "generate is"}.get(type(item).__name__)
            scope.report("", f"{kind or type(item).__name__ + ' is'} not allowed in generated Verilog")
            continue
        for node in _below([item]):
            if isinstance(node, ast.SystemCall) and node.syscall not in SYSTEM_CALLS:
                names = ", ".join("$" + name for name in SYSTEM_CALLS)
                scope.report(f"${node.syscall}", f"system calls must be one of {names}")
            elif isinstance(node, ast.Assign) and (node.ldelay or node.rdelay):
                scope.report("assign", "delays are for test benches")
        if isinstance(item, ast.Function):
            _function(scope, item)
    instances = [i for item in module.items if isinstance(item, ast.InstanceList) for i in item.instances]
    for instance in instances:
        if instance.array is not None:
            scope.report(instance.name, "arrays of instances are not allowed in generated Verilog")
        if any(port.portname is None for port in instance.portlist):
            scope.report(instance.name, "ports must be connected by name")
    for name in [*scope.signals, *scope.functions, *(instance.name for instance in instances)]:
        if _NUMBERED.search(name):
            scope.report(name, "names must say what they are, got a numbered one")


def _function(scope: Scope, node: ast.Function) -> None:
    """A function must be a function of its inputs, so that a call depends on its arguments alone."""
    local = {d.name for s in node.statement if isinstance(s, ast.Decl) for d in s.list} | {node.name}
    for name in sorted(identifiers(node.statement) - local - set(scope.constants) - set(scope.functions)):
        scope.report(node.name, f"a function must read its inputs only, got {name}")


def _below(nodes: Iterable[ast.Node]) -> Iterator[ast.Node]:
    """All nodes of syntax trees but what stands in single statements, such as ``$display(...)``."""
    left = list(nodes)
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, ast.SingleStatement):
            left += node.children()


def identifiers(nodes: Iterable[ast.Node]) -> set[str]:
    """Names of all identifiers among the nodes of `_below`."""
    return {node.name for node in _below(nodes) if isinstance(node, ast.Identifier)}
