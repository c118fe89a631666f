"""Numbers of numpy are numbers: a field may be given as ``numpy.int64(3)`` or ``numpy.True_``, and holds 3 or True."""

from typing import Any

import numpy as np

from .names import shown

_PLAIN = frozenset({int, bool, str, float, type(None)})
"""Types of values that stay as they are."""


def plain(value: Any) -> Any:
    """``value`` with Python's integers and truth values in place of numpy's, in tuples and lists too; else as it is."""
    if type(value) in _PLAIN or (type(value) is tuple and _PLAIN.issuperset(map(type, value))):
        return value
    if isinstance(value, (np.integer, np.bool_)):
        return value.item()
    if type(value) in (tuple, list):
        return type(value)(map(plain, value))
    return value


def integer(what: str, value: object) -> int:
    """A number as Python's integer; ValueError, which begins with ``what``, where it is none. True is none."""
    number = plain(value)
    if type(number) is not int:
        raise ValueError(f"{what} must be an integer, got {shown(value)}")
    return number


def make_fields_plain(item: Any) -> None:
    """Put Python's integers and truth values in place of numpy's into the fields of a dataclass, a frozen one too.

    A numpy integer would wrap around where Python's grows, and JSON can't hold it.
    """
    for name, value in vars(item).items():
        if (other := plain(value)) is not value:
            object.__setattr__(item, name, other)
