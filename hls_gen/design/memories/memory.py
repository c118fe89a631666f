"""A memory that LOAD packets fill: its rows, and the fields of a row."""

from functools import lru_cache
from typing import Any, NamedTuple

from bitloom.hls_gen.design.fields import Field, named

FieldWidths = list[tuple[str, int]]
"""Fields of a row: name and width of each, low bits first."""


class Rows(NamedTuple):
    """The rows of a memory."""

    depth: int
    """How many there are, >= 1."""
    fields: FieldWidths
    """Fields of each."""
    read_at_once: bool = False
    """Whether a row is there in the cycle in which its number is, so that the memory can't be block RAM; else it comes
    a cycle later."""
    registered: bool = False
    """Whether a row that is read at once goes into a register and nowhere else: synthesis makes block RAM of both if
    that costs less."""
    counted_as: str = ""
    """Name in `bitloom.hls_gen.compiler.needs.Needs` of the rows that a layer has here; "" of memories with a row for
    each layer, and of those that no layer fills."""
    based_by: tuple[str, str] | None = None
    """Memory, and its field, in which a layer says at which row its own rows begin here; None where no field says
    so."""
    copies: int = 1
    """Equal RAMs that hold the rows, each with a read port."""

    @property
    def width(self) -> int:
        """Bits of a row."""
        return sum(width for _, width in self.fields)


class Memory(NamedTuple):
    """A memory that LOAD packets fill."""

    name: str
    """Name, used once in an NPU."""
    id: int
    """Number by which packets name it, 0..255."""
    rows: Rows
    """What it holds."""
    fields: tuple[Field, ...]
    """Parts of a row, low bits first, without gaps."""

    @classmethod
    def of(cls, name: str, id: int, rows: Rows) -> "Memory":
        """The memory that has these rows."""
        return cls(name, id, rows, _side_by_side(tuple(rows.fields)))

    @property
    def depth(self) -> int:
        """Rows, >= 1."""
        return self.rows.depth

    @property
    def width(self) -> int:
        """Bits of a row."""
        last = self.fields[-1]
        return last.lsb + last.width

    @property
    def widths(self) -> dict[str, int]:
        """Width of each field by name, low bits first."""
        return {field.name: field.width for field in self.fields}

    @property
    def words(self) -> int:
        """32-bit words that hold a row: ceil(width / 32)."""
        return -(-self.width // 32)

    def field(self, name: str) -> Field:
        """The field of that name; KeyError, which lists the fields that there are, if there is none."""
        return named(self.fields, name, f"memory {self.name}: field")

    def to_dict(self) -> dict[str, Any]:
        """JSON data for the manifest."""
        fields = [[field.name, field.lsb, field.width] for field in self.fields]
        return {"name": self.name, "id": self.id, "depth": self.depth, "width": self.width, "fields": fields}


@lru_cache(maxsize=4096)
def _side_by_side(widths: tuple[tuple[str, int], ...]) -> tuple[Field, ...]:
    """Fields with these names and widths, low bits first. A search makes the same rows for many NPUs."""
    fields = []
    low = 0
    for name, width in widths:
        fields.append(Field(name, low, width))
        low += width
    return tuple(fields)
