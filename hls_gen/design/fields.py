"""Fields: named bits of a register or of a row of a memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar


@dataclass(frozen=True)
class Field:
    """Bits ``lsb`` to ``lsb + width - 1`` of a register or of a memory row."""

    name: str
    """Name, used once in its register or memory."""
    lsb: int
    """Number of the lowest bit, >= 0."""
    width: int
    """Number of bits, >= 1."""
    description: str = ""
    """Meaning of the field, in a few words; may be empty."""

    def of(self, value: int) -> int:
        """Read this field.

        Parameters
        ----------
        value
            A whole register or row.

        Returns
        -------
        int
            The field's content, unsigned.
        """
        return (value >> self.lsb) & ((1 << self.width) - 1)

    def at(self, content: int) -> int:
        """Make a word that holds ``content`` in this field and 0 elsewhere.

        Parameters
        ----------
        content
            Number for the field; bits above its width are cut off, so that -1 gives all ones.

        Returns
        -------
        int
            The word.
        """
        return (content & ((1 << self.width) - 1)) << self.lsb


class Named(Protocol):
    """An object that has a name."""

    @property
    def name(self) -> str:
        """The name by which it is looked up."""


T = TypeVar("T", bound=Named)


def named(items: Sequence[T], name: str, what: str) -> T:
    """The item of that name; KeyError ``what must be one of ..., got name`` where there is none."""
    for item in items:
        if item.name == name:
            return item
    raise KeyError(f"{what} must be one of {', '.join(item.name for item in items)}, got {name!r}")
