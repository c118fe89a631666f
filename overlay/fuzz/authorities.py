"""Results of the tools from which files come: onnxruntime, qonnx, and TFLite's reference kernels.

None of them is needed to import files. Which ones are installed, `missing` says.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.overlay.importers.integer_types import integer_ends

ROUNDING = 1e-6
"""How far sums in floating point of 32 bits may be off, relative to the largest one of a map."""
LEAST_STEPS = 16
"""Steps of a quantiser that the largest sum of a map counts as at least: what is added may be larger than the sum."""
QUANTISERS = ("QuantizeLinear", "Quant", "IntQuant", "BipolarQuant", "Sign")
"""Operators that round."""


class FileRefused(ValueError):
    """An authority doesn't take a file."""


@dataclass(frozen=True)
class FileNumbers:
    """How a file writes real numbers: as integers, (integer - zero) * scale, or as what these stand for."""

    scale: float
    zero: int
    low: int
    """The least integer that there is."""
    integers: bool
    """Whether integers leave."""

    @property
    def least(self) -> float:
        """The least real number that can be written."""
        return (self.low - self.zero) * self.scale

    def real(self, x: Array) -> Array:
        """The real numbers."""
        return (x - self.zero) * self.scale if self.integers else x


@dataclass(frozen=True, eq=False)
class Computed:
    """An authority's outputs for images."""

    outputs: list[Array]
    """(N, ...) float64, in the file's order."""
    steps: list["FileNumbers | None"]
    """Of each output, how the file writes real numbers there; None where it is not said."""
    tied: Array
    """(N,) bool: images of which a quantiser reads a value within rounding of where its result changes."""


@dataclass(frozen=True)
class Authority:
    """A tool that computes files."""

    package: str
    """Name of the package, for pip."""
    module: str
    """Name of the module that Python imports."""
    run: Callable[[bytes, bytes, Array], Computed]
    """``run(data, twin, images)``; ``twin`` is as in `RandomFile`."""

    @property
    def missing(self) -> bool:
        """Whether it is not installed."""
        return find_spec(self.module) is None


def _session(data: bytes) -> Any:
    """A session of onnxruntime, node by node without rewritings."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    # Without instructions of 8 bits that saturate on some processors:
    options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        return ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has several, which no module names
        raise FileRefused(f"onnxruntime: {_line(error)}") from None


def _run(session: Any, images: Array) -> list[Array]:
    (source,) = session.get_inputs()
    types = {"tensor(float)": np.float32, "tensor(uint8)": np.uint8, "tensor(int8)": np.int8}
    try:
        return [np.asarray(x) for x in session.run(None, {source.name: images.astype(types[source.type])})]
    except Exception as error:
        raise FileRefused(f"onnxruntime: {_line(error)}") from None


def by_onnxruntime(data: bytes, twin: bytes, images: Array) -> Computed:
    """onnxruntime's results. Where files compute on integers alone, their twin's quantisers say what is tied."""
    outputs = [x.astype(np.float64) for x in _run(_session(data), images)]
    read = _read_by_quantisers(twin or data, images)
    return Computed(outputs, _steps_of_outputs(data), _tied(read, len(images)))


def _steps_of_outputs(data: bytes) -> list[FileNumbers | None]:
    """Of each output of an ONNX file that a quantiser or its inverse makes, how it is written."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load_from_string(data).graph
    constants = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    makers = {name: node for node in graph.node for name in node.output}
    numbers: list[FileNumbers | None] = []
    for output in graph.output:
        node = makers.get(output.name)
        if node is None or node.op_type not in ("QuantizeLinear", "DequantizeLinear"):
            numbers.append(None)
            continue
        scale, zero = (constants[name] for name in node.input[1:3])
        ends = integer_ends(zero.dtype)
        assert ends is not None
        one = scale.size == 1  # else channels have scales of their own
        steps = FileNumbers(float(scale), int(zero), ends[0], node.op_type == "QuantizeLinear") if one else None
        numbers.append(steps)
    return numbers


def _read_by_quantisers(data: bytes, images: Array) -> list[tuple[Array, Array]]:
    """Results of `_to_boundary` for each quantiser of an ONNX file, each of (N, ...) values."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load_from_string(data)
    constants = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    quantisers = [node for node in model.graph.node if node.op_type in QUANTISERS and node.input[0] not in constants]
    del model.graph.output[:]
    names = list(dict.fromkeys(node.input[0] for node in quantisers))
    model.graph.output.extend(onnx.helper.make_tensor_value_info(name, 1, None) for name in names)
    source = model.graph.input[0].name
    if source in names:  # no result of a node
        model.graph.output.remove(model.graph.output[names.index(source)])
    kept = [name for name in names if name != source]
    values = {source: images}
    if kept:
        values |= dict(zip(kept, _run(_session(model.SerializeToString()), images)))
    return [_to_boundary(node, values[node.input[0]], constants) for node in quantisers]


def _to_boundary(node: Any, x: Array, constants: Mapping[str, Array]) -> tuple[Array, Array]:
    """How far each value that a quantiser reads is from where the result changes, and the value itself, both in steps
    of the quantiser."""
    x = x.astype(np.float64)
    if node.op_type in ("BipolarQuant", "Sign"):
        return np.abs(x), x
    scale = constants[node.input[1]].astype(np.float64)
    if node.op_type == "QuantizeLinear":
        if scale.size > 1:
            axis = next((int(each.i) for each in node.attribute if each.name == "axis"), 1)
            scale = np.moveaxis(scale.reshape(-1, *[1] * (x.ndim - 1)), 0, axis)
        steps = x / scale
        rounding = "ROUND"
    else:
        steps = x / scale + constants[node.input[2]]
        rounding = next((_text(each) for each in node.attribute if each.name == "rounding_mode"), "ROUND")
    offset = 0.0 if rounding in ("FLOOR", "CEIL", "UP", "DOWN") else 0.5
    away = steps - offset
    far = np.full(away.shape, np.inf)  # an infinite value is on no boundary
    return np.abs(np.subtract(away, np.rint(away), out=far, where=np.isfinite(away))), steps


def _text(attribute: Any) -> str:
    """The text of an attribute."""
    return str(attribute.s.decode()).upper()


def _tied(read: Sequence[tuple[Array, Array]], images: int) -> Array:
    """Images of which a quantiser reads a value at a boundary, to within rounding."""
    tied = np.zeros(images, bool)
    for away, steps in read:
        room = ROUNDING * np.maximum(LEAST_STEPS, np.abs(steps.reshape(images, -1)).max(axis=1))
        tied |= (away.reshape(images, -1) <= room[:, None]).any(axis=1)
    return tied


def by_qonnx(data: bytes, twin: bytes, images: Array) -> Computed:
    """QONNX's results: its own operators by qonnx, all others by onnxruntime, node by node."""
    import onnx
    from qonnx.core.modelwrapper import ModelWrapper
    from qonnx.core.onnx_exec import execute_onnx
    from qonnx.transformation.infer_shapes import InferShapes

    model = onnx.load_from_string(data)
    source = model.graph.input[0]
    source.type.tensor_type.shape.dim[0].dim_value = len(images)
    outputs = [each.name for each in model.graph.output]
    constants = {each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it tells whole nodes
            wrapped = ModelWrapper(model).transform(InferShapes())
            tensors = execute_onnx(wrapped, {source.name: images.astype(np.float32)}, return_full_exec_context=True)
    except Exception as error:
        raise FileRefused(f"qonnx: {_line(error)}") from None
    read = [
        _to_boundary(node, tensors[node.input[0]], constants)
        for node in model.graph.node
        if node.op_type in QUANTISERS and node.input[0] not in constants
    ]
    results = [np.asarray(tensors[name], np.float64) for name in outputs]
    return Computed(results, [None] * len(results), _tied(read, len(images)))


def _serve(calls: Connection) -> None:
    """Answer calls of `litert`, each with what it gives or raises, until nobody is there to call."""
    with suppress(EOFError):
        while True:
            data, images = calls.recv()
            answer: Computed | Exception
            try:
                answer = litert(data, images)
            except Exception as error:  # whatever it is, it is raised where it was called
                answer = error
            calls.send(answer)


@cache
def _kernels() -> Connection:
    """A connection to a process that computes with TFLite's kernels; it ends with this one."""
    spawn = get_context("spawn")
    here, there = spawn.Pipe()
    spawn.Process(target=_serve, args=(there,), daemon=True).start()
    there.close()  # so that the other one's end is noticed
    return here


def by_litert(data: bytes, twin: bytes, images: Array) -> Computed:
    """The results of TFLite's reference kernels, from another process: a kernel ends its process where a file breaks a
    rule that nothing checked, as GREATER_EQUAL does at a scale of 1."""
    try:
        _kernels().send((data, images))
        answer = _kernels().recv()
    except (EOFError, ConnectionError):
        _kernels.cache_clear()
        raise FileRefused("ai-edge-litert: a kernel ended the process") from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def litert(data: bytes, images: Array) -> Computed:
    """The results of TFLite's reference kernels, from this process."""
    import tflite
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    try:
        interpreter = Interpreter(
            model_content=data, experimental_op_resolver_type=OpResolverType.BUILTIN_REF, num_threads=1
        )
        interpreter.allocate_tensors()
    except (RuntimeError, ValueError) as error:
        raise FileRefused(f"ai-edge-litert: {_line(error)}") from None
    (source,) = interpreter.get_input_details()
    details = interpreter.get_output_details()
    results: list[list[Array]] = [[] for _ in details]
    for image in images:
        interpreter.set_tensor(source["index"], image[None].astype(source["dtype"]))
        interpreter.invoke()
        for values, detail in zip(results, details):
            values.append(interpreter.get_tensor(detail["index"]).astype(np.float64).ravel())  # perhaps of several rows
    graph = tflite.Model.GetRootAs(data, 0).Subgraphs(0)
    order = [[detail["index"] for detail in details].index(number) for number in graph.OutputsAsNumpy().tolist()]
    steps: list[FileNumbers | None] = []
    for number in graph.OutputsAsNumpy().tolist():
        written = graph.Tensors(number)
        is_real = written.Type() == tflite.TensorType.FLOAT32
        if is_real:  # behind DEQUANTIZE, which reads integers
            operators = map(graph.Operators, range(graph.OperatorsLength()))
            written = graph.Tensors(next(each.Inputs(0) for each in operators if each.Outputs(0) == number))
        quantised = written.Quantization()
        low = 0 if written.Type() == tflite.TensorType.UINT8 else -128
        steps.append(FileNumbers(float(quantised.Scale(0)), int(quantised.ZeroPoint(0)), low, not is_real))
    return Computed([np.stack(results[place]) for place in order], steps, np.zeros(len(images), bool))


def _line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


ONNXRUNTIME = Authority("onnxruntime", "onnxruntime", by_onnxruntime)
QONNX = Authority("qonnx", "qonnx", by_qonnx)
LITERT = Authority("ai-edge-litert", "ai_edge_litert", by_litert)
