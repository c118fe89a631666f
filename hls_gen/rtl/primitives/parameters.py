"""Values of expressions of a module's parameters, such as the widths of ports."""

from collections.abc import Callable, Mapping
from typing import Any

from veriloggen import Mux
from veriloggen.core import vtypes as vt

Expression = Any
"""A number, or a Veriloggen expression of parameters."""
_OPERATORS: dict[type, Callable[[int, int], int]] = {
    vt.Plus: lambda a, b: a + b,
    vt.Minus: lambda a, b: a - b,
    vt.Times: lambda a, b: a * b,
    vt.GreaterThan: lambda a, b: int(a > b),
}


def value_of(e: Expression, values: Mapping[str, int]) -> int:
    """The value of ``e``, where parameters have ``values``.

    Raises
    ------
    TypeError
        If ``e`` has an operator that no module's parameters need yet.
    """
    if isinstance(e, int):
        return e
    if isinstance(e, vt.Int):
        return e.value
    if isinstance(e, vt.Parameter):
        return values[e.name]
    if isinstance(e, vt.Cond):
        return value_of(e.true_value if value_of(e.condition, values) else e.false_value, values)
    if isinstance(e, vt.SystemTask) and e.cmd == "clog2":
        return (value_of(e.args[0], values) - 1).bit_length()
    if type(e) in _OPERATORS:
        return _OPERATORS[type(e)](value_of(e.left, values), value_of(e.right, values))
    raise TypeError(f"value of {type(e).__name__} is unknown")


def clog2(e: Expression) -> Expression:
    """$clog2: bits that numbers from 0 to ``e`` - 1 take, 0 for one number."""
    return vt.SystemTask("clog2", e)


def row_width(depth: Expression) -> Expression:
    """Bits of a row's number in a memory of ``depth`` rows, at least 1."""
    return Mux(depth > 1, clog2(depth), 1)
