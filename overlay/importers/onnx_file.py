"""ONNX files: protocol buffers, read into a source graph. Nothing in a file is executed."""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from bitloom.golden.distribution import pip_install
from bitloom.golden.encoding import Array
from bitloom.golden.reading.file import foreign_reason, naming

from .class_names import labels_of_metadata
from .errors import Unsupported, printable
from .integer_types import element_dtype, is_number, plain
from .scores import with_real_scores
from .source import (
    MOST_AXES,
    MOST_BYTES,
    MOST_MAP,
    MOST_NODES,
    STANDARD,
    SourceGraph,
    SourceInput,
    SourceNode,
    check_shape,
    nodes_of_parts,
)


def to_graph(data: bytes, folder: Path | None = None) -> SourceGraph:
    """The source graph in the bytes of an ONNX file.

    Parameters
    ----------
    data : bytes
    folder : path, optional
        Where external data may lie; without it there is none.

    Raises
    ------
    ValueError
        If it is no ONNX file, or has what no network here can have. One line.
    """
    try:
        import onnx  # slow to import, and not installed everywhere
    except ModuleNotFoundError as e:
        raise ValueError(f"needs the extra import: {pip_install('import')} ({e})") from None
    from google.protobuf.message import DecodeError

    message = onnx.ModelProto()
    try:
        message.ParseFromString(data)
    except (DecodeError, RuntimeError) as e:
        raise ValueError(f"must be an ONNX file, got: {foreign_reason(e)}") from None
    _check_texts(message.graph)
    if not message.graph.node:
        raise ValueError("must be an ONNX file with at least one node, got none")
    if len(message.graph.node) > MOST_NODES:
        raise ValueError(f"must have at most {MOST_NODES:,} nodes, got {len(message.graph.node):,}")
    if message.functions:
        raise ValueError("must have no functions of its own, got some: export without functions, or inline them")
    return _graph(message, _FileConstants(folder))


def _graph(message: Any, tensors: "_FileConstants") -> SourceGraph:
    """The source graph of a ModelProto."""
    graph = message.graph
    constants: dict[str, Array] = {}
    for tensor in graph.initializer:
        if tensor.name in constants:
            raise ValueError(f"constants must be given once, got {printable(tensor.name)} again")
        constants[tensor.name] = tensors.array(tensor)
    if graph.sparse_initializer:
        raise ValueError("must have no sparse constants, got some")
    inputs = [value for value in graph.input if value.name not in constants]
    if len(inputs) != 1:
        names = ", ".join(printable(value.name) for value in inputs) or "none"
        raise ValueError(f"must have one input, got {names}")
    versions = [o.version for o in message.opset_import if o.domain in (STANDARD, "ai.onnx")]
    source = SourceGraph(
        name=graph.name,
        source=_input(inputs[0]),
        outputs=tuple(value.name for value in graph.output),
        output_names=tuple(value.name for value in graph.output),
        nodes=tuple(_nodes(graph.node, tensors)),
        constants=constants,
        opset=_version(versions),
        shapes=_shapes((*graph.value_info, *graph.output)),
        labels=labels_of_metadata((entry.key, entry.value) for entry in message.metadata_props),
    )
    source.check()
    return with_real_scores(replace(source, source=_quantised(source)))


DEQUANTISE = ("DequantizeLinear", "QLinearConv", "QLinearMatMul", "QGemm")
"""Operators that read a map of integers together with its scale and its zero point, inputs 0 to 2."""


def _quantised(graph: SourceGraph) -> SourceInput:
    """The input, with the scale and the zero point of the nodes that read its integers."""
    source = graph.source
    for node in graph.nodes:
        if node.op in DEQUANTISE and node.inputs[0] == source.name and len(node.inputs) > 1:
            scale = graph.constants.get(node.inputs[1], np.zeros(0))
            zero = graph.constants.get(node.inputs[2]) if len(node.inputs) > 2 else None
            return source.quantised(plain(scale), np.zeros(1) if zero is None else plain(zero))
    return source


def _check_texts(graph: Any) -> None:
    """Refuse names that are no text, which the library gives as bytes."""
    named = (*graph.initializer, *graph.input, *graph.output)
    lists: list[Iterable[Any]] = [[graph.name], (item.name for item in named)]
    lists += [(n.name, n.op_type, n.domain, *n.input, *n.output, *(a.name for a in n.attribute)) for n in graph.node]
    entries = [t.external_data for t in graph.initializer]
    lists += [(entry.key, entry.value) for several in entries for entry in several]
    for name in chain.from_iterable(lists):
        if not isinstance(name, str):
            raise ValueError(f"names must be text in UTF-8, got {name[:40]!r}")


def _version(versions: list[int]) -> int:
    """The version of ONNX's operators; refused if operators have another meaning in that version."""
    from onnx.defs import onnx_opset_version

    version = max(versions, default=13)
    if not 7 <= version <= onnx_opset_version():
        raise ValueError(f"the version of ONNX's operators must be 7..{onnx_opset_version()}, got {version}")
    return version


def _dtype(what: str, element: int) -> "np.dtype[Any] | None":
    try:
        return element_dtype(element)
    except Unsupported as e:
        raise ValueError(f"{what}: {e}") from None


def _input(value: Any) -> SourceInput:
    """The input, with 1 for the number of images."""
    what = f"input {printable(value.name)}"
    kind = value.type.tensor_type
    dtype = _dtype(what, kind.elem_type)
    if dtype is None:
        raise ValueError(f"{what}: must be a tensor of numbers, got element type {kind.elem_type}")
    if dtype.kind not in "iuf":
        raise ValueError(f"{what}: must be a tensor of numbers, got {dtype}")
    sizes = [d.dim_value if d.WhichOneof("value") == "dim_value" else 0 for d in kind.shape.dim]
    if not sizes:
        raise ValueError(f"{what}: must have a shape, got none")
    sizes[0] = 1  # the number of images, whatever the file says
    open_axes = [axis for axis, size in enumerate(sizes) if size == 0]
    if open_axes:
        names = ", ".join(f"{axis} ({printable(kind.shape.dim[axis].dim_param) or 'no name'})" for axis in open_axes)
        wanted = ",".join(str(size or "SIZE") for size in sizes)
        raise ValueError(
            f"{what}: must have a fixed shape behind the number of images, got any size at axis {names}; export with "
            "fixed sizes, or set them: python -m onnxruntime.tools.make_dynamic_shape_fixed "
            f"--input_name {printable(value.name)} --input_shape {wanted} FILE NEW_FILE"
        )
    return SourceInput(name=value.name, shape=check_shape(what, sizes, MOST_MAP), dtype=dtype)


def _shapes(values: Iterable[Any]) -> dict[str, tuple[int, ...]]:
    """Shapes of maps that the file says, with 1 for the number of images; only of fixed ones that a map can have."""
    shapes = {}
    for value in values:
        sizes = [d.dim_value for d in value.type.tensor_type.shape.dim]
        if len(sizes) > 1 and isinstance(value.name, str):
            with suppress(ValueError):  # nobody needs it
                shapes[value.name] = check_shape("a map", (1, *sizes[1:]), MOST_MAP)
    return shapes


def _nodes(nodes: Any, tensors: "_FileConstants") -> Iterator[SourceNode]:
    """Every node, with a name of its own."""
    taken: set[str] = set()
    for number, node in enumerate(nodes):
        domain = STANDARD if node.domain == "ai.onnx" else node.domain
        name = node.name if node.name and node.name not in taken else f"{node.name or node.op_type}_{number}"
        taken.add(name)
        with naming(printable(name)):
            attributes = _attributes(node.attribute, tensors)
        source = SourceNode(
            name=name,
            op=node.op_type,
            domain=domain,
            inputs=tuple(node.input),
            outputs=tuple(node.output),
            attributes=attributes,
        )
        yield from nodes_of_parts(source, source.outputs) if source.op == "Split" else [source]


def _attributes(given: Any, tensors: "_FileConstants") -> dict[str, Any]:
    """The attributes of a node: name -> value."""
    attributes: dict[str, Any] = {}
    for attribute in given:
        if attribute.name in attributes:
            raise ValueError(f"attributes must be given once, got {printable(attribute.name)} again")
        attributes[attribute.name] = _attribute(attribute, tensors)
    return attributes


def _attribute(attribute: Any, tensors: "_FileConstants") -> Any:
    """Value of an attribute."""
    kind = attribute.type
    if kind == attribute.FLOAT:
        return attribute.f
    if kind == attribute.INT:
        return attribute.i
    if kind == attribute.STRING:
        return attribute.s.decode("utf-8", "replace")
    if kind == attribute.TENSOR:
        return tensors.array(attribute.t)
    if kind == attribute.FLOATS:
        return tuple(attribute.floats)
    if kind == attribute.INTS:
        return tuple(attribute.ints)
    if kind == attribute.STRINGS:
        return tuple(s.decode("utf-8", "replace") for s in attribute.strings)
    return None  # a graph or a type: of operators that are not imported


MOST_ITEM = 8
"""Bytes of a number at most."""


class _FileConstants:
    """Constants of a file and of the files beside it."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._bytes = 0

    def array(self, tensor: Any) -> Array:
        """A tensor's values."""
        from onnx import TensorProto, numpy_helper

        what = f"constant {printable(tensor.name)}"
        shape = tuple(tensor.dims)
        if 0 not in shape:
            check_shape(what, shape)
        elif len(shape) > MOST_AXES or min(shape) < 0:
            raise ValueError(f"{what}: must have at most {MOST_AXES} axes, none below 0, got {shape[:MOST_AXES]}")
        # Several constants may share the bytes of one file beside, so that these are no measure.
        self._bytes += math.prod(shape) * MOST_ITEM
        if self._bytes > MOST_BYTES * MOST_ITEM // 4:
            raise ValueError(f"{what}: all constants must have at most {MOST_BYTES // 4:,} values together")
        _dtype(what, tensor.data_type)
        try:
            if tensor.data_location == TensorProto.EXTERNAL:
                local = TensorProto()
                local.CopyFrom(tensor)
                local.ClearField("external_data")
                local.data_location = TensorProto.DEFAULT
                local.raw_data = self._external(tensor)
                tensor = local
            values = np.asarray(numpy_helper.to_array(tensor))
        except (
            ValueError,
            TypeError,
            LookupError,
            NotImplementedError,
            AttributeError,
            ArithmeticError,
            OSError,
            RuntimeError,
        ) as e:
            raise ValueError(f"{what}: must be a whole tensor of shape {shape}, got: {foreign_reason(e)}") from None
        if values.shape != shape:
            raise ValueError(f"{what}: must be a whole tensor of shape {shape}, got shape {values.shape}")
        if not is_number(values.dtype):
            raise ValueError(f"{what}: must hold numbers, got {values.dtype}")
        return values

    def _external(self, tensor: Any) -> bytes:
        """The bytes of a tensor in a file beside the model's, which may not lie outside of the model's folder."""
        entries: Mapping[str, str] = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        if self._folder is None or not location:
            raise ValueError("external data needs a folder and a location")
        folder = self._folder.resolve()
        path = (folder / location).resolve()
        if not path.is_relative_to(folder):
            raise ValueError(f"external data must lie in the model's folder, got {printable(location)}")
        offset = int(entries.get("offset", 0))
        size = path.stat().st_size if path.is_file() else -1
        length = int(entries.get("length", max(size - offset, 0)))
        needed = math.prod(tensor.dims) * MOST_ITEM
        if size < 0:
            raise ValueError(f"external data must be a file, got {printable(location)}")
        if not (0 <= offset <= size and 0 <= length <= size - offset):
            raise ValueError(f"external data must lie inside of the file, got bytes {offset}..{offset + length}")
        if length > needed:
            raise ValueError(f"external data must have at most {needed} bytes, got {length}")
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(length)
