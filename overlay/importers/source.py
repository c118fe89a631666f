"""The source graph: what a file says, in the words of ONNX, before anything is rewritten."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.host.detections import Detections
from bitloom.golden.host.file import MOST_OUTPUTS

from .errors import printable
from .integer_types import integer_ends

Shape = tuple[int, ...]

MOST_NODES = 5_000
"""Nodes at most; public networks that fit a device have less than half of that."""
MOST_AXES = 8
"""Axes of a tensor at most."""
MOST_VALUES = 1 << 25
"""Values of a constant at most."""
MOST_MAP = 1 << 22
"""Values of a map at most."""
MOST_CHANNELS = 1 << 16
"""Channels of a map at most."""
MOST_WEIGHTS = 1 << 24
"""Weights of a layer at most, zeros between them counted."""
MOST_BYTES = 1 << 28
"""Bytes of all constants at most."""

STANDARD = ""
"""Domain of ONNX's own operators."""
TFLITE = "tflite"
"""Domain of TFLite's operators."""


@dataclass(frozen=True, kw_only=True)
class SourceNode:
    """An operator of a file."""

    name: str
    """The node's name in the file, or its operator and number where the file has no name."""
    op: str
    """The operator, such as ``"Conv"``."""
    domain: str = STANDARD
    """Where the operator is defined; `STANDARD` for ONNX's own ones."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    """inputs, outputs: names of tensors; an empty name is an input that is left out, or an output that nobody wants."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """Integers, floats, strings, arrays, and tuples of these."""


def nodes_of_parts(node: SourceNode, outputs: Sequence[str]) -> Iterator[SourceNode]:
    """A node that cuts a tensor into parts as nodes that each make one of them: attribute ``part`` has the part's
    number, and how many there are."""
    for number, name in enumerate(outputs):
        if name:
            part = {"part": (number, len(outputs))}
            yield replace(node, name=f"{node.name}.{number}", outputs=(name,), attributes={**node.attributes, **part})


@dataclass(frozen=True, kw_only=True)
class SourceInput:
    """The input of a file."""

    name: str
    shape: tuple[int, ...]
    """With the number of images, which is 1, in front."""
    dtype: "np.dtype[Any]"
    scale: float = 1.0
    zero: int = 0
    """scale, zero: of integers: what they stand for in the real numbers that the network was trained on, (integer -
    zero) * scale. 1 and 0 where the file doesn't say it."""

    def quantised(self, scale: Array, zero: Array) -> "SourceInput":
        """This input, with the scale and the zero point of its integers where the file says one of each.

        Parameters
        ----------
        scale, zero : array of numbers
        """
        ends = integer_ends(self.dtype)
        if ends is None or scale.size != 1 or zero.size != 1:
            return self
        number = float(scale.ravel()[0])
        offset = int(zero.ravel()[0])
        if not (np.isfinite(number) and number > 0 and ends[0] <= offset <= ends[1]):
            return self
        return replace(self, scale=number, zero=offset)


@dataclass(frozen=True)
class Labels:
    """Names of classes in a file."""

    where: str
    """The entry that they stand in."""
    names: tuple[str, ...]
    """In the order of the file's scores."""


@dataclass(frozen=True, kw_only=True)
class SourceGraph:
    """A network as a file describes it."""

    name: str
    source: SourceInput
    """The one tensor that is no constant."""
    outputs: tuple[str, ...]
    """The tensors that are asked for, in the file's order, each once."""
    output_names: tuple[str, ...]
    """Names of the outputs in the file; the host's numbers may be those of a tensor in front of a conversion."""
    nodes: tuple[SourceNode, ...]
    """Each behind those whose outputs it reads."""
    constants: Mapping[str, Array]
    """Tensors that the file holds."""
    opset: int
    """Version of ONNX's own operators."""
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Of tensors, where the file says them."""
    detections: Detections | None = None
    """The last step of a detector, behind the first three outputs, which are then none of the file's own; None where
    there is none."""
    labels: tuple[Labels, ...] = ()
    """Names of classes that the file brings along, unchecked."""

    def needed(self) -> "SourceGraph":
        """The graph without nodes that no output depends on, such as those that compute a shape nobody reads."""
        names = {*self.outputs}
        nodes = []
        for node in reversed(self.nodes):
            if not names.isdisjoint(node.outputs):
                names.update(node.inputs)
                nodes.append(node)
        return replace(self, nodes=tuple(reversed(nodes)))

    def check(self) -> None:
        """Raise ValueError unless every tensor is made once, before it is read, and the outputs are made."""
        known = {self.source.name, *self.constants}
        if self.source.name in self.constants:
            raise ValueError(f"the input must not be a constant, got {printable(self.source.name)}")
        for node in self.nodes:
            for name in node.inputs:
                if name and name not in known:
                    raise ValueError(
                        f"{printable(node.name)}: tensors must be made before they are read, got {printable(name)}"
                    )
            if not node.outputs or not node.outputs[0]:
                raise ValueError(f"{printable(node.name)}: nodes must have an output, got none")
            for name in node.outputs:
                if name in known:
                    raise ValueError(f"{printable(node.name)}: tensors must be made once, got {printable(name)} again")
                if name:
                    known.add(name)
        if not 1 <= len(self.outputs) <= MOST_OUTPUTS:
            raise ValueError(f"must have 1 to {MOST_OUTPUTS} outputs, got {len(self.outputs)}")
        for output in self.outputs:
            if output not in known:
                raise ValueError(f"the output must be made by a node, got {printable(output)}")
        if len({*self.outputs}) < len(self.outputs):
            raise ValueError(f"outputs must be given once, got {', '.join(map(printable, self.outputs))}")


def check_shape(what: str, shape: Sequence[int], most: int = MOST_VALUES) -> tuple[int, ...]:
    """Refuse a shape that no network here can have.

    Parameters
    ----------
    what : str
        Thing that has the shape, for the message.
    shape : sequence of int
    most : int
        Values at most.

    Returns
    -------
    tuple of int
        The shape.

    Raises
    ------
    ValueError
        Unless it has at most MOST_AXES axes, each of 1 or more, and at most ``most`` values.
    """
    if len(shape) > MOST_AXES:
        raise ValueError(f"{what}: must have at most {MOST_AXES} axes, got {len(shape)}")
    count = 1
    for size in shape:
        if size < 1:
            raise ValueError(f"{what}: axes must be >= 1, got {tuple(shape)}")
        count *= size
    if count > most:
        raise ValueError(f"{what}: must have at most {most:,} values, got {count:,}")
    return tuple(int(size) for size in shape)
