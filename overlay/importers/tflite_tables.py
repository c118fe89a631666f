"""The tables of a TFLite file: flatbuffers, read into plain data. Nothing in a file is believed before it is checked.

The reader of the schema follows offsets without looking whether they lie in the file. So everything is read here, at
once, under one guard; numbers that a file claims are compared with its size before a loop runs over them, and tensors
are views of its bytes.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bitloom.golden.distribution import pip_install
from bitloom.golden.encoding import Array
from bitloom.golden.reading.file import reason

from .errors import Unsupported, printable
from .source import MOST_AXES, MOST_NODES

MARK = b"TFL3"
"""Bytes 4 to 7 of a TFLite file."""
NAME_BYTES = 200
"""Bytes of a tensor's name at most."""
MOST_INPUTS = 64
"""Tensors that an operator reads or writes at most; the LSTM has 24."""
CODE_PLACE = 10
"""Offset of the field ``builtin_code`` in the table of an operator code."""

DAMAGE = (
    struct.error,
    IndexError,
    KeyError,
    ValueError,
    TypeError,
    AttributeError,
    OverflowError,
    MemoryError,
    RecursionError,
)
"""Exceptions that reading a damaged file raises."""

Option = Callable[[Any], Any]
"""An attribute of a node, of the schema's table of options; of None, where the file has none, the schema's default."""


def _number(field: str, default: bool | int | float) -> Option:
    """A number, of the type of its default."""
    return lambda options: default if options is None else type(default)(getattr(options, field)())


def _either(*fields: str) -> Option:
    """Whether any of some numbers is not 0."""
    return lambda options: options is not None and any(getattr(options, field)() for field in fields)


def _pair(rows: str, columns: str, default: tuple[int, ...] = (1, 1)) -> Option:
    """Two numbers, for rows and columns."""
    return lambda options: default if options is None else (getattr(options, rows)(), getattr(options, columns)())


def _word(field: str, *words: str) -> Option:
    """One of some words, in the order of their numbers in the schema; the first one is the default."""

    def read(options: Any) -> str:
        number = 0 if options is None else getattr(options, field)()
        return words[number] if 0 <= number < len(words) else f"number {number}"

    return read


FUSED = {
    "activation": _word("FusedActivationFunction", "NONE", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT"),
}
WINDOW = {"strides": _pair("StrideH", "StrideW"), "auto_pad": _word("Padding", "SAME_UPPER", "VALID"), **FUSED}
CONV = {**WINDOW, "dilations": _pair("DilationHFactor", "DilationWFactor")}
POOL = {**WINDOW, "kernel_shape": _pair("FilterHeight", "FilterWidth", ())}
RESIZE = {"align": _number("AlignCorners", False), "centres": _number("HalfPixelCenters", False)}
REDUCER = {"keep": _number("KeepDims", False)}
DETECTIONS = "CUSTOM TFLite_Detection_PostProcess"
"""The operator at a detector's end."""
DETECTION_OPTIONS: dict[str, tuple[str, Any]] = {
    "most": ("max_detections", 0),
    "most_classes": ("max_classes_per_detection", 0),
    "most_of_class": ("detections_per_class", 100),
    "by_class": ("use_regular_nms", False),
    "classes": ("num_classes", 0),
    "least_score": ("nms_score_threshold", 0.0),
    "most_overlap": ("nms_iou_threshold", 0.0),
    "y": ("y_scale", 0.0),
    "x": ("x_scale", 0.0),
    "h": ("h_scale", 0.0),
    "w": ("w_scale", 0.0),
}
"""Attribute -> the name of its option, and what it is where that is missing, of the type that it has."""
MOST_OPTION_BYTES = 1 << 12
"""Bytes of the options of an operator of nobody's schema."""
OPTIONS: dict[str, tuple[str, dict[str, Option]]] = {
    "CONV_2D": ("Conv2DOptions", CONV),
    "DEPTHWISE_CONV_2D": ("DepthwiseConv2DOptions", CONV),
    "TRANSPOSE_CONV": ("TransposeConvOptions", WINDOW),
    "RESIZE_NEAREST_NEIGHBOR": ("ResizeNearestNeighborOptions", RESIZE),
    "RESIZE_BILINEAR": ("ResizeBilinearOptions", RESIZE),
    "DEPTH_TO_SPACE": ("DepthToSpaceOptions", {"block": _number("BlockSize", 0)}),
    "SPACE_TO_DEPTH": ("SpaceToDepthOptions", {"block": _number("BlockSize", 0)}),
    "FULLY_CONNECTED": (
        "FullyConnectedOptions",
        {"format": _number("WeightsFormat", 0), "keep": _number("KeepNumDims", False), **FUSED},
    ),
    "AVERAGE_POOL_2D": ("Pool2DOptions", POOL),
    "MAX_POOL_2D": ("Pool2DOptions", POOL),
    "ADD": ("AddOptions", FUSED),
    "SUB": ("SubOptions", FUSED),
    "MUL": ("MulOptions", FUSED),
    "CONCATENATION": ("ConcatenationOptions", {"axis": _number("Axis", 0), **FUSED}),
    "MEAN": ("ReducerOptions", REDUCER),
    "REDUCE_MAX": ("ReducerOptions", REDUCER),
    "STRIDED_SLICE": (
        "StridedSliceOptions",
        {
            "begin": _number("BeginMask", 0),
            "end": _number("EndMask", 0),
            "shrink": _number("ShrinkAxisMask", 0),
            "others": _either("EllipsisMask", "NewAxisMask", "Offset"),
        },
    ),
    "MIRROR_PAD": ("MirrorPadOptions", {"mode": _word("Mode", "REFLECT", "SYMMETRIC")}),
    "SPLIT": ("SplitOptions", {}),
    "SPLIT_V": ("SplitVOptions", {}),
    "SLICE": ("SliceOptions", {}),
    "PACK": ("PackOptions", {"axis": _number("Axis", 0)}),
    "LEAKY_RELU": ("LeakyReluOptions", {"alpha": _number("Alpha", 0.0)}),
    "GELU": ("GeluOptions", {"approximate": _number("Approximate", False)}),
    "SOFTMAX": ("SoftmaxOptions", {"beta": _number("Beta", 1.0)}),
}
"""Operator -> the schema's table of its options, and the attributes that are made of it, in ONNX's words where there
are some."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TensorTable:
    """A tensor of a file."""

    name: str
    shape: tuple[int, ...]
    kind: str
    """The schema's word for its type, such as ``"INT8"``."""
    data: Array
    """(bytes,) uint8: empty unless it is a constant."""
    scale: Array
    """float32 array: empty unless it is quantised."""
    zero: Array
    """int64 array."""
    axis: int
    """Of the channels, where there is one scale for each."""


@dataclass(frozen=True, kw_only=True)
class OperatorTable:
    """An operator of a file."""

    kind: str
    """The schema's word, such as ``"CONV_2D"``."""
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    """inputs, outputs: numbers of tensors; -1 is an input that is left out."""
    options: Mapping[str, Any]
    """Attributes, those of OPTIONS."""


@dataclass(frozen=True, kw_only=True)
class FileTables:
    """The first subgraph of a file."""

    name: str
    subgraphs: int
    """How many there are."""
    tensors: tuple[TensorTable, ...]
    operators: tuple[OperatorTable, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    """inputs, outputs: numbers of tensors."""


def read_tables(data: bytes) -> FileTables:
    """The tables in the bytes of a TFLite file.

    Returns
    -------
    FileTables
        Numbers of tensors are those of tensors that there are.

    Raises
    ------
    ValueError
        If it is no TFLite file, a damaged one, or one with an operator of too many tensors; one line.
    """
    try:
        import tflite  # not installed everywhere
    except ModuleNotFoundError as e:
        raise ValueError(f"needs the extra import: {pip_install('import')} ({e})") from None
    if data[4:8] != MARK:
        raise ValueError(f"must be a TFLite file, with {MARK.decode()} in bytes 4 to 7, got {data[4:8]!r}")
    try:
        return _TableReader(tflite, data).tables()
    except Unsupported:
        raise
    except DAMAGE as e:
        raise ValueError(f"must be a whole TFLite file, got: {reason(e)}") from None


class _TableReader:
    """Reads tables; raises whatever DAMAGE names where they are no tables."""

    def __init__(self, tflite: Any, data: bytes) -> None:
        self._schema = tflite
        self._data = data
        self._file = tflite.Model.GetRootAs(data, 0)
        self._kinds = _words(tflite.BuiltinOperator)
        self._types = _words(tflite.TensorType)
        self._buffers = self._count(self._file.BuffersLength(), "buffers")

    def tables(self) -> FileTables:
        file = self._file
        subgraphs = self._count(file.SubgraphsLength(), "subgraphs")
        if not subgraphs:
            raise ValueError("no subgraph")
        graph = file.Subgraphs(0)
        tensors = self._count(graph.TensorsLength(), "tensors")
        operators = self._count(graph.OperatorsLength(), "operators")
        return FileTables(
            name=_text(graph.Name()),
            subgraphs=subgraphs,
            tensors=tuple(self._tensor(graph.Tensors(k)) for k in range(tensors)),
            operators=tuple(self._operator(k, graph.Operators(k), tensors) for k in range(operators)),
            inputs=_numbers("the network", graph.InputsAsNumpy(), 0, tensors),
            outputs=_numbers("the network", graph.OutputsAsNumpy(), 0, tensors),
        )

    def _count(self, count: int, what: str) -> int:
        """A number of tables, each of which takes 4 bytes of the file at least."""
        if not 0 <= count <= min(4 * MOST_NODES, len(self._data) // 4):
            raise ValueError(f"{count:,} {what} in {len(self._data):,} bytes")
        return count

    def _tensor(self, table: Any) -> TensorTable:
        shape = _vector(table.ShapeAsNumpy())
        if len(shape) > MOST_AXES:
            raise ValueError(f"a tensor of {len(shape):,} axes")
        quantised = table.Quantization()
        return TensorTable(
            name=_text(table.Name()),
            shape=tuple(int(size) for size in shape),
            kind=self._types.get(table.Type(), f"type {table.Type()}"),
            data=self._buffer(int(table.Buffer())),
            scale=_vector(quantised.ScaleAsNumpy() if quantised else 0),
            zero=_vector(quantised.ZeroPointAsNumpy() if quantised else 0),
            axis=int(quantised.QuantizedDimension()) if quantised else 0,
        )

    def _buffer(self, number: int) -> Array:
        """The bytes of a buffer, which lie in its table, or behind all tables."""
        if not 0 <= number < self._buffers:
            raise ValueError(f"buffer {number:,} of {self._buffers:,}")
        table = self._file.Buffers(number)
        begin = int(table.Offset())
        size = int(table.Size())
        if begin <= 1:  # 0 and 1 say that there is nothing behind the tables
            return _vector(table.DataAsNumpy())
        if begin + size > len(self._data):
            raise ValueError(f"a buffer at bytes {begin:,}..{begin + size:,} of {len(self._data):,}")
        return np.frombuffer(self._data, np.uint8, size, begin)

    def _operator(self, place: int, table: Any, tensors: int) -> OperatorTable:
        codes = self._count(self._file.OperatorCodesLength(), "operator codes")
        number = table.OpcodeIndex()
        if not 0 <= number < codes:
            raise ValueError(f"operator code {number:,} of {codes:,}")
        code = self._file.OperatorCodes(number)
        word = max(_builtin_code(code), code.DeprecatedBuiltinCode())  # files may have either field alone
        kind = self._kinds.get(word, f"operator {word}")
        if kind == "CUSTOM":  # no operator of TFLite's own begins so
            text = (code.CustomCode() or b"")[:NAME_BYTES].decode(errors="replace")
            kind = f"CUSTOM {printable(text)}"
        name = f"{kind}_{place}"
        inputs = table.InputsAsNumpy()
        outputs = table.OutputsAsNumpy()
        return OperatorTable(
            kind=kind,
            inputs=_numbers(name, inputs, -1, tensors),
            outputs=_numbers(name, outputs, 0, tensors),
            options=self._options(kind, table),
        )

    def _options(self, kind: str, table: Any) -> dict[str, Any]:
        if kind == DETECTIONS:
            return _detection_options(bytes(_vector(table.CustomOptionsAsNumpy())))
        name, attributes = OPTIONS.get(kind, ("", {}))
        union = table.BuiltinOptions()
        options = None
        if attributes and union is not None:
            if table.BuiltinOptionsType() != getattr(self._schema.BuiltinOptions, name):
                raise ValueError(f"{kind} with options of type {table.BuiltinOptionsType()}")
            options = getattr(self._schema, name)()
            options.Init(union.Bytes, union.Pos)
        return {attribute: read(options) for attribute, read in attributes.items()}


def _detection_options(data: bytes) -> dict[str, Any]:
    """Options of a detector's end, a map of numbers as FlexBuffers writes it; of the map only these are read."""
    from flatbuffers import flexbuffers

    if not data or len(data) > MOST_OPTION_BYTES:
        raise ValueError(f"{DETECTIONS} with {len(data):,} bytes of options")
    readers = {bool: "AsBool", int: "AsInt", float: "AsFloat"}
    out = {}
    try:
        given = flexbuffers.GetRoot(bytearray(data)).AsMap
        for name, (option, default) in DETECTION_OPTIONS.items():
            try:
                out[name] = getattr(given[option], readers[type(default)])
            except KeyError:
                out[name] = default
    except (*DAMAGE, AssertionError) as e:
        raise ValueError(f"{DETECTIONS} with options that are no map of numbers: {reason(e)}") from None
    return out


def _words(names: Any) -> dict[int, str]:
    """The schema's words of an enumeration."""
    return {value: name for name, value in vars(names).items() if isinstance(value, int)}


def _vector(values: Any) -> Array:
    """A vector of numbers; the reader gives 0 for one that is missing."""
    return values if isinstance(values, np.ndarray) else np.zeros(0, np.uint8)


def _builtin_code(code: Any) -> int:
    """The field ``builtin_code`` itself, 0 where it is missing.

    The reader's own ``BuiltinCode`` has the other field in its place wherever this one is below 127.
    """
    import flatbuffers

    table = code._tab
    place = table.Offset(CODE_PLACE)
    return int(table.Get(flatbuffers.number_types.Int32Flags, table.Pos + place)) if place else 0


def _numbers(name: str, values: Any, low: int, count: int) -> tuple[int, ...]:
    """Numbers of tensors, low .. count - 1, that ``name`` reads or writes."""
    numbers = _vector(values)
    if len(numbers) > MOST_INPUTS:
        rule = f"must read and write at most {MOST_INPUTS} tensors each"
        raise Unsupported(f"{name}: {rule}, got {len(numbers):,}")
    if ((numbers < low) | (numbers >= count)).any():
        raise ValueError(f"{name} with tensors {numbers.tolist()}, of {count:,} tensors")
    return tuple(int(number) for number in numbers)


def _text(value: bytes | None) -> str:
    return (value or b"")[:NAME_BYTES].decode("utf-8", "replace")
