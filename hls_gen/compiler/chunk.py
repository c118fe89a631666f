"""Chunks: how much of a map one of the two buffers between neighbours takes before both change over (spec D4).

    tuples:4     four tuples, fewer where a buffer holds fewer
    rows         as many full rows as a buffer holds: the step follows from the buffers
    rows:2       two full rows, all columns and channels; the buffers follow from the step
    columns:2    two full columns, all rows and channels

Rows are whole where a map is made row after row (map order "raster"), columns where it is made column after column
("columns"). The last chunk of a map is what is left. A map of one tuple goes word by word, so that its reader begins
while it is still being made.
"""

import re
from dataclasses import dataclass

import numpy as np

from .schedule import StageTables

KINDS = ("tuples", "rows", "columns")


@dataclass(frozen=True)
class Chunk:
    """What a buffer takes.

    Attributes
    ----------
    kind
        One of KINDS.
    count
        How many; None: as many as a buffer holds.
    """

    kind: str = "tuples"
    count: int | None = 1

    @classmethod
    def of(cls, text: str) -> "Chunk":
        """A chunk by its text; "" is one tuple.

        Raises
        ------
        ValueError
            There is no such chunk.
        """
        if not text:
            return cls()
        found = re.fullmatch(r"(tuples|rows|columns)(:([1-9][0-9]{0,6}))?", text, re.ASCII)
        if not found:
            raise ValueError(f"chunk must be one of {', '.join(KINDS)}, perhaps with :N, N from 1 on, got {text!r}")
        return cls(found[1], int(found[3]) if found[3] else None)

    @property
    def map_order(self) -> str | None:
        """The map order that it needs; None: any will do."""
        return {"tuples": None, "rows": "raster", "columns": "columns"}[self.kind]

    @property
    def sizes_buffers(self) -> bool:
        """Whether buffers are as large as the chunk, and not the chunk as large as they allow."""
        return self.kind != "tuples" and self.count is not None

    def words(self, read: StageTables, tuple_words: int, buffer_words: int) -> int:
        """Words of a chunk of one map.

        Parameters
        ----------
        read
            The schedule of the layer that reads the map.
        tuple_words
            Words of a tuple.
        buffer_words
            Words of a buffer.

        Returns
        -------
        int
            At most ``buffer_words``, unless buffers follow from the chunk.

        Raises
        ------
        ValueError
            A buffer doesn't hold one row, or one column.
        """
        stage, order = read.stage, read.input_order
        if stage.height * stage.width == 1:
            return 1
        if self.kind == "tuples":
            fit = buffer_words // tuple_words
            return min(self.count or fit, fit) * tuple_words if fit else buffer_words
        across = order % stage.width if self.kind == "rows" else order // stage.width
        line, whole = len(np.unique(across)) * tuple_words, len(order) * tuple_words
        if self.count is not None:
            return min(self.count * line, whole)
        if line > buffer_words:
            raise ValueError(
                f"{stage.name}: a chunk of whole {self.kind} needs buffers of {line} words at least, got {buffer_words}"
            )
        return min(buffer_words // line * line, whole)
