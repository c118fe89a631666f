"""Random ONNX files in three forms: with QuantizeLinear and DequantizeLinear ("qdq"), with onnxruntime's operators on
integers ("qoperator"), and with QONNX's quantisers ("qonnx").

Activations are those of the importer's table, with random attributes of ONNX's schemas; QONNX's roundings are those of
its table of these.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import ceil, log2, prod, sqrt
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.overlay.importers.activations import ACTIVATIONS, OVER_CLASSES, Activation
from bitloom.overlay.importers.quantisers import ROUNDINGS
from bitloom.overlay.importers.references import reference
from bitloom.overlay.importers.source import SourceNode

from .pick import Pick
from .random_files import MOST_CHANNELS, MOST_VALUES, Drawing, RandomFile

Shape = tuple[int, ...]
QONNX = "qonnx.custom_op.general"
MICROSOFT = "com.microsoft"
OPSETS = (13, 17, 21)
IR_VERSION = 10
NARROW_OPSET = 21
"""The first of OPSETS with integers of 4 bits."""
SPREAD = 2.5
"""How many standard deviations from its middle a sum is taken to reach."""
CLOSINGS = (*OVER_CLASSES, "Sigmoid")
"""What the host computes at an end, with values of its own."""
EXACT_TRIES = 30
"""Files that are begun at most until floating point is exact in one."""
PLACES = 65
"""Places at which an activation's results are looked at, to see how far they reach."""


@dataclass(frozen=True, kw_only=True)
class Map:
    """A map of a file: integers, or in QONNX's form the real numbers that a quantiser has made."""

    name: str
    shape: Shape
    """Of one image: (channels, rows, columns), (channels, columns) or (values,)."""
    low: float
    high: float
    """low, high: from where to where its real numbers reach, about."""
    scale: float = 1.0
    zero: int = 0
    kind: str = "INT8"
    """scale, zero, kind: of the integers."""
    pair: tuple[str, ...] = ()
    """Names of its scale and its zero point."""

    @property
    def rms(self) -> float:
        """About the root mean square of its values."""
        return max(abs(self.low), abs(self.high)) / 2


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Weights of a file."""

    real: str
    """The tensor of real numbers."""
    integers: tuple[str, ...]
    """Names of the integers, their scales and zero points; none in QONNX's form."""
    scale: Array
    """One, or one an output."""
    rms: float
    """About the root mean square of the real numbers."""


def _of_channels(shape: Shape) -> Shape:
    """The shape of constants of a map of this shape, one a channel."""
    return (shape[0], *[1] * (len(shape) - 1))


def _common(reach: tuple[float, float], ends: tuple[float, float]) -> tuple[float, float]:
    """From where to where real numbers reach that a quantiser cuts; to its own ends where it leaves none."""
    low, high = max(reach[0], ends[0]), min(reach[1], ends[1])
    return (low, high) if low < high else ends


class OnnxDrawing(Drawing[Map]):
    """An ONNX file while it is drawn.

    Parameters
    ----------
    pick
        Makes all choices.
    form
        ``"qdq"``, ``"qoperator"`` or ``"qonnx"``.
    """

    STEPS = (
        *("conv",) * 6,
        *("join",) * 3,
        *("pool",) * 3,
        *("activation",) * 2,
        "transposed",
        "with_constant",
        "gated",
        "concatenate",
        "split",
        "cut",
        "pad",
        "resize",
        "blocks",
        "transpose",
        "reduce",
        "reshape",
        "dense",
        "dense_at_each_place",
        "requantise",
        "nothing",
    )

    def __init__(self, pick: Pick, form: str) -> None:
        from onnx import TensorProto

        super().__init__(pick)
        self.form = form
        self.opset = pick.of(OPSETS)
        self.kind = pick.of(["INT8", "UINT8"])
        self.symmetric = pick.flip()
        self.exact = self.powers
        """Whether floating point has been exact so far."""
        self.has_narrow = form == "qdq" and self.opset >= NARROW_OPSET
        """Whether there are integers of 4 bits."""
        self._types = TensorProto
        self._nodes: list[Any] = []
        self._twin: list[Any] = []
        self._targets = [self._nodes, self._twin]
        self._constants: list[Any] = []
        self._count = 0
        self._source: tuple[int, Shape] = (TensorProto.FLOAT, ())
        self._kinds: dict[str, int] = {}  # of tensors that are no real numbers

    # What a file is made of

    def draw(self) -> RandomFile:
        """The file."""
        here = self.source()
        if not self.chance(8):  # a network begins with weights, as an engine does
            here = self.conv(here) or self.dense(here)
        here = self.grow(here)
        outputs = [self.end(here), *(self.leaves(each) for each in self.leaving(here)[1:])]
        halves = self.powers and self.exact
        twin = self._file(self._twin, outputs) if self.form == "qoperator" else b""
        return RandomFile(data=self._file(self._nodes, outputs), twin=twin, halves=halves)

    def _file(self, nodes: Sequence[Any], outputs: Sequence[str]) -> bytes:
        from onnx import helper

        kind, shape = self._source
        real = self._types.FLOAT
        graph = helper.make_graph(
            nodes,
            "random",
            [helper.make_tensor_value_info("x", kind, ["N", *shape])],
            [helper.make_tensor_value_info(name, self._kinds.get(name, real), None) for name in dict.fromkeys(outputs)],
            self._constants,
        )
        versions = [helper.make_opsetid("", self.opset)]
        versions += [helper.make_opsetid(QONNX, 1)] if self.form == "qonnx" else [helper.make_opsetid(MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=versions, ir_version=IR_VERSION)
        return model.SerializeToString(deterministic=True)  # type: ignore[no-any-return]

    def constant(self, values: Any, dtype: Any = np.float32) -> str:
        """The name of a constant; ``dtype`` is numpy's type, or the word of one of ONNX's."""
        from onnx import helper, numpy_helper

        name = f"c{len(self._constants)}"
        if isinstance(dtype, str) and dtype.endswith("4"):
            values = np.asarray(values)
            kind = getattr(self._types, dtype)
            self._constants.append(helper.make_tensor(name, kind, values.shape, values.ravel().tolist()))
        else:
            made = np.asarray(values, dtype.lower() if isinstance(dtype, str) else dtype)
            self._constants.append(numpy_helper.from_array(made, name))
        return name

    def node(self, op: str, *inputs: str, domain: str = "", out: str = "", kind: str = "", **attributes: Any) -> str:
        """Append a node with one result; gives its name. ``kind`` is the result's type, of real numbers none."""
        return self.several(op, inputs, [out or self._name()], domain, kind, **attributes)[0]

    def several(
        self, op: str, inputs: Sequence[str], out: Sequence[str], domain: str = "", kind: str = "", **attributes: Any
    ) -> list[str]:
        """Append a node with several results."""
        from onnx import helper

        name = f"{op}_{self._count}"
        self._count += 1
        for nodes in self._targets:
            nodes.append(helper.make_node(op, inputs, out, name, domain=domain, **attributes))
        if kind:
            self._kinds.update(dict.fromkeys(out, getattr(self._types, kind)))
        return list(out)

    def _name(self) -> str:
        self._count += 1
        return f"t{self._count}"

    @contextmanager
    def _only(self, nodes: list[Any]) -> Iterator[None]:
        """In the block, nodes are appended to these alone."""
        before, self._targets = self._targets, [nodes]
        yield
        self._targets = before

    def by_integers(self) -> bool:
        """Whether the next operator is one on integers."""
        return self.form == "qoperator" and not self.chance(4)

    # Quantisers and weights

    def source(self) -> Map:
        """The input: real numbers that a quantiser follows, or integers."""
        channels = self.pick.of([1, 2, 3, 3, 4, 8])
        sizes = (self.pick.integer(1, 10), self.pick.integer(2, 12))
        shape: Shape = self.pick.of(
            [(channels, *sizes), (channels, *sizes), (channels, *sizes), (channels, 4 * sizes[1])]
        )
        if self.chance(10):
            shape = (self.pick.integer(2, 40),)
        self._source = (self._types.FLOAT, shape)
        if self.form != "qonnx" and self.chance(4):
            self._source = (getattr(self._types, self.kind), shape)
            here = self.levels(-2.0, 2.0, self.kind)
            here = replace(here, name="x", shape=shape)
            self._kinds["x"] = self._source[0]
            self.maps.append(here)
            return here
        real = "x"
        if self.form == "qonnx" and self.chance(3):
            real = self.node("Mul", self.node("Sub", "x", self.constant(0.5)), self.constant(2.0))
        return self.quantised(real, shape, (-2.0, 2.0))

    def levels(self, low: float, high: float, kind: str) -> Map:
        """A scale and a zero point for real numbers from where to where, about; the map has no name yet."""
        bits = int(kind.lstrip("UINT"))
        least, most = (0, (1 << bits) - 1) if kind.startswith("U") else (-(1 << bits - 1), (1 << bits - 1) - 1)
        scale = self.scale(max(high - low, 1e-6) / (most - least))
        middle = (least + most + 1) // 2
        zero = middle if self.symmetric and low < 0 else int(np.clip(round(least - low / scale), least, most))
        if self.chance(5):
            zero = self.pick.integer(least, most)
        pair = self.constant(scale), self.constant(zero, kind)
        low, high = _common((low, high), ((least - zero) * scale, (most - zero) * scale))
        return Map(name="", shape=(), low=low, high=high, scale=scale, zero=zero, kind=kind, pair=pair)

    def quantised(self, real: str, shape: Shape, reach: tuple[float, float], like: Map | None = None) -> Map:
        """Append a quantiser, with the scale of another map if that is given."""
        if self.form == "qonnx":
            return self._quant(real, shape, reach)
        kind = self.kind
        if self.has_narrow and self.chance(8):
            kind = self.pick.of(["INT4", "UINT4"])
        made = like or self.levels(*reach, kind)
        name = self.node("QuantizeLinear", real, *made.pair, kind=made.kind)
        made = replace(made, name=name, shape=shape)
        self.maps.append(made)
        return made

    def _quant(self, real: str, shape: Shape, reach: tuple[float, float]) -> Map:
        """QONNX's quantiser."""
        low, high = reach
        if self.chance(16):
            made = Map(name=self.node("Sign", real), shape=shape, low=-1.0, high=1.0)
            self.maps.append(made)
            return made
        if self.chance(8):
            scale = self.scale(max(abs(low), abs(high)) / 2)
            name = self.node("BipolarQuant", real, self.constant(scale), domain=QONNX)
            made = Map(name=name, shape=shape, low=-scale, high=scale, scale=scale)
            self.maps.append(made)
            return made
        signed = int(low < 0) if not self.chance(8) else self.pick.integer(0, 1)
        bits = self.pick.of([2, 3, 4, 4, 5, 6, 8, 8, 8])
        narrow = int(self.chance(4))
        least, most = (-(1 << bits - 1) + narrow, (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1 - narrow)
        about = 2 * max(abs(low), abs(high)) / (most - least) if signed else max(high, 1e-3) / most
        scale = self.scale(about)
        zero = float(self.pick.integer(least, most)) if self.chance(12) else 0.0
        rounding = self.pick.of(list(ROUNDINGS)) if self.chance(5) else "ROUND"
        inputs = self.constant(self._of_each(scale, shape)), self.constant(zero), self.constant(float(bits))
        name = self.node("Quant", real, *inputs, domain=QONNX, signed=signed, narrow=narrow, rounding_mode=rounding)
        low, high = _common(reach, ((least - zero) * scale, (most - zero) * scale))
        made = Map(name=name, shape=shape, low=low, high=high, scale=scale)
        self.maps.append(made)
        return made

    def _of_each(self, scale: float, shape: Shape) -> Any:
        """Sometimes a scale for each channel: small multiples of one number, which all weights read, or any."""
        if not self.chance(8):
            return scale
        some = [scale, scale / 2, scale / 4] if self.chance(2) else [self.scale(scale) for _ in range(shape[0])]
        return np.float32([self.pick.of(some) for _ in range(shape[0])]).reshape(_of_channels(shape))

    def real(self, here: Map) -> str:
        """The tensor of a map's real numbers."""
        return here.name if self.form == "qonnx" else self.node("DequantizeLinear", here.name, *here.pair)

    def grid(self, shape: Shape, axis: int = 0) -> Weights:
        """Weights, with outputs along an axis."""
        outputs = shape[axis]
        count = 1 if self.chance(3) else outputs
        scale = np.array([self.scale(0.01) for _ in range(count)], np.float32)
        spread = [1] * len(shape)
        spread[axis] = -1
        if self.form == "qonnx":
            return self._quant_weights(shape, scale.reshape(spread) if count > 1 else scale[0])
        kind = self.pick.of(["INT4", "UINT4"]) if self.has_narrow and self.chance(10) else "INT8"
        if self.chance(8) and (self.form == "qdq" or self.kind == "UINT8"):  # as onnxruntime's operators have it
            kind = "UINT8"
        low, high = {"INT8": (-127, 127), "UINT8": (0, 255), "INT4": (-8, 7), "UINT4": (0, 15)}[kind]
        zero = 0 if low else (high + 1) // 2
        if not low and self.chance(3):
            zero = self.pick.integer(0, high)
        values = self.weights(shape, low - zero, high - zero) + zero
        if count == 1:
            scale = scale.reshape(())
        names = self.constant(values, kind), self.constant(scale), self.constant(np.full(scale.shape, zero), kind)
        real = self.node("DequantizeLinear", *names, axis=axis)
        return Weights(real=real, integers=names, scale=scale, rms=float(scale.max()) * (high - low) * 0.29)

    def _quant_weights(self, shape: Shape, scale: Any) -> Weights:
        """Weights of QONNX's form: real numbers that a quantiser reads."""
        bits = self.pick.of([1, 1, 2, 2, 3, 4, 4, 5, 8, 8, 8])
        most = max(1, (1 << bits - 1) - 1)
        values = self.rng.normal(0, 0.6 * most, shape) * scale
        if bits == 1:
            scale = np.asarray(scale).ravel()[0]
            name = self.node("BipolarQuant", self.constant(values), self.constant(scale), domain=QONNX)
            return Weights(real=name, integers=(), scale=np.asarray(scale), rms=float(scale))
        inputs = self.constant(scale), self.constant(0.0), self.constant(float(bits))
        name = self.node(
            "Quant",
            self.constant(values),
            *inputs,
            domain=QONNX,
            signed=1,
            narrow=self.pick.integer(0, 1),
            rounding_mode="ROUND",
        )
        return Weights(real=name, integers=(), scale=np.asarray(scale), rms=float(np.max(scale)) * 0.6 * most)

    def bias(self, here: Map, weights: Weights, outputs: int, spread: float) -> tuple[str, str]:
        """A bias as real numbers, and as integers of the products' scale; empty where there is none, or no integers."""
        if self.chance(3):
            return "", ""
        values = self.rng.normal(0, spread / 2, outputs)
        if self.form == "qonnx" or (self.form == "qdq" and self.chance(3)):
            self.exact = False
            return self.constant(values), ""
        scale = np.float32(here.scale) * np.broadcast_to(weights.scale.astype(np.float32).ravel(), outputs)
        integers = self.constant(np.rint(values / scale).clip(-(1 << 28), 1 << 28), np.int32)
        per_channel = weights.scale.size > 1
        pair = (
            self.constant(scale if per_channel else scale[0]),
            self.constant(np.zeros(outputs if per_channel else (), np.int32), np.int32),
        )
        return self.node("DequantizeLinear", integers, *pair, axis=0), integers

    # Steps with weights

    def conv(self, here: Map) -> Map | None:
        """A convolution of maps with rows and columns, or with columns alone, sometimes of groups."""
        if len(here.shape) < 2:
            return None
        channels, *sizes = here.shape
        kernel = self.kernel(sizes)
        strides = self.strides(sizes)
        dilations = self.dilations(sizes, kernel)
        padding, result = self.padded(sizes, kernel, strides, dilations)
        if result is None:
            return None
        groups = self.groups(channels)
        outputs = groups * max(1, self.channels() // groups)
        weights = self.grid((outputs, channels // groups, *kernel))
        spread = sqrt(prod(kernel) * channels // groups) * here.rms * weights.rms
        bias, integers = self.bias(here, weights, outputs, spread)
        attributes = {"strides": strides, "dilations": dilations, "group": groups, "kernel_shape": kernel, **padding}
        shape = (outputs, *result)
        reach = -SPREAD * spread, SPREAD * spread
        constants = [weights.real, bias] if bias else [weights.real]
        if self.by_integers():
            return self.integer_node(
                "QLinearConv",
                [here],
                shape,
                reach,
                lambda x: self.node("Conv", *x, *constants, **attributes),
                behind=weights.integers,
                last=[integers] if bias else [],
                **attributes,
            )
        return self.after(self.node("Conv", self.real(here), *constants, **attributes), shape, reach)

    def padded(
        self, sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
    ) -> tuple[dict[str, Any], Shape | None]:
        """Attributes of a window's padding, and the sizes of the result; None if a window has no room."""
        spans = [(taps - 1) * apart + 1 for taps, apart in zip(kernel, dilations)]
        rule = self.pick.of(["NOTSET", "NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"])
        if rule.startswith("SAME"):
            if any(apart > 1 for apart in dilations) or any(step > taps for step, taps in zip(strides, kernel)):
                return {}, None  # which onnxruntime pads in its own way, or refuses
            return {"auto_pad": rule}, tuple(-(-size // stride) for size, stride in zip(sizes, strides))
        pads = [0] * 2 * len(kernel)
        attributes: dict[str, Any] = {"auto_pad": rule}
        if rule == "NOTSET":
            pads = [self.pick.integer(0, span // 2) for span in [*spans, *spans]]
            attributes = {"pads": pads} if any(pads) or self.pick.flip() else {}
        whole = [size + pads[k] + pads[k + len(kernel)] for k, size in enumerate(sizes)]
        if any(size < span for size, span in zip(whole, spans)):
            return {}, None
        return attributes, tuple((size - span) // stride + 1 for size, span, stride in zip(whole, spans, strides))

    def transposed(self, here: Map) -> Map | None:
        """A transposed convolution."""
        if len(here.shape) < 2:
            return None
        channels, *sizes = here.shape
        kernel = self.kernel([3] * len(sizes))
        strides = self.strides([2] * len(sizes))
        groups = self.groups(channels) if self.chance(3) else 1
        outputs = self.pick.integer(1, 4)
        pads = [self.pick.integer(0, (taps - 1) // 2) for taps in (*kernel, *kernel)]
        more = [self.pick.integer(0, stride - 1) for stride in strides]
        result = tuple(
            (size - 1) * stride + taps + over - pads[k] - pads[k + len(sizes)]
            for k, (size, stride, taps, over) in enumerate(zip(sizes, strides, kernel, more))
        )
        shape = (groups * outputs, *result)
        if min(result) < 1 or prod(shape) > MOST_VALUES:
            return None
        weights = (
            self.grid((channels, outputs, *kernel), axis=1)
            if groups == 1
            else self.one_scale(lambda: self.grid((channels, outputs, *kernel), axis=1))
        )
        spread = sqrt(prod(kernel) * channels / groups) * here.rms * weights.rms
        bias, _ = self.bias(here, weights, groups * outputs, spread) if groups == 1 else ("", "")
        attributes = {"strides": strides, "pads": pads, "output_padding": more, "group": groups}
        real = self.node("ConvTranspose", self.real(here), weights.real, *filter(None, [bias]), **attributes)
        return self.after(real, shape, (-SPREAD * spread, SPREAD * spread))

    def one_scale(self, draw: Callable[[], Weights]) -> Weights:
        """Weights with one scale: of groups of a transposed convolution there is no axis of all outputs."""
        while (weights := draw()).scale.size > 1:
            pass
        return weights

    def dense(self, here: Map) -> Map:
        """A dense layer of all values."""
        count = prod(here.shape)
        here = here if len(here.shape) == 1 else self.moved(here, "Flatten", (), (count,))
        outputs = self.channels()
        turned = self.pick.flip()
        weights = self.grid((outputs, count) if turned else (count, outputs), axis=0 if turned else 1)
        spread = sqrt(count) * here.rms * weights.rms
        reach = -SPREAD * spread, SPREAD * spread
        bias, integers = self.bias(here, weights, outputs, spread)
        constants = [weights.real, bias] if bias else [weights.real]
        if self.by_integers():
            plain = not (turned or bias)
            attributes = {} if plain else {"transB": int(turned)}
            return self.integer_node(
                "QLinearMatMul" if plain else "QGemm",
                [here],
                (outputs,),
                reach,
                lambda x: self.node("Gemm", *x, *constants, transB=int(turned)),
                behind=weights.integers if plain else (*weights.integers, integers),
                domain="" if plain else MICROSOFT,
                **attributes,
            )
        if turned or self.pick.flip():
            real = self.node("Gemm", self.real(here), *constants, transB=int(turned))
        else:
            real = self.node("MatMul", self.real(here), weights.real)
            real = self.node("Add", real, bias) if bias else real
        return self.after(real, (outputs,), reach)

    def dense_at_each_place(self, here: Map) -> Map | None:
        """A matrix product of the last axis; its places may come first, without an axis of images."""
        if len(here.shape) < 2:
            return None
        outputs = self.pick.integer(1, 8)
        shape = (*here.shape[:-1], outputs)
        weights = self.grid((here.shape[-1], outputs), axis=1)
        spread = sqrt(here.shape[-1]) * here.rms * weights.rms
        real = self.real(here)
        if self.chance(2):
            real = self.node("Reshape", real, self.constant([-1, here.shape[-1]], np.int64))
            real = self.node(self.pick.of(["Gemm", "MatMul"]), real, weights.real)
            real = self.node("Reshape", real, self.constant([1, *shape], np.int64))
        else:
            real = self.node("MatMul", real, weights.real)
        return self.quantised(real, shape, (-SPREAD * spread, SPREAD * spread))

    def after(self, real: str, shape: Shape, reach: tuple[float, float]) -> Map:
        """What follows a layer: perhaps batch normalisation, mostly an activation, in either order; and a quantiser."""
        normalises = len(shape) > 1 and self.chance(4)
        last = self.chance(3)
        if normalises and not last:
            real = self.normalised(real, shape, reach)
        low, high = reach
        if self.chance(2):
            real, (low, high) = self.node("Relu", real), (0.0, high)
        elif self.chance(5):
            real, (low, high) = self.applied(real, (low, high), shape)
        elif self.chance(6):
            ends = self.constant(0.0), self.constant(round(high / 2, 3))
            real, (low, high) = self.node("Clip", real, *ends), (0.0, high / 2)
        if normalises and last:
            real = self.normalised(real, shape, (low, high))
            low, high = low - (high - low) / 2, high + (high - low) / 2
        if len(shape) == 3 and self.chance(8) and min(shape[1:]) > 1:
            real = self.node("MaxPool", real, kernel_shape=[2, 2], strides=[2, 2])
            shape = (shape[0], shape[1] // 2, shape[2] // 2)
        return self.quantised(real, shape, (low, high))

    def normalised(self, real: str, shape: Shape, reach: tuple[float, float]) -> str:
        """Append batch normalisation, of which one channel may fall."""
        self.exact = False
        room = reach[1] - reach[0]
        scale, offset = self.rng.uniform(0.3, 1.5, shape[0]), self.rng.normal(0, 0.2 * room, shape[0])
        if self.chance(4):
            scale[0] = -scale[0]
        mean = self.rng.normal(0, 0.1 * room, shape[0])
        names = [self.constant(each) for each in (scale, offset, mean, np.ones(shape[0]))]
        return self.node("BatchNormalization", real, *names, epsilon=1e-5)

    def integer_node(
        self,
        op: str,
        sources: Sequence[Map],
        shape: Shape,
        reach: tuple[float, float],
        real: Callable[[list[str]], str],
        *,
        behind: Sequence[str] = (),
        last: Sequence[str] = (),
        first: bool = False,
        domain: str = "",
        **attributes: Any,
    ) -> Map:
        """Append one of onnxruntime's operators on integers. ``real`` appends the same on real numbers, to the twin.

        Its inputs are the maps with their scales and zero points, what comes ``behind`` these, the result's scale and
        zero point (or ``first`` of all), and what is ``last``.
        """
        made = self.levels(*reach, self.kind)
        name = self._name()
        with self._only(self._twin):
            self.node(
                "QuantizeLinear", real([self.real(each) for each in sources]), *made.pair, out=name, kind=made.kind
            )
        maps = [part for each in sources for part in (each.name, *each.pair)]
        inputs = [*maps, *behind]
        inputs = [*made.pair, *inputs] if first else [*inputs, *made.pair]
        with self._only(self._nodes):
            self.node(op, *inputs, *last, domain=domain, out=name, kind=made.kind, **attributes)
        made = replace(made, name=name, shape=shape)
        self.maps.append(made)
        return made

    # Steps of each value

    def applied(
        self, real: str, reach: tuple[float, float], shape: Shape, only: Sequence[Activation] = ()
    ) -> tuple[str, tuple[float, float]]:
        """Append any activation of the importer's table, with random numbers for its attributes and further inputs."""
        from onnx import defs

        known = only or [each for each in ACTIVATIONS if each.function is not None and self._known(each.onnx)]
        chosen = self.pick.of(known)
        op = chosen.onnx
        schema = defs.get_schema(op, self.opset)
        attributes = self._attributes(chosen)
        constants = [np.float32(self.pick.of([0.25, 2.0, 3.0])) for _ in schema.inputs[1:]]
        if op != "Relu":
            self.exact = False
        x = np.linspace(*reach, PLACES, dtype=np.float32)[None]
        node = SourceNode(name=op, op=op, inputs=(), outputs=("y",), attributes=attributes)
        with np.errstate(all="ignore"):
            y = reference(node, [x, *constants], self.opset)
        y = y[np.isfinite(y)]
        ends = (float(y.min()), float(y.max())) if y.size else (-1.0, 1.0)
        if ends[1] - ends[0] < 1e-4 or max(map(abs, ends)) > 1e4:
            ends = -1.0, 1.0
        if op == "PRelu" and self.pick.flip():
            constants = [constants[0] * self.rng.uniform(self.pick.of([0, -1]), 1, _of_channels(shape))]
        return self.node(op, real, *(self.constant(each) for each in constants), **attributes), ends

    def _attributes(self, activation: Activation) -> Mapping[str, Any]:
        """Random attributes of an activation."""
        from onnx import defs

        if activation.drawn is not None:
            return activation.drawn(self.rng)
        numbers = dict[str, float]()
        for name, attribute in sorted(defs.get_schema(activation.onnx, self.opset).attributes.items()):
            default = attribute.default_value
            if default.type == default.FLOAT and self.pick.flip():
                numbers[name] = float(np.float32(default.f * self.rng.uniform(0.5, 2)))
        return numbers

    def _known(self, op: str) -> bool:
        """Whether ONNX has an operator in the file's version."""
        from onnx import defs

        return bool(op) and defs.has(op, self.opset)

    def activation(self, here: Map) -> Map:
        """An activation between two quantisers."""
        integers = [each for each in ACTIVATIONS if each.qlinear]
        if self.by_integers() and self.pick.flip():
            chosen = self.pick.of(integers)
            attributes = self._attributes(chosen)
            self.exact = False
            reach = (0.0, 1.0) if chosen.onnx == "Sigmoid" else (here.low / 2, here.high)
            return self.integer_node(
                f"QLinear{chosen.onnx}",
                [here],
                here.shape,
                reach,
                lambda x: self.node(chosen.onnx, *x, **attributes),
                domain=MICROSOFT,
                **attributes,
            )
        real, reach = self.applied(self.real(here), (here.low, here.high), here.shape)
        return self.quantised(real, here.shape, reach)

    def with_constant(self, here: Map) -> Map:
        """Sums, differences, products, quotients and ends of a map and constants, of one number or one a channel."""
        real = self.real(here)
        low, high = here.low, here.high
        for _ in range(self.pick.integer(1, 2)):
            op = self.pick.of(["Add", "Sub", "Mul", "Div", "Neg", "Max", "Min"])
            if op == "Neg":
                real, (low, high) = self.node("Neg", real), (-high, -low)
                continue
            self.exact = False
            shape = _of_channels(here.shape) if self.pick.flip() else ()
            if op in ("Max", "Min"):
                middle = (low + high) / 2
                ends = sorted((low if op == "Max" else high, middle))
                real = self.node(op, real, self.constant(self.rng.uniform(*ends, shape)))
                continue
            values = self.rng.uniform(0.3, 2, shape) * (max(abs(low), abs(high)) if op in ("Add", "Sub") else 1)
            number = self.constant(values)
            first = op != "Div" and self.pick.flip()
            real = self.node(op, *((number, real) if first else (real, number)))
            most = 3 * max(abs(low), abs(high))
            low, high = -most, most
        return self.quantised(real, here.shape, (low, high))

    def gated(self, here: Map) -> Map:
        """A map times a function of itself, as x * sigmoid(x)."""
        real = self.real(here)
        self.exact = False
        gate, _ = self.applied(
            real,
            (here.low, here.high),
            here.shape,
            [each for each in ACTIVATIONS if each.onnx in ("Sigmoid", "Tanh", "HardSigmoid")],
        )
        return self.quantised(self.node("Mul", real, gate), here.shape, (here.low / 2, here.high))

    def requantise(self, here: Map) -> Map:
        """Another scale."""
        return self.quantised(self.real(here), here.shape, (here.low, here.high))

    def nothing(self, here: Map) -> Map:
        """An operator that leaves every value as it is, with the same quantiser behind it, or another one."""
        op = self.pick.of(["Identity", "Dropout", "Cast"])
        attributes = {"to": self._types.FLOAT} if op == "Cast" else {}
        real = self.node(op, self.real(here), **attributes)
        return self.quantised(real, here.shape, (here.low, here.high), self.maybe(here))

    # Steps of several maps

    def join(self, here: Map) -> Map | None:
        """A sum or a product of two maps, one of which may be made for it, or be a value a channel."""
        product = self.chance(3)
        others = [each for each in self.maps if each.shape == here.shape and each is not here]
        if not others or self.chance(3):
            made = self.gate(here) if product and self.pick.flip() else self.beside(here)
            if made is None:
                return None
            others = [made]
        other = self.pick.of(others)
        pair = [here, other] if self.pick.flip() else [other, here]
        most = here.rms * other.rms * 3 if product else 2 * (here.rms + other.rms)
        low = 0.0 if min(here.low, other.low) >= 0 else -most
        op = "Mul" if product else "Add"
        if self.by_integers() and here.kind == other.kind == self.kind:
            return self.integer_node(
                f"QLinear{op}", pair, here.shape, (low, most), lambda x: self.node(op, *x), domain=MICROSOFT
            )
        if op == "Add" and self.chance(4):
            op = "Sum"
        real = self.node(op, *(self.real(each) for each in pair))
        if self.chance(3):
            real, low = self.node("Relu", real), 0.0
        return self.quantised(real, here.shape, (low, most))

    def beside(self, here: Map) -> Map | None:
        """A map of the same shape, by a convolution."""
        if len(here.shape) < 2:
            return None
        channels, *sizes = here.shape
        weights = self.grid((channels, channels, *[1] * len(sizes)))
        spread = sqrt(channels) * here.rms * weights.rms
        real = self.node("Conv", self.real(here), weights.real)
        return self.quantised(real, here.shape, (-SPREAD * spread, SPREAD * spread))

    def gate(self, here: Map) -> Map | None:
        """A value a channel, as squeeze-and-excite blocks have it."""
        if len(here.shape) != 3:
            return None
        self.exact = False
        mean = self.quantised(
            self.node("GlobalAveragePool", self.real(here)), (here.shape[0], 1, 1), (here.low / 2, here.high / 2)
        )
        made = self.beside(mean)
        if made is None:
            return None
        real = self.node(self.pick.of(["Sigmoid", "HardSigmoid"]), self.real(made))
        return self.quantised(real, made.shape, (0.0, 1.0))

    def concatenate(self, here: Map) -> Map | None:
        """Maps behind one another."""
        others = [each for each in self.maps if each.shape[1:] == here.shape[1:] and each.kind == here.kind]
        parts = [here, *(self.pick.of(others) for _ in range(self.pick.integer(1, 2)))]
        shape = (sum(each.shape[0] for each in parts), *here.shape[1:])
        if shape[0] > MOST_CHANNELS and len(shape) > 1:
            return None
        low, high = min(each.low for each in parts), max(each.high for each in parts)
        if self.by_integers() and here.kind == self.kind:
            return self.integer_node(
                "QLinearConcat",
                parts,
                shape,
                (low, high),
                lambda x: self.node("Concat", *x, axis=1),
                first=True,
                domain=MICROSOFT,
                axis=1,
            )
        real = self.node("Concat", *(self.real(each) for each in parts), axis=1)
        same = len({(each.scale, each.zero) for each in parts}) == 1 and self.form != "qonnx"
        return self.quantised(real, shape, (low, high), here if same else None)

    # Steps of windows and places

    def pool(self, here: Map) -> Map | None:
        """The maximum or the mean of windows, or of a whole map."""
        if len(here.shape) < 2:
            return None
        channels, *sizes = here.shape
        average = self.pick.flip()
        if self.chance(4):
            return self.whole(here, average)
        kernel = self.kernel(sizes)
        strides = self.strides(sizes)
        padding, result = self.padded(sizes, kernel, strides, (1,) * len(sizes))
        if result is None:
            return None
        attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": strides, **padding}
        shape = (channels, *result)
        if average:
            padded = any(padding.get("pads", ())) or "SAME" in padding.get("auto_pad", "")
            self.exact = self.exact and not padded and log2(prod(kernel)).is_integer()
            if padded and "pads" in padding and self.pick.flip():
                attributes["count_include_pad"] = 1
        elif self.chance(4) and "auto_pad" not in padding:
            pads = padding.get("pads", (0,) * 2 * len(sizes))
            attributes["ceil_mode"] = 1
            whole = [size + pads[k] + pads[k + len(sizes)] for k, size in enumerate(sizes)]
            axes = zip(whole, kernel, strides, sizes, pads)
            grown = []
            for size, taps, stride, own, before in axes:
                count = ceil((size - taps) / stride) + 1
                grown.append(count - ((count - 1) * stride >= own + before))
            shape = (channels, *grown)
        op = "AveragePool" if average else "MaxPool"
        if average and self.by_integers() and len(sizes) == 2:
            return self.integer_node(
                "QLinearAveragePool",
                [here],
                shape,
                (here.low, here.high),
                lambda x: self.node(op, *x, **attributes),
                domain=MICROSOFT,
                **attributes,
            )
        if not average:
            return self.moved(here, op, (), shape, **attributes)
        real = self.node(op, self.real(here), **attributes)
        return self.quantised(real, shape, (here.low, here.high), self.maybe(here))

    def maybe(self, here: Map) -> Map | None:
        """The scale of a map, or none."""
        return here if self.form != "qonnx" and self.pick.flip() else None

    def whole(self, here: Map, average: bool) -> Map:
        """The mean or the maximum of each channel."""
        channels, *sizes = here.shape
        shape = (channels, *[1] * len(sizes))
        if not average:
            real = self.node("GlobalMaxPool", self.real(here))
            return self.quantised(real, shape, (here.low, here.high), self.maybe(here))
        self.exact = self.exact and log2(prod(sizes)).is_integer()
        reach = here.low / 2, here.high / 2
        if self.by_integers() and len(sizes) == 2:
            return self.integer_node(
                "QLinearGlobalAveragePool",
                [here],
                shape,
                reach,
                lambda x: self.node("GlobalAveragePool", *x),
                domain=MICROSOFT,
            )
        real = self.node("GlobalAveragePool", self.real(here))
        return self.quantised(real, shape, reach, self.maybe(here))

    def reduce(self, here: Map) -> Map | None:
        """The mean or the maximum over some axes."""
        if len(here.shape) != 3:
            return None
        axes = self.pick.of([[2, 3], [2, 3], [-1, -2], [2], [3], [1]])
        keep = self.pick.integer(0, 1)
        gone = {axis % 4 for axis in axes}
        shape = tuple(
            1 if axis in gone else size for axis, size in enumerate((1, *here.shape)) if keep or axis not in gone
        )
        op = self.pick.of(["ReduceMean", "ReduceMax"])
        count = prod(size for axis, size in enumerate((1, *here.shape)) if axis in gone)
        self.exact = self.exact and (op == "ReduceMax" or log2(count).is_integer())
        if self.opset >= 18:
            real = self.node(op, self.real(here), self.constant(axes, np.int64), keepdims=keep)
        else:
            real = self.node(op, self.real(here), axes=axes, keepdims=keep)
        return self.quantised(real, shape[1:], (here.low, here.high), self.maybe(here))

    def moved(self, here: Map, op: str, inputs: Sequence[str], shape: Shape, **attributes: Any) -> Map:
        """A node that moves values: of the integers, or of the real numbers with the same quantiser behind."""
        if self.form == "qonnx" or (self.pick.flip() and not here.kind.endswith("4")):
            kind = "" if self.form == "qonnx" else here.kind
            made = replace(here, name=self.node(op, here.name, *inputs, kind=kind, **attributes), shape=shape)
            self.maps.append(made)
            return made
        return self.quantised(self.node(op, self.real(here), *inputs, **attributes), shape, (here.low, here.high), here)

    def split(self, here: Map) -> Map | None:
        """Parts of a map, one of which goes on."""
        axis = self.pick.integer(1, len(here.shape))
        size = here.shape[axis - 1]
        if size < 2 or here.kind.endswith("4"):
            return None
        first = self.pick.integer(1, size - 1)
        kind = "" if self.form == "qonnx" else here.kind
        sizes = self.constant([first, size - first], np.int64)
        names = self.several("Split", (here.name, sizes), [self._name(), self._name()], kind=kind, axis=axis)
        shapes = [(*here.shape[: axis - 1], each, *here.shape[axis:]) for each in (first, size - first)]
        parts = [replace(here, name=name, shape=shape) for name, shape in zip(names, shapes)]
        self.maps += parts
        return self.pick.of(parts)

    def cut(self, here: Map) -> Map | None:
        """Some rows, columns or channels of a map."""
        if here.kind.endswith("4"):
            return None
        axis = self.pick.integer(1, len(here.shape))
        size = here.shape[axis - 1]
        begin = self.pick.integer(0, size - 1)
        end = self.pick.integer(begin + 1, size)
        step = self.pick.of([1, 1, 2])
        left = -(-(end - begin) // step)
        inputs = [self.constant([each], np.int64) for each in (begin, end, axis, step)]
        return self.moved(here, "Slice", inputs, (*here.shape[: axis - 1], left, *here.shape[axis:]))

    def pad(self, here: Map) -> Map | None:
        """Zeros or edges around a map."""
        if len(here.shape) != 3:
            return None
        widths = [self.pick.integer(0, 2) for _ in range(4)]
        pads = [0, 0, *widths[:2], 0, 0, *widths[2:]]
        channels, rows, columns = here.shape
        shape = (channels, rows + widths[0] + widths[2], columns + widths[1] + widths[3])
        real = self.node("Pad", self.real(here), self.constant(pads, np.int64), mode=self.pick.of(["constant", "edge"]))
        return self.quantised(real, shape, (here.low, here.high), self.maybe(here))

    def resize(self, here: Map) -> Map | None:
        """More rows and columns, by whole numbers."""
        if len(here.shape) != 3:
            return None
        times = self.pick.of([(2, 2), (2, 2), (1, 2), (2, 1), (3, 3), (4, 2)])
        channels, rows, columns = here.shape
        shape = (channels, rows * times[0], columns * times[1])
        if prod(shape) > MOST_VALUES:
            return None
        mode = self.pick.of(["nearest", "linear"])
        rules = ["asymmetric", "half_pixel", "pytorch_half_pixel"] + ["align_corners"] * (mode == "linear")
        attributes = {"mode": mode, "coordinate_transformation_mode": self.pick.of(rules)}
        if mode == "nearest":
            attributes["nearest_mode"] = self.pick.of(["floor", "floor", "round_prefer_floor"])
        self.exact = self.exact and (mode == "nearest")
        scales = self.constant([1.0, 1.0, *map(float, times)])
        real = self.node("Resize", self.real(here), "", scales, **attributes)
        return self.quantised(real, shape, (here.low, here.high), self.maybe(here))

    def blocks(self, here: Map) -> Map | None:
        """Channels become positions, or positions channels."""
        if len(here.shape) != 3 or here.kind.endswith("4"):
            return None
        channels, rows, columns = here.shape
        if channels % 4 == 0 and self.pick.flip():
            mode = self.pick.of(["DCR", "CRD"])
            return self.moved(here, "DepthToSpace", (), (channels // 4, 2 * rows, 2 * columns), blocksize=2, mode=mode)
        if rows % 2 or columns % 2 or 4 * channels > MOST_CHANNELS:
            return None
        real = self.node("SpaceToDepth", self.real(here), blocksize=2)
        return self.quantised(real, (4 * channels, rows // 2, columns // 2), (here.low, here.high), self.maybe(here))

    def transpose(self, here: Map) -> Map | None:
        """Another order of the axes."""
        if len(here.shape) < 2 or max(here.shape) > MOST_CHANNELS:
            return None
        axes = [0, *(1 + int(axis) for axis in self.rng.permutation(len(here.shape)))]
        return self.moved(here, "Transpose", (), tuple(here.shape[axis - 1] for axis in axes[1:]), perm=axes)

    def reshape(self, here: Map) -> Map | None:
        """The same values in another shape: Reshape, Squeeze or Unsqueeze."""
        if len(here.shape) == 2 and self.pick.flip():
            axis = self.constant([2], np.int64)
            return self.moved(here, "Unsqueeze", [axis], (here.shape[0], 1, here.shape[1]))
        if len(here.shape) == 3 and here.shape[1] == 1 and self.pick.flip():
            return self.moved(here, "Squeeze", [self.constant([2], np.int64)], (here.shape[0], here.shape[2]))
        count = prod(here.shape)
        channels = self.pick.of([each for each in range(1, min(count, 16) + 1) if count % each == 0])
        places = count // channels
        rows = self.pick.of([each for each in range(1, places + 1) if places % each == 0])
        shape = self.pick.of([(channels, rows, places // rows), (channels, places), (count,)])
        return self.moved(here, "Reshape", [self.constant([-1, *shape], np.int64)], shape)

    def end(self, here: Map) -> str:
        """What files end in: perhaps a dense layer, real numbers, and what the host computes; gives the tensor."""
        if self.pick.flip():
            here = self.dense(here)
        closing = self.pick.of([*CLOSINGS, "", "", "", ""])
        if closing:
            attributes = {"axis": self.pick.of([-1, 1])} if closing in OVER_CLASSES else {}
            return self.node(closing, self.real(here), **attributes)
        return self.leaves(here)

    def leaves(self, here: Map) -> str:
        """The tensor of a map that leaves: its real numbers, or its integers, if onnxruntime can give them."""
        integers = not here.kind.endswith("4") and self.pick.flip()
        return here.name if self.form == "qonnx" or integers else self.real(here)


def random_qdq(pick: Pick) -> RandomFile:
    """A random ONNX file with QuantizeLinear and DequantizeLinear."""
    return _random_file(pick, "qdq")


def random_qoperator(pick: Pick) -> RandomFile:
    """A random ONNX file with onnxruntime's operators on integers."""
    return _random_file(pick, "qoperator")


def random_qonnx(pick: Pick) -> RandomFile:
    """A random ONNX file with QONNX's quantisers."""
    return _random_file(pick, "qonnx")


def _random_file(pick: Pick, form: str) -> RandomFile:
    """A random file; once in four times, if one is found, of those in which floating point is exact, as only these say
    how halves are rounded, and few files are of them."""
    if pick.integer(1, 4) == 1:
        for _ in range(EXACT_TRIES):
            drawing = OnnxDrawing(pick, form)
            if drawing.powers and (file := drawing.draw()).halves:
                return file
    return OnnxDrawing(pick, form).draw()
