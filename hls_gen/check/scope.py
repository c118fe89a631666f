"""The names of a module, and the constant values and widths of expressions over them.

A module with parameters has a scope for each choice of their values that a design's instances make.
"""

import operator
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pyverilog.vparser import ast

from .findings import Finding


class Ref(NamedTuple):
    """Bits of a signal. An array counts as one bit, whatever is read of it."""

    name: str
    """The signal."""
    low: int
    high: int
    """low, high: lowest and highest bit, both inclusive."""

    @property
    def mask(self) -> int:
        """The bits as ones."""
        return ((1 << (self.high - self.low + 1)) - 1) << self.low


@dataclass(frozen=True)
class DeclaredSignal:
    """A declared port, wire or register."""

    name: str
    """Its name."""
    width: int
    """Bits; 1 for an array."""
    word: int
    """Bits of one word of an array, else the width."""
    port: str
    """"input", "output", or "" for a wire or register inside."""
    array: bool
    """Whether it is an array of words."""
    signed: bool
    """Whether it is declared as signed."""

    @property
    def whole(self) -> Ref:
        """All of it."""
        return Ref(self.name, 0, self.width - 1)


_NUMBER = re.compile(r"(?:(\d*)'[sS]?([bBoOdDhH]))?([0-9a-fA-F_]+)$")
_BASES = {"b": 2, "o": 8, "d": 10, "h": 16}
_FOLD = {
    ast.Plus: operator.add,
    ast.Minus: operator.sub,
    ast.Times: operator.mul,
    ast.Divide: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Sll: operator.lshift,
    ast.Srl: operator.rshift,
    ast.Power: operator.pow,
    ast.LessThan: operator.lt,
    ast.GreaterThan: operator.gt,
    ast.LessEq: operator.le,
    ast.GreaterEq: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


class Scope:
    """Constants, signals and functions of a module.

    Attributes
    ----------
    name : str
        Name of the module, with the parameters that instances give a value: ``fifo #(WIDTH = 7, DEPTH = 16)``.
    constants : dict
        Value of each parameter and constant by name.
    signals : dict
        Ports, wires and registers by name.
    functions : set of str
        Names of functions.
    findings : list of Finding
        Findings that were reported so far.

    Parameters
    ----------
    module
        Syntax tree of the module.
    values
        Values that instances give parameters, by name; other parameters are at their defaults.
    """

    def __init__(self, module: ast.ModuleDef, values: Mapping[str, int] | None = None):
        self._values = values or {}
        given = ", ".join(f"{name} = {value}" for name, value in self._values.items())
        self.name = f"{module.name} #({given})" if given else module.name
        self.constants: dict[str, int] = {}
        self.signals: dict[str, DeclaredSignal] = {}
        self.functions: set[str] = set()
        self.findings: list[Finding] = []
        for declaration in _declarations(module):
            if isinstance(declaration, ast.Function):
                self.functions.add(declaration.name)
            elif isinstance(declaration, ast.Parameter):
                self._constant(declaration)
            else:
                self._signal(declaration)

    def report(self, signal: str, rule: str) -> None:
        """Add a finding, once."""
        finding = Finding(self.name, signal, rule)
        if finding not in self.findings:
            self.findings.append(finding)

    def _constant(self, node: ast.Parameter) -> None:
        """A parameter must have a value that is known here, since widths and bits are told by it."""
        value = self._values[node.name] if node.name in self._values else self.const(node.value.var)
        if value is None:
            self.report(node.name, "a parameter must be a constant")
        self.constants[node.name] = value or 0

    def _signal(self, node: ast.Variable) -> None:
        """Bits are counted from 0, and a port has one direction."""
        if not isinstance(node, (ast.Input, ast.Output, ast.Wire, ast.Reg)):
            self.report(node.name, f"must be an input, output, wire or reg, got {type(node).__name__.lower()}")
        port = {ast.Input: "input", ast.Output: "output"}.get(type(node), "")
        known = self.signals.get(node.name)
        if known and not port:  # "output reg" and the like come as two declarations
            port = known.port
        word = 1 if node.width is None else (self.const(node.width.msb) or 0) + 1
        if node.width is not None and (self.const(node.width.msb) is None or self.const(node.width.lsb) != 0):
            self.report(node.name, "its range must be [constant:0]")
        array = node.dimensions is not None
        signed = bool(node.signed) or (known is not None and known.signed)
        self.signals[node.name] = DeclaredSignal(node.name, 1 if array else word, word, port, array, signed)

    def const(self, e: ast.Node) -> int | None:
        """Value of a constant expression, else None."""
        if isinstance(e, ast.IntConst):
            match = _NUMBER.match(e.value)
            return int(match[3].replace("_", ""), _BASES[(match[2] or "d").lower()]) if match else None
        if isinstance(e, ast.Identifier):
            return self.constants.get(e.name)
        if isinstance(e, ast.Uminus):
            value = self.const(e.right)
            return None if value is None else -value
        if isinstance(e, ast.Cond):
            condition = self.const(e.cond)
            return None if condition is None else self.const(e.true_value if condition else e.false_value)
        if isinstance(e, ast.SystemCall) and e.syscall == "clog2" and len(e.args) == 1:
            value = self.const(e.args[0])
            return None if value is None else max(value - 1, 0).bit_length()
        if isinstance(e, ast.Partselect):
            parts = [self.const(part) for part in (e.var, e.msb, e.lsb)]
            return None if None in parts else parts[0] >> parts[2] & ((1 << parts[1] - parts[2] + 1) - 1)
        if type(e) in _FOLD:
            left = self.const(e.left)
            right = self.const(e.right)
            return None if left is None or right is None else int(_FOLD[type(e)](left, right))
        return None

    def width(self, e: ast.Node) -> int | None:
        """Bits of a sized constant, signal, selection or concatenation; None for another expression."""
        if isinstance(e, ast.IntConst):
            match = _NUMBER.match(e.value)
            return int(match[1]) if match and match[1] else None
        if isinstance(e, ast.Identifier):
            return self.signals[e.name].word if e.name in self.signals else None
        if isinstance(e, ast.Pointer):
            return self.signals[e.var.name].word if self.is_array(e.var) else 1
        if isinstance(e, ast.Partselect):
            msb = self.const(e.msb)
            lsb = self.const(e.lsb)
            return None if msb is None or lsb is None else msb - lsb + 1
        if isinstance(e, ast.Concat):
            parts = [self.width(part) for part in e.list]
            return None if None in parts else sum(parts)
        return None

    def is_array(self, e: ast.Node) -> bool:
        """Whether ``e`` is the name of an array."""
        return isinstance(e, ast.Identifier) and e.name in self.signals and self.signals[e.name].array


def _declarations(module: ast.ModuleDef) -> Iterator[ast.Node]:
    """Parameters, ports, signals and functions, in order."""
    for parameters in module.paramlist.params:
        yield from parameters.list
    for port in module.portlist.ports if module.portlist else ():
        if isinstance(port, ast.Ioport):
            yield port.first
            if port.second is not None:
                yield port.second
    for item in module.items:
        if isinstance(item, ast.Decl):
            yield from (d for d in item.list if isinstance(d, (ast.Parameter, ast.Variable)))
        elif isinstance(item, ast.Function):
            yield item
