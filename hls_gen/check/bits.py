"""The bits that expressions read and that left sides write.

``bits`` follows single bits, so that a bus of valid and ready, packed into one vector, isn't taken for a path between
the two. Names that nobody declared and bits outside of a vector are left out or widened in silence: Verilator reports
them.
"""

from collections.abc import Iterator
from typing import NamedTuple

from pyverilog.vparser import ast

from .scope import Ref, Scope

_BITWISE = (ast.And, ast.Or, ast.Xor, ast.Xnor)


class AssignedBits(NamedTuple):
    """Bits that an assignment writes."""

    ref: Ref
    """The bits; the whole signal where ``exact`` is false."""
    offset: int
    """Bit of the right side that goes to the lowest of them."""
    exact: bool
    """Whether the text says which bits they are; false for ``v[i] = ...`` and for words of an array."""


def refs(scope: Scope, e: ast.Node) -> Iterator[Ref]:
    """Every bit that ``e`` reads. Where ``e`` selects, that is more than it depends on."""
    if isinstance(e, ast.Identifier):
        if e.name in scope.signals:
            yield scope.signals[e.name].whole
    elif isinstance(e, (ast.Pointer, ast.Partselect)):
        yield from _selected(scope, e)
    else:
        for child in e.children():
            yield from refs(scope, child)


def _selected(scope: Scope, e: ast.Pointer | ast.Partselect) -> Iterator[Ref]:
    """Bits read by ``v[i]``, ``v[a:b]``, ``array[i]``, ``array[i][j]`` and ``array[i][a:b]``."""
    vector = isinstance(e.var, ast.Identifier) and not scope.is_array(e.var)
    if not vector:
        yield from refs(scope, e.var)
    for bound in _bounds(e):
        yield from refs(scope, bound)
    if vector and e.var.name in scope.signals:
        yield _slice(scope, e.var.name, *(scope.const(bound) for bound in _bounds(e)))


def _bounds(e: ast.Pointer | ast.Partselect) -> tuple[ast.Node, ...]:
    """The expressions between the brackets: one index, or the highest and the lowest bit."""
    return (e.ptr,) if isinstance(e, ast.Pointer) else (e.msb, e.lsb)


def _slice(scope: Scope, name: str, high: int | None, low: int | None = None, /) -> Ref:
    """``name[high:low]``; all of it where a bound is no constant or lies outside."""
    whole = scope.signals[name].whole
    if high is None:
        return whole
    low = high if low is None else low
    return Ref(name, low, high) if 0 <= low <= high <= whole.high else whole


def bits(scope: Scope, e: ast.Node, low: int, high: int) -> list[Ref]:
    """The bits that some bits of an expression depend on.

    Parameters
    ----------
    scope
        Names of the module.
    e
        The expression.
    low, high
        The bits asked for, both inclusive, from 0.

    Returns
    -------
    list of Ref
        At least what they depend on; all that ``e`` reads where bits can't be followed one by one.
    """
    if isinstance(e, ast.Rvalue):
        return bits(scope, e.var, low, high)
    if isinstance(e, ast.Cond):
        either = bits(scope, e.true_value, low, high) + bits(scope, e.false_value, low, high)
        return [*refs(scope, e.cond), *either]
    if isinstance(e, _BITWISE):
        return bits(scope, e.left, low, high) + bits(scope, e.right, low, high)
    if isinstance(e, ast.Unot):
        return bits(scope, e.right, low, high)
    width = scope.width(e)
    if width is None:
        return list(refs(scope, e))
    low, high = min(low, width - 1), min(high, width - 1)  # beyond: zeros, or copies of the sign
    if isinstance(e, ast.Concat):
        references = []
        base = 0
        for part in reversed(e.list):
            size = scope.width(part) or 0
            if low < base + size and high >= base:
                references += bits(scope, part, max(low - base, 0), min(high - base, size - 1))
            base += size
        return references
    plain = isinstance(e.var if isinstance(e, ast.Partselect) else e, ast.Identifier)
    if plain and not scope.is_array(e):
        return [Ref(ref.name, ref.low + low, ref.low + high) for ref in refs(scope, e)]
    return list(refs(scope, e))


def targets(scope: Scope, left: ast.Node) -> list[AssignedBits]:
    """The bits that a left side writes, low bits first; names that nobody declared are left out."""
    if isinstance(left, ast.Lvalue):
        return targets(scope, left.var)
    written: list[AssignedBits] = []
    base = 0
    for part in reversed(left.list) if isinstance(left, ast.Concat) else [left]:
        if isinstance(part, ast.Concat):
            written += [AssignedBits(t.ref, t.offset + base, t.exact) for t in targets(scope, part)]
        elif (name := _root(part)) in scope.signals:
            written.append(_target(scope, part, name, base))
        base += scope.width(part) or 0
    return written


def _target(scope: Scope, part: ast.Node, name: str, base: int) -> AssignedBits:
    """The bits that one signal or selection on a left side writes, from bit ``base`` of the right side on."""
    whole = scope.signals[name].whole
    if isinstance(part, ast.Identifier):
        return AssignedBits(whole, base, exact=True)
    constants = [scope.const(bound) for bound in _bounds(part)]
    exact = isinstance(part.var, ast.Identifier) and not scope.is_array(part.var) and constants[0] is not None
    return AssignedBits(_slice(scope, name, *constants) if exact else whole, base, exact)


def index_refs(scope: Scope, left: ast.Node) -> Iterator[Ref]:
    """Bits read on a left side: indices into vectors and arrays."""
    if isinstance(left, (ast.Pointer, ast.Partselect)):
        for bound in _bounds(left):
            yield from refs(scope, bound)
    for child in left.children():
        if isinstance(child, (ast.Concat, ast.Pointer, ast.Partselect)):
            yield from index_refs(scope, child)


def _root(e: ast.Node) -> str:
    """Name of the signal that a selection selects from."""
    while isinstance(e, (ast.Pointer, ast.Partselect)):
        e = e.var
    return e.name if isinstance(e, ast.Identifier) else ""
