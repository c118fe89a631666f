"""The graph of operations that stands between a file's operators and sections."""

from dataclasses import dataclass

from .joins import Concatenation, reads_of
from .operations import Operation
from .source import Shape


@dataclass(frozen=True, kw_only=True)
class OperationGraph:
    """A network as operations.

    Attributes
    ----------
    name : str
    source : str
        The input tensor.
    output : str
        The output tensor.
    operations : tuple of Operation
        Each behind the one whose tensor it reads.
    shapes : dict of str to tuple of int
        Of every tensor.
    """

    name: str
    source: str
    output: str
    operations: tuple[Operation, ...]
    shapes: dict[str, Shape]

    def check(self) -> None:
        """Raise ValueError unless each tensor is made once, before it is read, in the shape that its operation says."""
        made = {self.source}
        for operation in self.operations:
            reads = reads_of(operation)
            if not made.issuperset(reads) or operation.makes in made:
                raise ValueError(f"{operation.name}: operations must read what was made, and make what was not")
            if isinstance(operation, Concatenation):
                shape = operation.shape_of(*(self.shapes[name] for name in reads))
            else:
                shape = operation.shape(self.shapes[operation.reads])
            if shape != self.shapes[operation.makes]:
                raise ValueError(f"{operation.name}: the shape must be {shape}, got {self.shapes[operation.makes]}")
            made.add(operation.makes)
        if self.output not in made:
            raise ValueError(f"{self.name}: the output must be made by an operation, got {self.output}")
