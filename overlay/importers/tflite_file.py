"""TFLite files: their tables as a source graph. Operators keep TFLite's names, in a domain of their own.

Tensors keep TFLite's order, (1, rows, columns, channels). What ONNX has a word for, shapes, reshapes and what the host
does at the end, becomes ONNX's operator. Quantisation belongs to tensors here; each node is given that of what it reads
and makes: attributes ``scales``, one a tensor that it reads, and ``result_scale``.
"""

import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.host.detections import Detections
from bitloom.golden.reading.file import naming

from .activations import ACTIVATIONS
from .class_names import labels_of_texts
from .errors import printable
from .operators import OPERATORS
from .scores import with_real_scores
from .source import MOST_NODES, TFLITE, SourceGraph, SourceInput, SourceNode, check_shape, nodes_of_parts
from .tflite_rules import TensorScale
from .tflite_shapes import MOVERS
from .tflite_tables import DETECTIONS, MARK, MOST_INPUTS, OPTIONS, FileTables, OperatorTable, TensorTable, read_tables

DTYPES: Mapping[str, type] = {
    "INT8": np.int8,
    "UINT8": np.uint8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "FLOAT32": np.float32,
}
"""Types of constants."""
INPUTS = ("INT8", "UINT8", "FLOAT32")
"""Types of the input."""
RESHAPES = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS")
"""Operators that leave the order of the values: the file says the shape of what they make."""
SPLITS = ("SPLIT", "SPLIT_V")
"""Operators that make several tensors."""
OF_REAL_NUMBERS = {
    "NEG": "Neg",
    "ADD": "Add",
    "SUB": "Sub",
    "MUL": "Mul",
    "DIV": "Div",
    "MAXIMUM": "Max",
    "MINIMUM": "Min",
    "SELECT": "Where",
    "SELECT_V2": "Where",
    "GREATER": "Greater",
    "GREATER_EQUAL": "GreaterOrEqual",
    "LESS": "Less",
    "LESS_EQUAL": "LessOrEqual",
    **{
        activation.tflite: activation.onnx
        for activation in ACTIVATIONS
        if activation.function and activation.tflite and activation.tflite not in OPTIONS and not activation.constants
    },
}
"""Operators of real numbers that are ONNX's where they have no activation of their own, as converters leave ELU between
DEQUANTIZE and QUANTIZE: TFLite's name -> ONNX's."""
ZEROS = "ZEROS_LIKE"
"""The operator that makes zeros of any map: one number here, which all values share."""
MOST_READS = 4
"""How often operators may read each byte of constants, on average."""


def is_tflite(path: str | os.PathLike[str], data: bytes) -> bool:
    """Whether a file is TFLite's, as its name or its first bytes say."""
    return Path(path).suffix == ".tflite" or data[4:8] == MARK


def to_tflite_graph(data: bytes) -> SourceGraph:
    """The source graph in the bytes of a TFLite file.

    Raises
    ------
    ValueError
        If it is no TFLite file, or has what no network here can have. One line.
    """
    tables = read_tables(data)
    if tables.subgraphs != 1:
        raise ValueError(f"must have one subgraph, got {tables.subgraphs}")
    if len(tables.inputs) != 1:
        raise ValueError(f"must have one input, got {len(tables.inputs)}; convert a network with one alone")
    if not 1 <= len(tables.operators) <= MOST_NODES:
        raise ValueError(f"must have 1 to {MOST_NODES:,} operators, got {len(tables.operators):,}")
    return replace(_GraphBuilder(tables, len(data)).graph(), labels=labels_of_texts(data))


class _GraphBuilder:
    """The source graph as it is built, operator by operator."""

    def __init__(self, tables: FileTables, size: int) -> None:
        self._tables = tables
        self._names = _unique_names([tensor.name for tensor in tables.tensors])
        self._constants: dict[str, Array] = {}
        self._detector = _detector(tables)
        self._dilated = _dilated(tables)
        self._passed = {place for dilation in self._dilated.values() for place in dilation.passed}
        if self._detector is not None:
            self._passed.add(self._detector)
        self._maps = set(tables.inputs)  # tensors that are no constants
        self._reads = 0
        self._most_reads = MOST_READS * size

    def graph(self) -> SourceGraph:
        """The graph, checked."""
        tables = self._tables
        nodes = [node for k, operator in enumerate(tables.operators) for node in self._nodes(k, operator)]
        used = {name for node in nodes for name in (*node.inputs, *node.outputs)}
        outputs = tables.outputs
        detections = None
        if self._detector is not None:
            with naming(self._name_of(self._detector)):
                detections = self._detections(tables.operators[self._detector])
            read = tables.operators[self._detector]
            outputs = (*read.inputs, *(number for number in outputs if number not in read.outputs))
        names = tuple(self._names[number] for number in outputs)
        source = SourceGraph(
            name=tables.name,
            source=self._source(tables.inputs[0]),
            outputs=names,
            output_names=names,
            detections=detections,
            nodes=tuple(nodes),
            constants=self._constants,
            opset=17,
            shapes={
                name: check_shape(f"tensor {printable(name)}", tensor.shape)
                for name, tensor in zip(self._names, tables.tensors)
                if tensor.shape and name in used and name not in self._constants
            },
        )
        source.check()
        return with_real_scores(source)

    def _source(self, number: int) -> SourceInput:
        tensor = self._tables.tensors[number]
        what = f"input {printable(self._names[number])}"
        if tensor.kind not in INPUTS:
            rule = f"must be of type {', '.join(INPUTS)}, got {tensor.kind}"
            raise ValueError(f"{what}: {rule}; convert it with TFLITE_BUILTINS_INT8 and inference_input_type=tf.int8")
        shape = check_shape(what, tensor.shape)
        if len(shape) < 2 or shape[0] != 1:
            raise ValueError(f"{what}: must be one image, shape (1, ...), got {shape}")
        source = SourceInput(name=self._names[number], shape=shape, dtype=np.dtype(DTYPES[tensor.kind]))
        return source.quantised(tensor.scale, tensor.zero)

    def _nodes(self, place: int, operator: OperatorTable) -> Iterator[SourceNode]:
        """The nodes of an operator."""
        name = self._name_of(place)
        real = operator.kind in OF_REAL_NUMBERS and self._is_real(operator)
        known = operator.kind in (*RESHAPES, "SHAPE", ZEROS, *MOVERS)
        is_imported = known or real or (TFLITE, operator.kind) in OPERATORS
        several = not is_imported or operator.kind in SPLITS  # what is refused later may have several
        most_outputs = MOST_INPUTS if several else 1
        if not operator.inputs or not operator.outputs or len(operator.outputs) > most_outputs:
            count = f"{len(operator.inputs)} inputs and {len(operator.outputs)} outputs"
            raise ValueError(f"{name}: must have inputs and one output, got {count}")
        first = operator.inputs[0]
        result = operator.outputs[0]
        self._maps.update(operator.outputs)
        if place in self._passed:
            return
        if place in self._dilated:
            with naming(name):
                yield from self._dilated_nodes(place, operator)
            return
        if not is_imported:
            yield self._unknown(name, operator)
            return
        with naming(name):
            inputs = tuple("" if number < 0 else self._read(number) for number in operator.inputs)
            node = SourceNode(
                name=name,
                op=operator.kind,
                domain=TFLITE,
                inputs=inputs,
                outputs=(self._names[result],),
                attributes=self._attributes(operator),
            )
            if operator.kind in SPLITS:
                yield from nodes_of_parts(node, [self._names[number] for number in operator.outputs])
            elif operator.kind in RESHAPES:
                yield self._reshape(node, self._tables.tensors[first], self._tables.tensors[result])
            elif real:
                yield SourceNode(name=name, op=OF_REAL_NUMBERS[operator.kind], inputs=inputs, outputs=node.outputs)
            elif operator.kind == ZEROS:
                kind = self._tables.tensors[result].kind
                self._constants[node.outputs[0]] = np.zeros(1, DTYPES.get(kind, np.float32))
            elif operator.kind == "SHAPE":
                yield SourceNode(name=name, op="Shape", inputs=inputs[:1], outputs=node.outputs)
            else:
                yield node

    def _is_real(self, operator: OperatorTable) -> bool:
        """Whether an operator reads real numbers, beside which only conditions may stand, and has no activation of its
        own."""
        kinds = {self._tables.tensors[number].kind for number in operator.inputs if number >= 0}
        return kinds - {"BOOL"} == {"FLOAT32"} and operator.options.get("activation", "NONE") == "NONE"

    def _detections(self, operator: OperatorTable) -> Detections:
        """The detector's last step, which the operator at the end computes."""
        kinds = [self._tables.tensors[number].kind for number in operator.inputs]
        if kinds != ["FLOAT32"] * 3:
            raise ValueError(f"boxes, scores and anchors must be of type FLOAT32, got {', '.join(kinds)}")
        self._read(operator.inputs[2])
        options = dict(operator.options)
        scales = tuple(options.pop(name) for name in ("y", "x", "h", "w"))
        names = tuple(printable(self._names[number]) for number in operator.outputs)
        return Detections(boxes=0, scores=1, anchors=2, names=names, scales=scales, **options)

    def _dilated_nodes(self, place: int, operator: OperatorTable) -> Iterator[SourceNode]:
        """A convolution between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: padding, and the convolution with dilations.
        A map without rows gets one in front of the convolution."""
        dilation = self._dilated[place]
        tables = self._tables
        before, convolution = (tables.operators[number] for number in (dilation.passed[0], dilation.convolution))
        source = self._read(before.inputs[0])
        result = self._names[operator.outputs[0]]
        padded = _free_name(f"{result}/padded", self._names)
        widths = _free_name(f"{padded}/widths", self._names)
        self._constants[widths] = np.array([(0, 0), *dilation.padding, (0, 0)], np.int32)
        scale = _scale(tables.tensors[before.inputs[0]])
        scales = {"scales": (scale, _scale(None)), "result_scale": scale}
        inputs = (source, widths)
        yield SourceNode(
            name=f"PAD_{place}", op="PAD", domain=TFLITE, inputs=inputs, outputs=(padded,), attributes=scales
        )
        reads = padded
        makes = result
        if not dilation.has_rows:
            reads, makes = (_free_name(f"{name}/row", self._names) for name in (padded, result))
            channels = tables.tensors[convolution.inputs[0]].shape[-1]
            yield self._reshaped(self._name_of(dilation.passed[1]), padded, reads, (1, 1, -1, channels))
        kind = convolution.kind
        yield SourceNode(
            name=f"{kind}_{place}",
            op=kind,
            domain=TFLITE,
            inputs=(reads, *("" if number < 0 else self._read(number) for number in convolution.inputs[1:])),
            outputs=(makes,),
            attributes={**self._attributes(convolution), "dilations": dilation.block},
        )
        if not dilation.has_rows:
            channels = tables.tensors[convolution.outputs[0]].shape[-1]
            yield self._reshaped(self._name_of(dilation.passed[-1]), makes, result, (1, -1, channels))

    def _name_of(self, place: int) -> str:
        """The name of an operator."""
        return f"{self._tables.operators[place].kind}_{place}"

    def _reshaped(self, name: str, source: str, result: str, shape: tuple[int, ...]) -> SourceNode:
        """ONNX's Reshape of one tensor to another."""
        wanted = _free_name(f"{result}/shape", self._names)
        self._constants[wanted] = np.array(shape, np.int64)
        return SourceNode(name=name, op="Reshape", inputs=(source, wanted), outputs=(result,))

    def _unknown(self, name: str, operator: OperatorTable) -> SourceNode:
        """A node of an operator that is not imported, which is refused where nodes are rewritten.

        Its state, which nobody makes, is left out.
        """
        tensors = self._tables.tensors
        maps = self._maps
        inputs = tuple(self._read(number) for number in operator.inputs if number in maps or tensors[number].data.size)
        outputs = tuple(self._names[number] for number in operator.outputs)
        return SourceNode(name=name, op=operator.kind, domain=TFLITE, inputs=inputs, outputs=outputs)

    def _read(self, number: int) -> str:
        """The name of a tensor that is read; it becomes a constant if the file holds its values."""
        tensor = self._tables.tensors[number]
        name = self._names[number]
        if tensor.data.size and name not in self._constants:
            self._constants[name] = _constant(tensor)
        self._reads += tensor.data.size
        if self._reads > self._most_reads:
            raise ValueError(f"must read constants at most {MOST_READS} times, got {self._reads:,} bytes")
        return name

    def _reshape(self, node: SourceNode, source: TensorTable, result: TensorTable) -> SourceNode:
        """ONNX's Reshape to the shape that the file states of the result. Where the file states a shape of another size
        than the input's, as Keras does for any number of images, the shape is the one that RESHAPE reads."""
        if node.op == "RESHAPE" and len(node.inputs) > 1 and prod(result.shape) != prod(source.shape):
            return SourceNode(name=node.name, op="Reshape", inputs=node.inputs[:2], outputs=node.outputs)
        return self._reshaped(node.name, node.inputs[0], node.outputs[0], check_shape("the result", result.shape))

    def _attributes(self, operator: OperatorTable) -> dict[str, Any]:
        """Scales and options."""
        tensors = [self._tables.tensors[number] if number >= 0 else None for number in operator.inputs]
        return {
            "scales": tuple(_scale(tensor) for tensor in tensors),
            "result_scale": _scale(self._tables.tensors[operator.outputs[0]]),
            **operator.options,
        }


@dataclass(frozen=True, kw_only=True)
class _Dilated:
    """A convolution of parts of a map, which is one with dilations of the whole map."""

    passed: tuple[int, ...]
    """Numbers of the operators in front: SPACE_TO_BATCH_ND, which takes the map apart, and the convolution; of a map
    without rows, which a convolution reads as one row, also what gives the map that row and takes it away again."""
    convolution: int
    """Which of these the convolution is."""
    block: tuple[int, int]
    """Its dilations."""
    padding: tuple[tuple[int, int], ...]
    """Of rows and columns, or of columns alone, how many zeros come before and behind."""

    @property
    def has_rows(self) -> bool:
        """Whether the map has rows."""
        return len(self.passed) == 2


CONVOLUTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D")


def _dilated(tables: FileTables) -> dict[int, _Dilated]:
    """By number of BATCH_TO_SPACE_ND, the convolutions with dilations that TensorFlow writes as several operators."""
    operators = tables.operators
    makers = {result: place for place, operator in enumerate(operators) for result in operator.outputs}
    readers = Counter(number for operator in operators for number in operator.inputs)

    def in_front(operator: OperatorTable) -> list[int]:
        """The numbers of the operators in front, back to SPACE_TO_BATCH_ND, each of which alone reads the one before;
        none if there are others."""
        out = list[int]()
        while operator.inputs and readers[operator.inputs[0]] == 1 and len(out) < 4:
            place = makers.get(operator.inputs[0])
            if place is None:
                break
            operator = operators[place]
            out.insert(0, place)
            if operator.kind == "SPACE_TO_BATCH_ND":
                return out
            if operator.kind not in (*CONVOLUTIONS, *RESHAPES):
                break
        return []

    out = {}
    for place, last in enumerate(operators):
        passed = in_front(last) if last.kind == "BATCH_TO_SPACE_ND" and len(last.outputs) == 1 else list[int]()
        kinds = [operators[number].kind in CONVOLUTIONS for number in passed]
        if kinds not in ([False, True], [False, False, True, False]) or operators[passed[0]].inputs[0] < 0:
            continue
        axes = 3 - len(passed) // 2  # rows and columns, or columns alone
        before = operators[passed[0]]
        convolution = operators[passed[kinds.index(True)]]
        numbers = [_whole(tables, number) for number in (*before.inputs[1:3], *last.inputs[1:3])]
        plain = (
            convolution.options["auto_pad"] == "VALID"
            and convolution.options["strides"] == convolution.options["dilations"] == (1, 1)
            and [values.shape for values in numbers] == [(axes,), (axes, 2), (axes,), (axes, 2)]
            and (axes == 2 or _is_of_one_row(tables, passed))
        )
        if not plain:
            continue
        block, sides, block_behind, crops = numbers
        left = sides - crops
        if (block == block_behind).all() and (left >= 0).all() and (block >= 1).all():
            out[place] = _Dilated(
                passed=tuple(passed),
                convolution=passed[kinds.index(True)],
                block=(1, *block.tolist())[-2:],
                padding=tuple((int(begin), int(end)) for begin, end in left),
            )
    return out


def _is_of_one_row(tables: FileTables, passed: Sequence[int]) -> bool:
    """Whether of the operators behind SPACE_TO_BATCH_ND the first gives a map one row, and the last takes it away."""
    _, gives, _, takes = (tables.operators[number] for number in passed)
    for operator, wider, narrower in ((gives, "outputs", "inputs"), (takes, "inputs", "outputs")):
        wide, narrow = (tables.tensors[getattr(operator, each)[0]].shape for each in (wider, narrower))
        if len(narrow) != 3 or len(wide) != 4 or wide[1] != 1 or wide[2:] != narrow[1:]:
            return False
    return True


def _whole(tables: FileTables, number: int) -> Array:
    """The whole numbers of a constant; none where the tensor is no such constant."""
    tensor = tables.tensors[number]
    return _constant(tensor) if number >= 0 and tensor.kind == "INT32" and tensor.data.size else np.zeros(0, np.int64)


def _detector(tables: FileTables) -> int | None:
    """The number of the operator that makes detections at the end; None where there is none, or others read of it."""
    for place, operator in enumerate(tables.operators):
        plain = operator.kind == DETECTIONS and len(operator.inputs) == 3 and min(operator.inputs) >= 0
        if plain and len({*operator.outputs}) == 4 and {*operator.outputs} <= {*tables.outputs}:
            read = {number for other in tables.operators for number in other.inputs}
            return None if read & {*operator.outputs} else place
    return None


def _unique_names(names: Sequence[str]) -> list[str]:
    """A name for each tensor, its own where no other has it: a file may give several the same, or none."""
    counts = Counter(names)
    taken = {name for name in names if name and counts[name] == 1}
    unique = []
    for number, name in enumerate(names):
        if name not in taken:
            name = _free_name(f"{name}:{number}", taken)
            taken.add(name)
        unique.append(name)
    return unique


def _free_name(name: str, taken: Collection[str]) -> str:
    """The name, longer if it is taken: a file may have one that looks like ours."""
    while name in taken:
        name += "'"
    return name


def _scale(tensor: TensorTable | None) -> TensorScale:
    if tensor is None:
        return TensorScale(kind="", scale=np.zeros(0, np.float32), zero=np.zeros(0, np.int64))
    return TensorScale(kind=tensor.kind, scale=tensor.scale, zero=tensor.zero)


def _constant(tensor: TensorTable) -> Array:
    """The values of a tensor that the file holds: a view of its bytes."""
    what = f"constant {printable(tensor.name)}"
    if tensor.kind not in DTYPES:
        raise ValueError(f"{what}: must be of type {', '.join(DTYPES)}, got {tensor.kind}")
    dtype: np.dtype[Any] = np.dtype(DTYPES[tensor.kind])
    shape = check_shape(what, tensor.shape)
    if prod(shape) * dtype.itemsize != tensor.data.size:
        raise ValueError(f"{what}: must have {prod(shape) * dtype.itemsize:,} bytes, got {tensor.data.size:,}")
    return tensor.data.view(dtype).reshape(shape)
