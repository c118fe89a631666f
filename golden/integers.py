"""Integers of numpy are integers: a field of a description may be given as ``numpy.int64(3)`` and holds 3."""

from dataclasses import fields
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """``value`` with Python's integers in place of numpy's, in tuples and lists too; anything else as it is."""
    if isinstance(value, np.integer):
        return int(value)
    if type(value) in (tuple, list):
        return type(value)(map(plain, value))
    return value


def make_fields_plain(item: Any) -> None:
    """Put Python's integers in place of numpy's into the fields of a dataclass, a frozen one too.

    A numpy integer would wrap around where Python's grows, and JSON can't hold it.
    """
    for one in fields(item):
        value = getattr(item, one.name)
        if isinstance(value, (np.integer, tuple, list)):
            object.__setattr__(item, one.name, plain(value))
