"""How much memory and work an import may take: the budget that all passes of one import draw on.

A file of a few bytes may ask for a constant of millions of values, and for thousands of nodes that compute with it. So
code that makes many numbers draws on the budget first. The user can change limits (golden/limits.py); they grow with
the bytes of constants that a file really has.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from bitloom.golden.limits import FILE_TIMES, IMPORT_MB, IMPORT_STEPS, MB

from .errors import Unsupported

VALUE_BYTES = 8
"""Bytes of a value of a map or of a constant."""
FRACTION_BYTES = 128
"""Bytes of a fraction."""
FRACTION_STEPS = 1024
"""Steps to make a fraction of a number and to compute with it. A step takes about 10 ns."""
LEVEL_STEPS = 512
"""Steps for a boundary of a quantiser in all passes."""
FOLD_STEPS = 4
"""Steps to compute a value of a constant."""
STEPS_OF_BYTE = 2048
"""Steps that each byte of a file's constants allows in any case: a channel of a TFLite file has some 100 bytes and 255
boundaries."""


class OverBudget(Unsupported):
    """An import would take more than its budget; it ends at once."""


@dataclass
class ImportBudget:
    """Memory and steps that an import has taken so far."""

    size: int
    """Bytes of the constants that the file holds."""
    held: int = 0
    """Bytes of memory."""
    steps: int = 0
    """Steps of work."""

    def check(self) -> None:
        """Raise OverBudget if more was taken than the budget has."""
        try:
            IMPORT_MB.check("the network", self.held / MB, FILE_TIMES * self.size / MB)
            IMPORT_STEPS.check("the network", self.steps, STEPS_OF_BYTE * self.size)
        except ValueError as e:
            raise OverBudget(str(e)) from None


_current: ContextVar[ImportBudget | None] = ContextVar("budget", default=None)


@contextmanager
def budget(size: int) -> Iterator[None]:
    """Give the block a new budget, for a file with ``size`` bytes of constants."""
    token = _current.set(ImportBudget(size))
    try:
        yield
    finally:
        _current.reset(token)


def take(*, held: int = 0, steps: int = 0) -> None:
    """Draw on the budget, before the memory is taken and the work begins; without a budget nothing is limited.

    Parameters
    ----------
    held : int
        Bytes of memory that are held until the end.
    steps : int
        Steps of work.

    Raises
    ------
    OverBudget
        If less is left in the budget. One line with the limit, and how to set another limit.
    """
    current = _current.get()
    if current is not None:
        current.held += held
        current.steps += steps
        current.check()
