"""Both ends of a network as the host computes them (`bitloom.golden.host.host`): images in, scores out."""

from collections.abc import Iterator, Sequence

import numpy as np

from bitloom.golden.file import model_digest
from bitloom.golden.host.host import MOST, Host, HostOutput, InputIntegers

from .choose import EngineChoice
from .emit import Emitted
from .errors import ImportRefused, printable
from .integer_types import integer_ends
from .links import host_links
from .operations import OperationGraph
from .sections import SectionGraph
from .source import SourceGraph, SourceInput


def _outputs(
    source: SourceGraph, operations: OperationGraph, graph: SectionGraph, emitted: Emitted
) -> Iterator[HostOutput]:
    """The file's outputs, in its order."""
    outputs = {output.tensor: (output, parts) for output, parts in zip(graph.outputs, emitted.outputs)}
    for name, tensor in zip(_names(source.output_names), source.outputs):
        if tensor in operations.constants:
            values = np.asarray(operations.constants[tensor], np.float64)
            infinite = values[~np.isfinite(values)]
            if infinite.size or not values.size:
                got = infinite[0] if infinite.size else "none"
                raise ImportRefused([f"output {name}: a constant must have finite numbers, got {got}"])
            shape = values.shape[1:] if values.shape[:1] == (1,) else values.shape  # one image, or the same for all
            yield HostOutput(
                name=name,
                shape=shape,
                parts=(),
                order=np.arange(values.size),
                closing=(),
                classes=1,
                apart=1,
                constant=values.ravel(),
            )
            continue
        output, parts = outputs[tensor]
        yield HostOutput(
            name=name,
            shape=operations.shapes[tensor][1:],
            parts=parts,
            order=output.order,
            closing=output.closing,
            classes=output.classes,
            apart=output.apart,
        )


def _names(names: Sequence[str]) -> list[str]:
    """Names of outputs as files and tables have them: printable, not too long, and each once."""
    out = list[str]()
    for number, name in enumerate(map(printable, names)):
        out.append(name if name not in out else f"{name} ({number})")
    return out


def host_of(
    graph_of_file: SourceGraph, operations: OperationGraph, graph: SectionGraph, choice: EngineChoice, emitted: Emitted
) -> Host:
    """Both ends as the host computes them."""
    source = graph_of_file.source
    held = choice.held[0]
    quantised = graph.source
    boundaries = quantised.boundaries
    integers = boundaries is None
    # Integers come in as the file has them; level 0 is the smallest of these.
    first = held.zero
    front = host_links(graph.front, graph.size[2])
    if integers and source.dtype.kind != "f":
        first = held.zero - int(quantised.base)
    elif integers:
        level = (np.array([1 / quantised.step], object), np.array([-quantised.base / quantised.step], object))
        multiply, add = (np.full(graph.size[2], float(value[0] * held.stride)) for value in level)
        ends = np.zeros(graph.size[2]), np.full(graph.size[2], float(quantised.levels * held.stride))
        front = (("line", multiply, add), ("clip", *ends))
    return Host(
        digest=model_digest(emitted.model),
        shape=source.shape[1:],
        order=graph.order.ravel(),
        front=front,
        boundaries=None if boundaries is None else boundaries.in_floats.limits,
        reached=None if boundaries is None else boundaries.reached,
        first=first,
        stride=held.stride,
        outputs=tuple(_outputs(graph_of_file, operations, graph, emitted)),
        detections=graph_of_file.detections,
        integers=_integers(source),
    )


def _integers(source: SourceInput) -> InputIntegers | None:
    """The integers that a file's input takes, and what they stand for; None where it takes real numbers."""
    ends = integer_ends(source.dtype)
    if ends is None:
        return None
    low = max(ends[0], -MOST)
    high = min(ends[1], MOST)
    return InputIntegers(low=low, high=high, scale=source.scale, zero=source.zero)
