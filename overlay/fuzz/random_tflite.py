"""Random TFLite files, quantised to int8.

Activations are those of the importer's tables, with random options of the schema's tables.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod, sqrt
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.overlay.importers.activations import AT_THE_END, CURVES
from bitloom.overlay.importers.tflite_curves import ScaleAndZero
from bitloom.overlay.importers.tflite_rules import ENDS
from bitloom.overlay.importers.tflite_tables import OPTIONS

from .pick import Pick
from .random_files import MOST_CHANNELS, MOST_VALUES, Drawing, RandomFile
from .tflite_writer import TfliteOperator, TfliteTensor, tflite_bytes

Shape = tuple[int, ...]
FIXED: dict[str, ScaleAndZero] = {
    "LOGISTIC": (1 / 256, -128),
    "TANH": (1 / 128, 0),
    "SOFTMAX": (1 / 256, -128),
    "LOG_SOFTMAX": (16 / 256, 127),
}
"""Scale and zero point of results, of kernels that take these alone."""
INPUTS = ("INT8", "INT8", "INT8", "UINT8", "FLOAT32")
RMS = 60
"""Root mean square that is assumed of a map's integers less their zero point."""
WEIGHT_RMS = 73
"""The same of weights, which are any of -127 .. 127."""


@dataclass(frozen=True)
class TfliteMap:
    """A map of a file."""

    number: int
    """Of its tensor."""
    shape: Shape
    """With the one image in front: (1, rows, columns, channels), or fewer axes."""
    scale: float
    zero: int

    @property
    def values(self) -> ScaleAndZero:
        """Scale and zero point of its integers."""
        return self.scale, self.zero


class TfliteDrawing(Drawing[TfliteMap]):
    """A TFLite file while it is drawn."""

    STEPS = (
        *("conv",) * 5,
        *("depthwise",) * 2,
        *("join",) * 3,
        *("pool",) * 2,
        *("activation",) * 2,
        "transposed",
        "with_constant",
        "selected",
        "concatenate",
        "split",
        "cut",
        "tile",
        "pad",
        "resize",
        "depth_to_space",
        "transpose",
        "reduce",
        "reshape",
        "dense",
        "dense_at_each_place",
        "requantise",
    )

    def __init__(self, pick: Pick) -> None:
        import tflite

        super().__init__(pick)
        self._schema = tflite
        self._tensors: list[TfliteTensor] = []
        self._operators: list[TfliteOperator] = []

    def draw(self) -> RandomFile:
        """The file."""
        here = self.source()
        if not self.chance(8):  # a network begins with weights, as an engine does
            here = self.conv(here) or self.dense(here)
        last = self.end(self.grow(here))
        outputs = [each.number for each in self.leaving(last)]
        return RandomFile(data=tflite_bytes(self._tensors, self._operators, outputs), halves=True)

    def source(self) -> TfliteMap:
        """The input: integers, or real numbers that a QUANTIZE follows."""
        kind = self.pick.of(INPUTS)
        rows = 1 if self.chance(5) else self.pick.integer(2, 10)
        shape = (1, rows, self.pick.integer(1, 12), self.pick.of([1, 2, 3, 3, 4, 8]))
        if self.chance(10):
            shape = (1, self.pick.integer(2, 40))
        scale, zero = self.scale(0.03), self.zero()
        given = ((), ()) if kind == "FLOAT32" else ((scale,), (zero + 128 * (kind == "UINT8"),))
        self._tensors.append(TfliteTensor("x", shape, kind, *given))
        here = TfliteMap(0, shape, scale, zero)
        if kind == "INT8":
            self.maps.append(here)
            return here
        return self.operator("QUANTIZE", here, shape, (scale, zero))

    def zero(self) -> int:
        """A zero point."""
        return self.pick.of([0, 0, -128, self.pick.integer(-128, 127)])

    def quantised(self, real: float) -> ScaleAndZero:
        """Scale and zero point of a result whose values have about this root mean square."""
        return self.scale(4 * real / 256), self.zero()

    def constant(self, values: Array, scale: Sequence[float] = (), zero: int = 0) -> int:
        """The number of a constant."""
        tensor = TfliteTensor.constant(f"c{len(self._tensors)}", values, scale)
        tensor.zero = (zero,) * len(tensor.scale)
        self._tensors.append(tensor)
        return len(self._tensors) - 1

    def operator(
        self,
        kind: str,
        here: TfliteMap,
        shape: Shape,
        quantisation: ScaleAndZero | None = None,
        constants: Sequence[int] = (),
        first: Sequence[int] = (),
        kept: str = "INT8",
        **fields: Any,
    ) -> TfliteMap:
        """Append an operator that reads ``first``, a map and ``constants``; by default the result is worth what the map
        is."""
        inputs = *first, here.number, *constants
        (result,) = self.several(kind, inputs, [shape], quantisation or here.values, kept, **fields)
        return result

    def several(
        self,
        kind: str,
        inputs: Sequence[int],
        shapes: Sequence[Shape],
        quantisation: ScaleAndZero,
        kept: str = "INT8",
        **fields: Any,
    ) -> list[TfliteMap]:
        """Append an operator with results of these shapes."""
        results = []
        for shape in shapes:
            number = len(self._tensors)
            scale, zero = quantisation
            quantised = ((scale,), (zero,)) if kept == "INT8" else ((), ())
            self._tensors.append(TfliteTensor(f"t{number}", shape, kept, *quantised))
            results.append(TfliteMap(number, shape, *quantisation))
        options = OPTIONS.get(kind, ("", {}))[0] or None
        self._operators.append(
            TfliteOperator(kind, tuple(inputs), tuple(each.number for each in results), options, fields)
        )
        if kept == "INT8":
            self.maps += results
        return results

    def fused(self) -> dict[str, int]:
        """An activation that is part of an operator."""
        word = self.pick.of(["NONE", *ENDS])
        return {"FusedActivationFunction": getattr(self._schema.ActivationFunctionType, word)}

    def layer(
        self, weights: Array, here: TfliteMap, fan_in: int, outputs: int, biased: bool
    ) -> tuple[list[int], ScaleAndZero]:
        """Constants of a layer with these weights, and what its results are worth."""
        scales = [self.scale(0.004) for _ in range(1 if self.chance(4) else outputs)]
        numbers = [self.constant(weights.astype(np.int8), scales)]
        spread = sqrt(fan_in) * RMS * WEIGHT_RMS
        if biased:
            bias = self.rng.normal(0, spread / 2, outputs).astype(np.int32)
            numbers.append(self.constant(bias, [float(np.float32(here.scale * each)) for each in scales]))
        return numbers, self.quantised(spread * here.scale * max(scales))

    def windows(self, here: TfliteMap, dilated: bool = False) -> tuple[Shape, Shape, Shape, bool, Shape]:
        """A window's kernel, strides and dilations, whether it is padded, and the rows and columns of the result."""
        sizes = here.shape[1:3]
        kernel = self.kernel(sizes)
        strides = self.strides(sizes)
        dilations = self.dilations(sizes, kernel) if dilated and strides == (1, 1) else (1, 1)
        same = self.pick.flip()
        spans = [(taps - 1) * apart + 1 for taps, apart in zip(kernel, dilations)]
        if same:
            result = tuple(-(-size // stride) for size, stride in zip(sizes, strides))
        else:
            result = tuple((size - span) // stride + 1 for size, span, stride in zip(sizes, spans, strides))
        return kernel, strides, dilations, same, result

    def conv(self, here: TfliteMap) -> TfliteMap | None:
        """A convolution, sometimes of groups."""
        if len(here.shape) != 4:
            return None
        kernel, strides, dilations, same, result = self.windows(here, dilated=True)
        groups = self.groups(here.shape[3])
        each = here.shape[3] // groups
        outputs = groups * max(1, self.channels() // groups)
        weights = self.weights((outputs, *kernel, each), -127, 127)
        constants, quantisation = self.layer(weights, here, prod(kernel) * each, outputs, biased=True)
        return self.operator(
            "CONV_2D",
            here,
            (1, *result, outputs),
            quantisation,
            constants,
            **_geometry(strides, dilations, same),
            **self.fused(),
        )

    def depthwise(self, here: TfliteMap) -> TfliteMap | None:
        """A convolution of each channel for itself."""
        if len(here.shape) != 4:
            return None
        kernel, strides, dilations, same, result = self.windows(here, dilated=True)
        if strides[0] != strides[1]:
            return None  # which the kernel doesn't take
        times = self.pick.of([1, 1, 1, 2, 3])
        outputs = here.shape[3] * times
        if outputs > MOST_CHANNELS:
            return None
        weights = self.weights((1, *kernel, outputs), -127, 127)
        constants, quantisation = self.layer(weights, here, prod(kernel), outputs, not self.chance(6))
        return self.operator(
            "DEPTHWISE_CONV_2D",
            here,
            (1, *result, outputs),
            quantisation,
            constants,
            DepthMultiplier=times,
            **_geometry(strides, dilations, same),
            **self.fused(),
        )

    def transposed(self, here: TfliteMap) -> TfliteMap | None:
        """A transposed convolution."""
        if len(here.shape) != 4:
            return None
        kernel = self.kernel((3, 3))
        strides = self.strides((2, 2))
        same = self.pick.flip()
        axes = zip(here.shape[1:3], kernel, strides)
        result = [size * step if same else (size - 1) * step + max(taps, step) for size, taps, step in axes]
        outputs = self.pick.integer(1, 6)
        if prod(result) * outputs > MOST_VALUES:
            return None
        weights = self.weights((outputs, *kernel, here.shape[3]), -127, 127)
        constants, quantisation = self.layer(weights, here, prod(kernel) * here.shape[3], outputs, self.pick.flip())
        shape = (1, *result, outputs)
        wanted = self.constant(np.array(shape, np.int32))
        return self.operator(
            "TRANSPOSE_CONV",
            here,
            shape,
            quantisation,
            constants[1:],
            (wanted, constants[0]),
            StrideH=strides[0],
            StrideW=strides[1],
            Padding=0 if same else 1,
        )

    def pool(self, here: TfliteMap) -> TfliteMap | None:
        """The maximum or the mean of windows."""
        if len(here.shape) != 4:
            return None
        kernel, strides, _, same, result = self.windows(here)
        kind = self.pick.of(["MAX_POOL_2D", "AVERAGE_POOL_2D"])
        fields = {"FilterHeight": kernel[0], "FilterWidth": kernel[1], "Padding": 0 if same else 1}
        fields |= {"StrideH": strides[0], "StrideW": strides[1]}
        if self.chance(4):
            fields |= self.fused()
        return self.operator(kind, here, (1, *result, here.shape[3]), **fields)

    def activation(self, here: TfliteMap) -> TfliteMap:
        """Any activation of the importer's tables, with random options."""
        kind = self.pick.of([*CURVES, *(word for word in ENDS if word != "NONE")])
        return self.activated(kind, here)

    def activated(self, kind: str, here: TfliteMap) -> TfliteMap:
        """An activation of that kind."""
        quantisation = FIXED.get(kind) or self.pick.of([here.values, self.quantised(RMS * here.scale / 2)])
        table, attributes = OPTIONS.get(kind, ("", {}))
        fields: dict[str, Any] = {}
        for name, read in attributes.items():
            default = read(None)
            if not hasattr(self._schema, f"{table}Add{name.capitalize()}"):
                continue
            value = self.pick.flip() if isinstance(default, bool) else float(np.float32(self.rng.uniform(0, 1.2)))
            fields[name.capitalize()] = value
        constants = []
        for _ in CURVES[kind].constants if kind in CURVES else ():
            shape = (1,) * (len(here.shape) - 2) + here.shape[-1:]
            values = np.full(shape, self.pick.integer(-127, 127), np.int8)
            if self.pick.flip():
                values = self.rng.integers(-128, 128, shape).astype(np.int8)
            constants.append(self.constant(values, [self.scale(0.005)]))
            self._tensors[-1].axis = 0
        return self.operator(kind, here, here.shape, quantisation, constants, **fields)

    def with_constant(self, here: TfliteMap) -> TfliteMap:
        """A sum, a difference or a product of a map and a constant, of one number or one a channel, or the larger or
        the smaller one of both."""
        kind = self.pick.of(["ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"])
        compares = kind in ("MAXIMUM", "MINIMUM")  # integers as they are, all of one scale
        shape = self.pick.of([(1,), (1,) * (len(here.shape) - 1) + here.shape[-1:], here.shape[-1:]])
        shape = (1,) if kind == "SQUARED_DIFFERENCE" else shape
        values = self.rng.integers(-128, 128, shape).astype(np.int8)
        near = here.scale if kind != "MUL" else 0.02
        number = self.constant(values, *(([here.scale], here.zero) if compares else ([self.scale(near)], self.zero())))
        self._tensors[number].axis = 0
        scale = self._tensors[number].scale[0]
        about = RMS * here.scale + RMS * scale if kind != "MUL" else RMS * here.scale * RMS * scale
        first = self.pick.flip()
        places = ([number], ()) if first else ((), [number])
        if compares:
            return self.operator(kind, here, here.shape, None, places[1], places[0])
        if kind == "SQUARED_DIFFERENCE":
            return self.operator(kind, here, here.shape, self.quantised(about**2), places[1], places[0])
        return self.operator(kind, here, here.shape, self.quantised(about), places[1], places[0], **self.fused())

    def selected(self, here: TfliteMap) -> TfliteMap:
        """One of two functions of a map, as a comparison of it says."""
        number = self.constant(
            self.rng.integers(-128, 128, (1,)).astype(np.int8), [self.scale(here.scale)], self.zero()
        )
        kind = self.pick.of(["GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "EQUAL", "NOT_EQUAL"])
        pair = [number, here.number] if self.pick.flip() else [here.number, number]
        (where,) = self.several(kind, pair, [here.shape], here.values, "BOOL")
        if self.chance(3):  # of real numbers, and 0
            real = self.operator("DEQUANTIZE", here, here.shape, kept="FLOAT32")
            zeros = self.operator("ZEROS_LIKE", real, here.shape, kept="FLOAT32")
            ways = [real, zeros] if self.pick.flip() else [zeros, real]
            inputs = where.number, *(way.number for way in ways)
            (chosen,) = self.several("SELECT_V2", inputs, [here.shape], here.values, "FLOAT32")
            return self.operator("QUANTIZE", chosen, here.shape, here.values)
        quantisation = self.quantised(RMS * here.scale)
        ways = [self.scaled(self.activation(here) if self.pick.flip() else here, quantisation) for _ in range(2)]
        inputs = where.number, *(way.number for way in ways)
        return self.several(self.pick.of(["SELECT", "SELECT_V2"]), inputs, [here.shape], quantisation)[0]

    def join(self, here: TfliteMap) -> TfliteMap | None:
        """A sum, a difference or a product of two maps, or the larger or the smaller one of both; one of these may be
        made for it, or be a value a channel."""
        kind = self.pick.of(["ADD", "ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"])
        others = [each for each in self.maps if each.shape == here.shape and each is not here]
        if not others or self.chance(3):
            beside = self.beside(here) if kind != "MUL" or self.pick.flip() else self.gate(here)
            if beside is None:
                return None
            others = [beside]
        other = self.pick.of(others)
        if kind in ("MAXIMUM", "MINIMUM"):  # of one scale
            other = other if other.values == here.values else self.scaled(other, here.values)
            return self.operator(kind, here, here.shape, None, [other.number])
        about = RMS * here.scale + RMS * other.scale
        if kind == "MUL":
            about = RMS * here.scale * RMS * other.scale
        pair = (here, other) if prod(other.shape) < prod(here.shape) or self.pick.flip() else (other, here)
        return self.operator(kind, pair[0], here.shape, self.quantised(about), [pair[1].number], **self.fused())

    def beside(self, here: TfliteMap) -> TfliteMap | None:
        """A map of the same shape, by a convolution."""
        if len(here.shape) != 4:
            return None
        kernel = self.kernel(here.shape[1:3])
        outputs = here.shape[3]
        weights = self.weights((outputs, *kernel, outputs), -127, 127)
        constants, quantisation = self.layer(weights, here, prod(kernel) * outputs, outputs, biased=True)
        return self.operator(
            "CONV_2D",
            here,
            here.shape,
            quantisation,
            constants,
            **_geometry((1, 1), (1, 1), True),
            **self.fused(),
        )

    def gate(self, here: TfliteMap) -> TfliteMap | None:
        """A value a channel, as squeeze-and-excite blocks have it."""
        if len(here.shape) != 4:
            return None
        axes = self.constant(np.array((1, 2), np.int32))
        mean = self.operator(
            "MEAN", here, (1, 1, 1, here.shape[3]), self.quantised(RMS * here.scale / 2), [axes], KeepDims=True
        )
        by_weights = self.beside(mean)
        return None if by_weights is None else self.activated("LOGISTIC", by_weights)

    def concatenate(self, here: TfliteMap) -> TfliteMap | None:
        """Maps behind one another, mostly of one scale."""
        axis = self.pick.of([3, 3, 3, 1, 2]) if len(here.shape) == 4 else len(here.shape) - 1
        others = [
            each
            for each in self.maps
            if len(each.shape) == len(here.shape)
            and each.shape[1:axis] == here.shape[1:axis]
            and each.shape[axis + 1 :] == here.shape[axis + 1 :]
        ]
        parts = [here, *(self.pick.of(others) for _ in range(self.pick.integer(1, 2)))]
        if not self.chance(8):
            parts = [each if each.values == here.values else self.scaled(each, here.values) for each in parts]
        shape = list(here.shape)
        shape[axis] = sum(each.shape[axis] for each in parts)
        if prod(shape) > MOST_VALUES:
            return None
        numbers = [each.number for each in parts[1:]]
        return self.operator("CONCATENATION", here, tuple(shape), here.values, numbers, Axis=axis)

    def scaled(self, here: TfliteMap, quantisation: ScaleAndZero) -> TfliteMap:
        """A map with another scale."""
        return self.operator("QUANTIZE", here, here.shape, quantisation)

    def requantise(self, here: TfliteMap) -> TfliteMap:
        """A map with any other scale."""
        return self.scaled(here, self.quantised(RMS * here.scale))

    def split(self, here: TfliteMap) -> TfliteMap | None:
        """Parts of a map, one of which goes on."""
        axis = self.pick.integer(1, len(here.shape) - 1)
        size = here.shape[axis]
        if size < 2:
            return None
        count = self.pick.of([each for each in range(2, size + 1) if size % each == 0 or each == 2][:3])
        if size % count:
            sizes = [self.pick.integer(1, size - 1)]
            sizes.append(size - sizes[0])
        else:
            sizes = [size // count] * count
        shapes = [(*here.shape[:axis], each, *here.shape[axis + 1 :]) for each in sizes]
        place = self.constant(np.array(axis, np.int32))
        if size % count or self.chance(2):
            widths = self.constant(np.array(sizes, np.int32))
            inputs = (here.number, widths, place)
            return self.pick.of(self.several("SPLIT_V", inputs, shapes, here.values, NumSplits=len(sizes)))
        inputs = (place, here.number)
        return self.pick.of(self.several("SPLIT", inputs, shapes, here.values, NumSplits=len(sizes)))

    def cut(self, here: TfliteMap) -> TfliteMap | None:
        """Some rows, columns or channels of a map."""
        begins, sizes, strides = [0], [1], [1]
        for size in here.shape[1:]:
            begin = self.pick.integer(0, size - 1) if self.chance(3) else 0
            rest = size - begin
            begins.append(begin)
            sizes.append(self.pick.integer(1, rest) if self.chance(3) else rest)
            strides.append(self.pick.of([1, 1, 2]))
        if self.chance(2):
            constants = [self.constant(np.array(each, np.int32)) for each in (begins, sizes)]
            return self.operator("SLICE", here, tuple(sizes), constants=constants)
        ends = [begin + size for begin, size in zip(begins, sizes)]
        constants = [self.constant(np.array(each, np.int32)) for each in (begins, ends, strides)]
        shape = tuple(-(-size // stride) for size, stride in zip(sizes, strides))
        return self.operator("STRIDED_SLICE", here, shape, constants=constants)

    def tile(self, here: TfliteMap) -> TfliteMap | None:
        """The values several times."""
        times = [1, *(self.pick.of([1, 1, 2]) for _ in here.shape[1:])]
        shape = tuple(size * time for size, time in zip(here.shape, times))
        if prod(shape) > MOST_VALUES or shape[-1] > MOST_CHANNELS:
            return None
        return self.operator("TILE", here, shape, constants=[self.constant(np.array(times, np.int32))])

    def pad(self, here: TfliteMap) -> TfliteMap | None:
        """Zero points around a map."""
        if len(here.shape) != 4:
            return None
        widths = np.zeros((4, 2), np.int32)
        widths[1:3] = self.rng.integers(0, 3, (2, 2))
        if self.chance(6):
            widths[3] = self.rng.integers(0, 3, 2)
        reflects = self.chance(3)
        if reflects:
            widths = np.minimum(widths, np.array(here.shape, np.int32)[:, None] - 1)
        shape = tuple(int(size + sum(pair)) for size, pair in zip(here.shape, widths))
        kind = "MIRROR_PAD" if reflects else "PAD"
        return (
            None if prod(shape) > MOST_VALUES else self.operator(kind, here, shape, constants=[self.constant(widths)])
        )

    def resize(self, here: TfliteMap) -> TfliteMap | None:
        """More rows and columns, by whole numbers mostly, or fewer."""
        if len(here.shape) != 4:
            return None
        times = self.pick.of([(2, 2), (2, 2), (1, 2), (2, 1), (3, 3), (4, 2)])
        sizes = [size * time for size, time in zip(here.shape[1:3], times)]
        kind = self.pick.of(["RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR"])
        if kind == "RESIZE_BILINEAR" and self.chance(3):
            sizes = [self.pick.integer(1, size) for size in here.shape[1:3]]
        rule = self.pick.integer(0, 2)
        if rule == 1 and kind == "RESIZE_BILINEAR":
            sizes = [(size - 1) * time + 1 for size, time in zip(here.shape[1:3], times)]
        shape = (1, *sizes, here.shape[3])
        if prod(shape) > MOST_VALUES:
            return None
        wanted = [self.constant(np.array(sizes, np.int32))]
        return self.operator(kind, here, shape, constants=wanted, AlignCorners=rule == 1, HalfPixelCenters=rule == 2)

    def depth_to_space(self, here: TfliteMap) -> TfliteMap | None:
        """Channels become positions."""
        if len(here.shape) != 4 or here.shape[3] % 4:
            return None
        _, rows, columns, channels = here.shape
        return self.operator("DEPTH_TO_SPACE", here, (1, 2 * rows, 2 * columns, channels // 4), BlockSize=2)

    def transpose(self, here: TfliteMap) -> TfliteMap | None:
        """Another order of the axes."""
        if len(here.shape) < 3 or here.shape[-1] > 12 or max(here.shape) > MOST_CHANNELS:
            return None
        axes = [0, *(1 + int(axis) for axis in self.rng.permutation(len(here.shape) - 1))]
        shape = tuple(here.shape[axis] for axis in axes)
        return self.operator("TRANSPOSE", here, shape, constants=[self.constant(np.array(axes, np.int32))])

    def reduce(self, here: TfliteMap) -> TfliteMap | None:
        """The mean or the maximum over some axes."""
        if len(here.shape) != 4:
            return None
        axes = self.pick.of([(1, 2), (1, 2), (1, 2), (1,), (2,), (3,)])
        keep = self.pick.flip()
        sizes = [1 if axis in axes else size for axis, size in enumerate(here.shape)]
        shape = tuple(size for axis, size in enumerate(sizes) if keep or axis not in axes)
        constants = [self.constant(np.array(axes, np.int32))]
        if self.chance(3):
            return self.operator("REDUCE_MAX", here, shape, here.values, constants, KeepDims=keep)
        quantisation = self.pick.of([here.values, self.quantised(RMS * here.scale / 2)])
        return self.operator("MEAN", here, shape, quantisation, constants, KeepDims=keep)

    def reshape(self, here: TfliteMap) -> TfliteMap | None:
        """Append an operator that gives the values another shape, sometimes a list."""
        count = prod(here.shape)
        if self.chance(3):
            shape: Shape = (1, count)
        else:
            channels = self.pick.of([each for each in range(1, min(count, 16) + 1) if count % each == 0])
            places = count // channels
            rows = self.pick.of([each for each in range(1, places + 1) if places % each == 0])
            shape = (1, rows, places // rows, channels)
        if shape[-1] > MOST_CHANNELS and len(shape) == 4:
            return None
        return self.reshaped(here, shape)

    def dense(self, here: TfliteMap) -> TfliteMap:
        """A dense layer of all values."""
        inputs = prod(here.shape)
        outputs = self.channels()
        weights = self.weights((outputs, inputs), -127, 127)
        constants, quantisation = self.layer(weights, here, inputs, outputs, not self.chance(4))
        return self.operator("FULLY_CONNECTED", here, (1, outputs), quantisation, constants, **self.fused())

    def dense_at_each_place(self, here: TfliteMap) -> TfliteMap | None:
        """A dense layer of the last axis; places come first, without an axis of images, as Keras has it, or not."""
        if len(here.shape) < 3:
            return None
        outputs = self.channels()
        shape = (*here.shape[:-1], outputs)
        if prod(shape) > MOST_VALUES:
            return None
        weights = self.weights((outputs, here.shape[-1]), -127, 127)
        constants, quantisation = self.layer(weights, here, here.shape[-1], outputs, not self.chance(4))
        if self.pick.flip():
            return self.operator(
                "FULLY_CONNECTED", here, shape, quantisation, constants, KeepNumDims=True, **self.fused()
            )
        count = prod(shape[:-1])
        if self.pick.flip():
            here = self.reshaped(here, (count, here.shape[-1]))
        here = self.operator("FULLY_CONNECTED", here, (count, outputs), quantisation, constants, **self.fused())
        if self.chance(3):
            here = self.activation(here)
        return self.reshaped(here, shape)

    def reshaped(self, here: TfliteMap, shape: Shape) -> TfliteMap:
        """Append RESHAPE, which gives the values this shape."""
        return self.operator("RESHAPE", here, shape, constants=[self.constant(np.array(shape, np.int32))])

    def end(self, here: TfliteMap) -> TfliteMap:
        """Append the end of a file, and return its map: perhaps a dense layer, a function of the host, and real
        numbers."""
        if self.pick.flip():
            here = self.dense(here)
        closing = self.pick.of([*AT_THE_END, "", "", "", ""])
        if closing:
            fields = {"Beta": 1.0} if closing == "SOFTMAX" else {}
            here = self.operator(closing, here, here.shape, FIXED[closing], **fields)
        if self.chance(3):
            here = self.operator("DEQUANTIZE", here, here.shape, kept="FLOAT32")
        return here


def _geometry(strides: Shape, dilations: Shape, same: bool) -> dict[str, int]:
    """Options of a convolution that say where its windows lie."""
    return {
        "StrideH": strides[0],
        "StrideW": strides[1],
        "Padding": 0 if same else 1,
        "DilationHFactor": dilations[0],
        "DilationWFactor": dilations[1],
    }


def random_tflite(pick: Pick) -> RandomFile:
    """A random TFLite file."""
    return TfliteDrawing(pick).draw()
