"""The names of a module and what expressions over them mean: constant values, widths, and the bits they read."""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pyverilog.vparser import ast

from .findings import Finding


class Ref(NamedTuple):
    """Bits low..high of a signal. An array counts as one bit, whatever is read of it."""

    name: str
    low: int
    high: int

    @property
    def mask(self) -> int:
        """The bits as ones."""
        return ((1 << (self.high - self.low + 1)) - 1) << self.low


@dataclass(frozen=True)
class Signal:
    """A declared port, wire or register."""

    name: str
    width: int
    word: int
    """Bits of one word of an array, else the width."""
    port: str  # "input", "output" or ""
    array: bool

    @property
    def whole(self) -> Ref:
        """All of it."""
        return Ref(self.name, 0, self.width - 1)


class Target(NamedTuple):
    """Bits that an assignment writes: from bit ``offset`` of its right side on."""

    ref: Ref
    offset: int
    exact: bool  # False: which bit or word is known only at run time


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
}
_ONE_BIT = (
    ast.Eq,
    ast.NotEq,
    ast.Eql,
    ast.NotEql,
    ast.LessThan,
    ast.GreaterThan,
    ast.LessEq,
    ast.GreaterEq,
    ast.Land,
    ast.Lor,
    ast.Ulnot,
    ast.Uand,
    ast.Unand,
    ast.Uor,
    ast.Unor,
    ast.Uxor,
    ast.Uxnor,
)
_BY_LEFT = (ast.Sll, ast.Srl, ast.Sla, ast.Sra, ast.Power)
_BITWISE = (ast.And, ast.Or, ast.Xor, ast.Xnor)
SYSTEM_CALLS = ("countones", "signed", "unsigned", "clog2")


class Scope:
    """Constants, signals and functions of a module, with parameters at their defaults or as ``overrides`` say."""

    def __init__(self, module: ast.ModuleDef, overrides: Mapping[str, int] | None = None):
        self.name = module.name
        self.constants: dict[str, int] = {}
        self.signals: dict[str, Signal] = {}
        self.functions: dict[str, ast.Function] = {}
        self.findings: list[Finding] = []
        for declaration in _declarations(module):
            if isinstance(declaration, ast.Function):
                self.functions[declaration.name] = declaration
            elif isinstance(declaration, ast.Parameter):
                self._constant(declaration, overrides or {})
            else:
                self._signal(declaration)

    def report(self, signal: str, rule: str) -> None:
        """Add a finding, once."""
        finding = Finding(self.name, signal, rule)
        if finding not in self.findings:
            self.findings.append(finding)

    def _constant(self, node: ast.Parameter, overrides: Mapping[str, int]) -> None:
        free = not isinstance(node, ast.Localparam)
        value = overrides[node.name] if free and node.name in overrides else self.const(node.value.var)
        if value is None:
            self.report(node.name, "a parameter must be a constant")
        self.constants[node.name] = value or 0

    def _signal(self, node: ast.Variable) -> None:
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
        self.signals[node.name] = Signal(node.name, 1 if array else word, word, port, array)

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
        if type(e) in _FOLD:
            left, right = self.const(e.left), self.const(e.right)
            return None if left is None or right is None else _FOLD[type(e)](left, right)
        return None

    def width(self, e: ast.Node) -> int | None:
        """Self-determined width in bits; None where the text doesn't say (unsized constants, calls)."""
        if isinstance(e, ast.IntConst):
            match = _NUMBER.match(e.value)
            return int(match[1]) if match and match[1] else None
        if isinstance(e, ast.Identifier):
            return self.signals[e.name].word if e.name in self.signals else None
        if isinstance(e, ast.Pointer):
            return self.signals[e.var.name].word if self._is_array(e.var) else 1
        if isinstance(e, ast.Partselect):
            msb, lsb = self.const(e.msb), self.const(e.lsb)
            return None if msb is None or lsb is None else msb - lsb + 1
        if isinstance(e, ast.Concat):
            return _all_known(sum, *(self.width(part) for part in e.list))
        if isinstance(e, ast.Repeat):
            times, each = self.const(e.times), self.width(e.value)
            return None if times is None or each is None else times * each
        if isinstance(e, _ONE_BIT):
            return 1
        if isinstance(e, ast.Cond):
            return _all_known(max, self.width(e.true_value), self.width(e.false_value))
        if isinstance(e, _BY_LEFT):
            return self.width(e.left)
        if isinstance(e, ast.UnaryOperator):
            return self.width(e.right)
        if isinstance(e, ast.Operator):
            return _all_known(max, self.width(e.left), self.width(e.right))
        if isinstance(e, ast.FunctionCall) and e.name.name in self.functions:
            width = self.functions[e.name.name].retwidth
            return 1 if width is None else (self.const(width.msb) or 0) + 1
        if isinstance(e, ast.SystemCall) and e.syscall in ("signed", "unsigned"):
            return self.width(e.args[0])
        return None

    def _is_array(self, e: ast.Node) -> bool:
        return isinstance(e, ast.Identifier) and e.name in self.signals and self.signals[e.name].array

    def refs(self, e: ast.Node) -> Iterator[Ref]:
        """Every bit that ``e`` reads."""
        if isinstance(e, ast.Identifier):
            if e.name in self.signals:
                yield self.signals[e.name].whole
            elif e.name not in self.constants:
                self.report(e.name, "must be declared")
        elif isinstance(e, (ast.Pointer, ast.Partselect)):
            yield from self._selected(e)
        elif isinstance(e, ast.FunctionCall):
            if e.name.name not in self.functions:
                self.report(e.name.name, "must be declared")
            for argument in e.args:
                yield from self.refs(argument)
        else:
            if isinstance(e, ast.SystemCall) and e.syscall not in SYSTEM_CALLS:
                self.report(f"${e.syscall}", f"system calls must be one of {', '.join('$' + s for s in SYSTEM_CALLS)}")
            for child in e.children():
                yield from self.refs(child)

    def _selected(self, e: ast.Pointer | ast.Partselect) -> Iterator[Ref]:
        """Bits read by ``v[i]``, ``v[a:b]``, ``array[i]``, ``array[i][j]`` and ``array[i][a:b]``."""
        if not isinstance(e.var, ast.Identifier) or self._is_array(e.var):
            yield from self.refs(e.var)
        bounds = (e.ptr,) if isinstance(e, ast.Pointer) else (e.msb, e.lsb)
        for bound in bounds:
            yield from self.refs(bound)
        if isinstance(e.var, ast.Identifier) and not self._is_array(e.var):
            yield self._slice(e.var.name, *(self.const(bound) for bound in bounds))

    def _slice(self, name: str, high: int | None, low: int | None = None, /) -> Ref:
        """``name[high:low]``; all of it where a bound is no constant."""
        if name not in self.signals:
            self.report(name, "must be declared")
            return Ref(name, 0, 0)
        whole = self.signals[name].whole
        if high is None:
            return whole
        low = high if low is None else low
        if not 0 <= low <= high <= whole.high:
            self.report(name, f"bits {high}:{low} are outside of {whole.high}:0")
            return whole
        return Ref(name, low, high)

    def bits(self, e: ast.Node, low: int, high: int) -> list[Ref]:
        """The bits that bits low..high of ``e`` depend on; more than that where bits can't be followed one by one."""
        if isinstance(e, ast.Rvalue):
            return self.bits(e.var, low, high)
        width = self.width(e)
        if width is None:
            return list(self.refs(e))
        low, high = min(low, width - 1), min(high, width - 1)  # beyond: zeros, or copies of the sign
        plain = isinstance(e.var if isinstance(e, ast.Partselect) else e, ast.Identifier)
        if plain and not self._is_array(e):
            return [Ref(ref.name, ref.low + low, ref.low + high) for ref in self.refs(e)]
        if isinstance(e, ast.Concat):
            found, base = [], 0
            for part in reversed(e.list):
                size = self.width(part) or 0
                if low < base + size and high >= base:
                    found += self.bits(part, max(low - base, 0), min(high - base, size - 1))
                base += size
            return found
        if isinstance(e, ast.Cond):
            return [*self.refs(e.cond), *self.bits(e.true_value, low, high), *self.bits(e.false_value, low, high)]
        if isinstance(e, _BITWISE):
            return self.bits(e.left, low, high) + self.bits(e.right, low, high)
        if isinstance(e, ast.Unot):
            return self.bits(e.right, low, high)
        return list(self.refs(e))

    def targets(self, left: ast.Node, line: int) -> list[Target]:
        """What a left side writes, low bits first."""
        if isinstance(left, ast.Lvalue):
            return self.targets(left.var, line)
        found: list[Target] = []
        base = 0
        for part in reversed(left.list) if isinstance(left, ast.Concat) else [left]:
            if isinstance(part, ast.Concat):
                inner = self.targets(part, line)
                found += [Target(t.ref, t.offset + base, t.exact) for t in inner]
                base += self.width(part) or 0
                continue
            name = _root(part)
            if name not in self.signals:
                self.report(name or f"line {line}", "must be a declared signal to be written")
                continue
            exact = isinstance(part, ast.Identifier) or (
                isinstance(part.var, ast.Identifier)
                and not self._is_array(part.var)
                and self.const(part.ptr if isinstance(part, ast.Pointer) else part.msb) is not None
            )
            ref = self.signals[name].whole
            if exact and not isinstance(part, ast.Identifier):
                bounds = (part.ptr,) if isinstance(part, ast.Pointer) else (part.msb, part.lsb)
                ref = self._slice(name, *(self.const(bound) for bound in bounds))
            found.append(Target(ref, base, exact))
            base += self.width(part) or 0
        return found

    def index_refs(self, left: ast.Node) -> Iterator[Ref]:
        """Bits read on a left side: indices into vectors and arrays."""
        if isinstance(left, ast.Pointer):
            yield from self.refs(left.ptr)
        elif isinstance(left, ast.Partselect):
            yield from (*self.refs(left.msb), *self.refs(left.lsb))
        for child in left.children():
            if isinstance(child, (ast.Concat, ast.Pointer, ast.Partselect)):
                yield from self.index_refs(child)


def _all_known(combine: Callable[[list[int]], int], *values: int | None) -> int | None:
    """``combine`` of the values, None if one is unknown."""
    known = [value for value in values if value is not None]
    return combine(known) if len(known) == len(values) else None


def _root(e: ast.Node) -> str:
    """Name of the signal that a selection selects from."""
    while isinstance(e, (ast.Pointer, ast.Partselect)):
        e = e.var
    return e.name if isinstance(e, ast.Identifier) else ""


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
