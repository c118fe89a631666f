"""Writes TFLite files with the schema's own builder, from plain lists of tensors and operators."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.overlay.importers.tflite_tables import MARK

OLD_CODE = "DeprecatedBuiltinCode"
MOST_OLD_CODE = 127
"""The largest number of the older field, which says that the code is in the newer one alone."""
CODES = ("BuiltinCode", OLD_CODE)
"""Fields that an operator's code may stand in."""
KINDS = {"int8": "INT8", "uint8": "UINT8", "int32": "INT32", "int64": "INT64", "float32": "FLOAT32"}
"""The schema's words for types of numpy's."""


@dataclass
class TfliteTensor:
    """A tensor of a file."""

    name: str
    shape: tuple[int, ...]
    kind: str
    """The schema's word for its type."""
    scale: tuple[float, ...] = ()
    zero: tuple[int, ...] = ()
    """scale, zero: one, or one a channel; none of a tensor that is not quantised."""
    axis: int = 0
    """Of the channels, where there is one scale for each."""
    data: bytes = b""
    """Of a constant."""

    @classmethod
    def constant(cls, name: str, values: Array, scale: Iterable[float] = ()) -> "TfliteTensor":
        """A constant with symmetric scales: of weights of a depthwise convolution one for each of the last axis, of
        others one for each of the first."""
        values = np.asarray(values, order="C")
        scales = tuple(float(each) for each in scale)
        axis = 3 if values.ndim == 4 and values.shape[0] == 1 else 0
        return cls(name, values.shape, KINDS[str(values.dtype)], scales, (0,) * len(scales), axis, values.tobytes())


class TfliteOperator(NamedTuple):
    """An operator of a file."""

    kind: str
    """The schema's word, or that of an operator of nobody's schema."""
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    """inputs, outputs: numbers of tensors; -1 is an input that is left out."""
    options: str | None
    """The schema's table of its options."""
    fields: dict[str, Any]
    """Values of the table's fields."""


def tflite_bytes(
    tensors: Sequence[TfliteTensor],
    operators: Sequence[TfliteOperator],
    outputs: Sequence[int],
    *,
    codes: Sequence[str] = CODES,
    shapes: Mapping[int, tuple[int, ...]] | None = None,
) -> bytes:
    """The bytes of a file whose input is tensor 0.

    Parameters
    ----------
    tensors, operators
    outputs
        Numbers of the tensors that leave.
    codes
        Some of CODES.
    shapes
        By number, shapes that the file states of tensors in place of their own.
    """
    file = _File()
    buffers = [file.table("Buffer")]
    written = []
    for number, tensor in enumerate(tensors):
        data = file.b.CreateByteVector(tensor.data) if tensor.data else None
        buffers.append(file.table("Buffer", Data=data))
        written.append(file.tensor(tensor, (shapes or {}).get(number, tensor.shape), len(buffers) - 1))
    kinds = sorted({operator.kind for operator in operators})
    nodes = [file.operator(kinds, operator) for operator in operators]
    words = [file.code(kind, codes) for kind in kinds]
    inputs = file.numbers([0], np.int32)
    leaving = file.numbers(outputs, np.int32)
    tables, operations = file.tables(written), file.tables(nodes)
    name = file.b.CreateString("main")
    graph = file.table("SubGraph", Tensors=tables, Inputs=inputs, Outputs=leaving, Operators=operations, Name=name)
    graphs, contents, table = file.tables([graph]), file.tables(buffers), file.tables(words)
    model = file.table("Model", Version=3, OperatorCodes=table, Subgraphs=graphs, Buffers=contents)
    file.b.Finish(model, file_identifier=MARK)
    return bytes(file.b.Output())


class _File:
    """Tables, written from the innermost outwards, as flatbuffers wants it."""

    def __init__(self) -> None:
        import flatbuffers
        import tflite

        self._schema = tflite
        self.b = flatbuffers.Builder(1024)

    def table(self, name: str, **fields: Any) -> int:
        getattr(self._schema, f"{name}Start")(self.b)
        for key, value in fields.items():
            if value is not None:
                getattr(self._schema, f"{name}Add{key}")(self.b, value)
        return getattr(self._schema, f"{name}End")(self.b)  # type: ignore[no-any-return]

    def tables(self, offsets: Sequence[int]) -> int:
        self.b.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.b.PrependUOffsetTRelative(offset)
        return self.b.EndVector()  # type: ignore[no-any-return]

    def numbers(self, values: Sequence[Any], dtype: Any) -> int | None:
        return self.b.CreateNumpyVector(np.array(values, dtype)) if len(values) else None

    def code(self, kind: str, codes: Sequence[str]) -> int:
        words = self._schema.BuiltinOperator
        code = getattr(words, kind, words.CUSTOM)
        custom = self.b.CreateString(kind) if code == words.CUSTOM else None
        numbers = {field: min(code, MOST_OLD_CODE) if field == OLD_CODE else code for field in codes}
        return self.table("OperatorCode", Version=1, CustomCode=custom, **numbers)

    def tensor(self, tensor: TfliteTensor, shape: tuple[int, ...], buffer: int) -> int:
        sizes = self.numbers(shape, np.int32)
        name = self.b.CreateString(tensor.name)
        scale, zero = self.numbers(tensor.scale, np.float32), self.numbers(tensor.zero, np.int64)
        quantisation = None
        if tensor.scale:
            quantisation = self.table(
                "QuantizationParameters", Scale=scale, ZeroPoint=zero, QuantizedDimension=tensor.axis
            )
        kind = getattr(self._schema.TensorType, tensor.kind)
        return self.table("Tensor", Shape=sizes, Type=kind, Buffer=buffer, Name=name, Quantization=quantisation)

    def operator(self, kinds: Sequence[str], operator: TfliteOperator) -> int:
        kind, inputs, outputs, options, fields = operator
        table = self.table(options, **fields) if options else None
        custom = None
        if fields and not options:
            from flatbuffers import flexbuffers

            custom = self.b.CreateByteVector(bytes(flexbuffers.Dumps(fields)))
        read, written = self.numbers(inputs, np.int32), self.numbers(outputs, np.int32)
        union = getattr(self._schema.BuiltinOptions, options) if options else None
        return self.table(
            "Operator",
            OpcodeIndex=kinds.index(kind),
            Inputs=read,
            Outputs=written,
            BuiltinOptionsType=union,
            BuiltinOptions=table,
            CustomOptions=custom,
        )
