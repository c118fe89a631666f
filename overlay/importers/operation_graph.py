"""The graph of operations that stands between a file's operators and sections."""

from dataclasses import dataclass

from .joins import Sum
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
            reads = {operation.reads, operation.also} if isinstance(operation, Sum) else {operation.reads}
            if not made.issuperset(reads) or operation.makes in made:
                raise ValueError(f"{operation.name}: operations must read what was made, and make what was not")
            if operation.shape(self.shapes[operation.reads]) != self.shapes[operation.makes]:
                raise ValueError(
                    f"{operation.name}: the shape must be {operation.shape(self.shapes[operation.reads])}, "
                    f"got {self.shapes[operation.makes]}"
                )
            made.add(operation.makes)
        if self.output not in made:
            raise ValueError(f"{self.name}: the output must be made by an operation, got {self.output}")
