"""Known facts of a file's tensors: as its nodes are rewritten, one behind the other, it becomes more."""

from dataclasses import dataclass, field

from bitloom.golden.encoding import Array

from .integer_types import Ends, integer_ends
from .quantisers import Grid
from .source import Shape, SourceGraph


@dataclass
class Tensors:
    """Tensors by name: constants, which have values, and maps, which have shapes."""

    opset: int
    """Version of ONNX's own operators."""
    values: dict[str, Array]
    """Of constants."""
    grids: dict[str, Grid] = field(default_factory=dict)
    """Of the constants that are integers times a scale."""
    shapes: dict[str, Shape] = field(default_factory=dict)
    """Of maps."""
    ranges: dict[str, Ends] = field(default_factory=dict)
    """Smallest and largest value of maps of integers."""
    types: dict[str, Ends] = field(default_factory=dict)
    """Smallest and largest number of the file's type, of maps of integers in ONNX files, where an operator that makes
    others goes on at the type's other end."""
    imageless: set[str] = field(default_factory=set)
    """Maps that begin with another axis in the file than that of the images: the places of one image, as Keras' Dense
    has them. Their shapes here have a 1 in front."""

    @classmethod
    def of(cls, graph: SourceGraph) -> "Tensors":
        """Facts that a file says: its constants, and shape and type of its input."""
        source = graph.source
        ends = integer_ends(source.dtype)
        ranges = {} if ends is None else {source.name: ends}
        values = dict(graph.constants)
        return cls(
            opset=graph.opset, values=values, shapes={source.name: source.shape}, ranges=ranges, types=dict(ranges)
        )

    def change_name(self, tensor: str, name: str) -> None:
        """Give a map another name, which its range has then, too."""
        self.shapes[name] = self.shapes.pop(tensor)
        if tensor in self.ranges:
            self.ranges[name] = self.ranges.pop(tensor)
