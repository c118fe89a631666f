"""Small TFLite files, made here with the schema's own builder: a chain of operators with their constants.

``python -m tests.overlay.importers.tflite_files`` writes data/small.tflite, data/subtraction.tflite,
data/bilinear.tflite and data/ssd.tflite again. Files of the same names, ``.npz``, hold images, ``x``, and the result of
each operator, of ssd those of the file: those of subtraction, bilinear and ssd are recorded from TFLite's own reference
kernels (ai-edge-litert with ``OpResolverType.BUILTIN_REF``).
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

tflite = pytest.importorskip("tflite", reason="the extra import is not installed")
from bitloom.overlay.fuzz.tflite_writer import TfliteOperator, TfliteTensor, tflite_bytes  # noqa: E402

DATA = Path(__file__).parent / "data"
ONE = (1, 1)


@dataclass
class Chain:
    """A model that grows operator by operator: each reads what the one before made."""

    shape: tuple  # rows, columns, channels
    scale: float = 0.5
    zero: int = 0
    kind: str = "INT8"
    codes: tuple = ("BuiltinCode", "DeprecatedBuiltinCode")  # fields that an operator's code stands in
    tensors: list = field(default_factory=list)
    operators: list = field(default_factory=list)
    here: int = 0
    outputs: list = field(default_factory=list)  # numbers of tensors that leave; none: the last one alone
    file_shapes: dict = field(default_factory=dict)  # of tensors whose shape the file states otherwise

    def __post_init__(self):
        quantised = ((), ()) if self.kind == "FLOAT32" else ((self.scale,), (self.zero,))
        self.tensors.append(TfliteTensor("x", (1, *self.shape), self.kind, *quantised))

    @property
    def now(self):
        return self.tensors[self.here]

    @property
    def quantised(self):
        """Scale and zero point of what is here."""
        return self.now.scale[0], self.now.zero[0]

    def constant(self, values, scale=()):
        return self._add(TfliteTensor.constant(f"c{len(self.tensors)}", values, np.ravel(scale)))

    def _add(self, tensor):
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def operator(self, kind, shape, grid=None, constants=(), options=None, kept="INT8", **fields):
        """An operator of the chain; ``made`` is the result's scale and zero point, by default the input's."""
        scale, zero = grid or ((self.now.scale or (1,))[0], (self.now.zero or (0,))[0])
        quantised = ((), ()) if kept in ("FLOAT32", "INT32", "BOOL") else ((scale,), (zero,))
        result = self._add(TfliteTensor(f"t{len(self.operators)}", shape, kept, *quantised))
        self.operators.append((kind, (self.here, *constants), (result,), options, fields))
        self.here = result
        return self

    def _size(self, kernel, strides, same, dilations=(1, 1)):
        out = []
        for size, k, stride, d in zip(self.now.shape[1:3], kernel, strides, dilations):
            out.append(-(-size // stride) if same else (size - (k - 1) * d - 1) // stride + 1)
        return tuple(out)

    def conv(
        self, rng, outputs, kernel, grid, strides=ONE, same=True, activation="NONE", dilations=ONE, depth=0, groups=1
    ):
        """A convolution with random weights, by groups; ``depth`` outputs a channel if it is a depthwise one."""
        channels = self.now.shape[3]
        shape = (1, *kernel, channels * depth) if depth else (outputs, *kernel, channels // groups)
        count = channels * depth if depth else outputs
        weight = self.constant(rng.integers(-127, 128, shape).astype(np.int8), rng.uniform(0.002, 0.006, count))
        bias = self.constant(rng.integers(-2000, 2000, count).astype(np.int32), (0.001,))
        size = self._size(kernel, strides, same, dilations)
        fields = {"StrideH": strides[0], "StrideW": strides[1], "Padding": 0 if same else 1}
        fields |= {"DilationHFactor": dilations[0], "DilationWFactor": dilations[1]}
        fields["FusedActivationFunction"] = getattr(tflite.ActivationFunctionType, activation)
        kind = "DEPTHWISE_CONV_2D" if depth else "CONV_2D"
        options = "DepthwiseConv2DOptions" if depth else "Conv2DOptions"
        if depth:
            fields["DepthMultiplier"] = depth
        images = self.now.shape[0]
        return self.operator(kind, (images, *size, count), grid, (weight, bias), options, **fields)

    def transposed_conv(self, rng, outputs, kernel, grid, strides=(2, 2), same=True, size=None, bias=True):
        """A transposed convolution with random weights; ``size`` is its result's, by default the one that Keras
        makes."""
        weight = rng.integers(-127, 128, (outputs, *kernel, self.now.shape[3])).astype(np.int8)
        if size is None:
            axes = zip(self.now.shape[1:3], kernel, strides)
            size = [n * stride if same else (n - 1) * stride + k for n, k, stride in axes]
        shape = (1, *size, outputs)
        constants = [self.constant(weight, rng.uniform(0.002, 0.006, outputs))]
        if bias:
            constants.append(self.constant(rng.integers(-2000, 2000, outputs).astype(np.int32), (0.001,)))
        wanted = self.constant(np.array(shape, np.int32))
        fields = {"StrideH": strides[0], "StrideW": strides[1], "Padding": 0 if same else 1}
        self.operator("TRANSPOSE_CONV", shape, grid, constants, "TransposeConvOptions", **fields)
        kind, (here, weights, *biases), *others = self.operators[-1]
        self.operators[-1] = (kind, (wanted, weights, here, *biases), *others)
        return self

    def upsample(self, rows, columns, **fields):
        """Nearest upsampling to ``rows`` x ``columns``."""
        size = self.constant(np.array((rows, columns), np.int32))
        shape = (1, rows, columns, self.now.shape[3])
        return self.operator("RESIZE_NEAREST_NEIGHBOR", shape, None, (size,), "ResizeNearestNeighborOptions", **fields)

    def interpolate(self, rows, columns, **fields):
        """Bilinear interpolation to ``rows`` x ``columns``."""
        size = self.constant(np.array((rows, columns), np.int32))
        shape = (1, rows, columns, self.now.shape[3])
        return self.operator("RESIZE_BILINEAR", shape, None, (size,), "ResizeBilinearOptions", **fields)

    def tile(self, *times):
        """The values several times, along each axis."""
        shape = tuple(size * time for size, time in zip(self.now.shape, times))
        return self.operator("TILE", shape, None, (self.constant(np.array(times, np.int32)),), "TileOptions")

    def depth_to_space(self, block):
        _, rows, columns, channels = self.now.shape
        shape = (1, rows * block, columns * block, channels // block**2)
        return self.operator("DEPTH_TO_SPACE", shape, None, (), "DepthToSpaceOptions", BlockSize=block)

    def space_to_depth(self, block):
        _, rows, columns, channels = self.now.shape
        shape = (1, rows // block, columns // block, channels * block**2)
        return self.operator("SPACE_TO_DEPTH", shape, None, (), "SpaceToDepthOptions", BlockSize=block)

    def dense(self, rng, outputs, grid, activation="NONE", bias=True, keep=False, inputs=0):
        """A dense layer of all values, or of every so many ``inputs``; with ``keep`` one of those of the last axis."""
        inputs = self.now.shape[-1] if keep else inputs or int(np.prod(self.now.shape))
        weight = self.constant(rng.integers(-127, 128, (outputs, inputs)).astype(np.int8), (rng.uniform(0.002, 0.006),))
        constants = (weight,)
        if bias:
            constants += (self.constant(rng.integers(-2000, 2000, outputs).astype(np.int32), (0.001,)),)
        fields = {"FusedActivationFunction": getattr(tflite.ActivationFunctionType, activation)}
        if keep:
            fields["KeepNumDims"] = True
        shape = (*self.now.shape[:-1], outputs) if keep else (int(np.prod(self.now.shape)) // inputs, outputs)
        return self.operator("FULLY_CONNECTED", shape, grid, constants, "FullyConnectedOptions", **fields)

    def pool(self, kind, kernel, strides=(1, 1), same=False, activation="NONE"):
        size = self._size(kernel, strides, same)
        fields = {"StrideH": strides[0], "StrideW": strides[1], "Padding": 0 if same else 1}
        fields |= {"FilterHeight": kernel[0], "FilterWidth": kernel[1]}
        fields["FusedActivationFunction"] = getattr(tflite.ActivationFunctionType, activation)
        return self.operator(f"{kind}_POOL_2D", (1, *size, self.now.shape[3]), None, (), "Pool2DOptions", **fields)

    def mean(self, grid, keep=False, axes=(1, 2), kind="MEAN"):
        """The mean over axes; or another reduction of that ``kind``."""
        sizes = [1 if axis in axes else size for axis, size in enumerate(self.now.shape)]
        shape = sizes if keep else [size for axis, size in enumerate(sizes) if axis not in axes]
        constant = self.constant(np.array(axes, np.int32))
        return self.operator(kind, tuple(shape), grid, (constant,), "ReducerOptions", KeepDims=keep)

    def with_constant(self, kind, values, scale, grid, activation="NONE", first=False, kept="INT8"):
        """An operator on a map and int8 numbers, ``scale`` being these numbers' scale and zero point; ``first`` if
        these come first."""
        constant = self.constant(np.asarray(values, np.int8), (scale[0],))
        self.tensors[constant].zero = (scale[1],)
        fused = getattr(tflite.ActivationFunctionType, activation)
        options = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions"}.get(kind)
        fields = {"FusedActivationFunction": fused} if options else {}
        self.operator(kind, self.now.shape, grid, (constant,), options, kept, **fields)
        if first:
            kind, inputs, *others = self.operators[-1]
            self.operators[-1] = (kind, inputs[::-1], *others)
        return self

    def pad(self, rows, columns, number=None):
        """Zero points around the map, or another ``number``."""
        widths = np.array([(0, 0), rows, columns, (0, 0)], np.int32)
        shape = tuple(int(size + sum(pair)) for size, pair in zip(self.now.shape, widths))
        constants = [self.constant(widths)]
        if number is not None:
            scale, zero = self.quantised
            constants.append(
                self._add(TfliteTensor("around", (1,), "INT8", (scale,), (zero,), 0, bytes([number % 256])))
            )
        return self.operator("PAD" if number is None else "PADV2", shape, None, constants)

    def apart(self, kind, block, sides):
        """SPACE_TO_BATCH_ND with padding, or BATCH_TO_SPACE_ND with crops."""
        constants = self.constant(np.array(block, np.int32)), self.constant(np.array(sides, np.int32))
        images, *size, channels = self.now.shape
        if kind == "SPACE_TO_BATCH_ND":
            size = [(n + sum(pair)) // b for n, pair, b in zip(size, sides, block)]
            images = images * int(np.prod(block))
        else:
            size = [n * b - sum(pair) for n, pair, b in zip(size, sides, block)]
            images = images // int(np.prod(block))
        return self.operator(kind, (images, *size, channels), None, constants)

    def reshape(self, *shape):
        return self.operator("RESHAPE", shape, None, (self.constant(np.array(shape, np.int32)),))

    def flat(self):
        """The map as a vector."""
        return self.reshape(1, int(np.prod(self.now.shape)))

    def shape_of(self):
        """The shape of the tensor, as a tensor."""
        kind = tflite.TensorType.INT32
        return self.operator("SHAPE", (len(self.now.shape),), None, (), "ShapeOptions", kept="INT32", OutType=kind)

    def flatten(self):
        """Keras' Flatten for any number of images: the file states a shape of one value, and computes the right one."""
        here = self.here
        begin, end, stride = (self.constant(np.array([number], np.int32)) for number in (0, 1, 1))
        self.shape_of()
        self.operator(
            "STRIDED_SLICE", (), None, (begin, end, stride), "StridedSliceOptions", kept="INT32", ShrinkAxisMask=1
        )
        rest = self.constant(np.array(-1, np.int32))
        self.operator("PACK", (2,), None, (rest,), "PackOptions", kept="INT32", ValuesCount=2)
        shape, self.here = self.here, here
        size = int(np.prod(self.now.shape))
        self.operator("RESHAPE", (1, 1), None, (shape,))
        self.file_shapes = {**self.file_shapes, self.here: (1, 1)}
        self.now.shape = (1, size)
        return self

    def transpose(self, *axes):
        shape = tuple(self.now.shape[axis] for axis in axes)
        return self.operator("TRANSPOSE", shape, None, (self.constant(np.array(axes, np.int32)),))

    def softmax(self):
        return self.operator("SOFTMAX", self.now.shape, (1 / 256, -128), (), "SoftmaxOptions", Beta=1.0)

    def add(self, other, grid, activation="NONE"):
        """The sum of what is here and tensor ``other``."""
        fused = getattr(tflite.ActivationFunctionType, activation)
        return self.operator("ADD", self.now.shape, grid, (other,), "AddOptions", FusedActivationFunction=fused)

    def subtract(self, other, grid, activation="NONE"):
        """The tensor that is here less tensor ``other``."""
        fused = getattr(tflite.ActivationFunctionType, activation)
        return self.operator("SUB", self.now.shape, grid, (other,), "SubOptions", FusedActivationFunction=fused)

    def concat(self, *others, axis=3, grid=None, activation="NONE"):
        """The tensor that is here and tensors behind it, along an axis."""
        shape = list(self.now.shape)
        shape[axis] += sum(self.tensors[other].shape[axis] for other in others)
        fused = getattr(tflite.ActivationFunctionType, activation)
        fields = {"Axis": axis, "FusedActivationFunction": fused}
        return self.operator("CONCATENATION", tuple(shape), grid, others, "ConcatenationOptions", **fields)

    def detections(self, boxes, scores, anchors, **options):
        """The end of TFLite's object detection, of three tensors of real numbers: the four outputs."""
        sizes = {
            "max_detections": 30,
            "max_classes_per_detection": 1,
            "num_classes": self.tensors[scores].shape[-1] - 1,
        }
        limits = {"nms_score_threshold": 0.9, "nms_iou_threshold": 0.5}
        scales = {"y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0}
        given = {**sizes, **limits, **scales, **options}
        places = given["max_detections"] * given["max_classes_per_detection"]
        shapes = {"corners": (1, places, 4), "classes": (1, places), "scores": (1, places), "count": (1,)}
        self.outputs = [self._add(TfliteTensor(name, shape, "FLOAT32")) for name, shape in shapes.items()]
        inputs = boxes, scores, anchors
        self.operators.append(("TFLite_Detection_PostProcess", inputs, tuple(self.outputs), None, given))
        return self

    def bytes(self):
        """The file."""
        outputs = self.outputs or [self.here]
        operators = [TfliteOperator(*operator) for operator in self.operators]
        return tflite_bytes(self.tensors, operators, outputs, codes=self.codes, shapes=self.file_shapes)


def small():
    """Every operator that is imported, but for those at the ends: the network of data/small.tflite."""
    rng = np.random.default_rng(5)
    chain = Chain((9, 7, 2), 0.02, 11)
    chain.conv(rng, 4, (3, 2), (0.03, -128), strides=(1, 2), activation="RELU")
    chain.conv(rng, 4, (3, 3), (0.05, -100), activation="RELU6", depth=1)
    chain.pool("MAX", (2, 2), (2, 1)).conv(rng, 3, (1, 1), (0.01, -128), same=False, activation="RELU")
    return chain.pool("AVERAGE", (4, 3)).reshape(1, 3).dense(rng, 5, (0.02, 9)).softmax()


def subtraction():
    """A difference of two maps, with operator codes in one field alone: the network of data/subtraction.tflite."""
    rng = np.random.default_rng(15)
    chain = Chain((5, 6, 2), 0.02, 7, codes=("BuiltinCode",)).conv(rng, 3, (3, 3), (0.0331, -20))
    fork = chain.here
    chain.conv(rng, 3, (1, 2), (0.0517, 9)).subtract(fork, (0.0413, -31), "RELU6")
    return chain.reshape(1, 90).dense(rng, 5, (0.05, 4))


def bilinear():
    """Bilinear interpolation of all kinds, also of one row: the network of data/bilinear.tflite."""
    rng = np.random.default_rng(25)
    chain = Chain((5, 6, 3), 0.02, 7).conv(rng, 4, (3, 3), (0.0331, -20)).interpolate(10, 24, HalfPixelCenters=True)
    chain.interpolate(20, 24).pool("MAX", (20, 1))
    return chain.interpolate(3, 47, AlignCorners=True)


def ssd(closing="LOGISTIC", direct=True, **options):
    """A detector with heads of two sizes, and boxes that are decoded and thinned out at the end: the network of
    data/ssd.tflite. With ``direct`` anchors are real numbers in the file, else integers that it dequantises."""
    rng = np.random.default_rng(35)
    chain = Chain((8, 8, 3), 0.02, 7)
    heads = [], []
    for strides in (2, 2):
        chain.conv(rng, 6, (3, 3), (0.03, -128), (strides, strides), activation="RELU")
        here = chain.here
        rows, columns = chain.now.shape[1:3]
        for head, values, grid in zip(heads, (4, 3), ((0.07, 5), (0.05, -9))):
            chain.here = here
            head.append(chain.conv(rng, 2 * values, (3, 3), grid).reshape(1, 2 * rows * columns, values).here)
        chain.here = here
    count = 2 * (4 * 4 + 2 * 2)
    tensors = []
    for head in heads:
        chain.here = head[0]
        chain.concat(*head[1:], axis=1)
        if head is heads[1] and closing == "LOGISTIC":
            chain.operator("LOGISTIC", chain.now.shape, (1 / 256, -128))
        elif head is heads[1]:
            chain.softmax()
        tensors.append(chain.operator("DEQUANTIZE", chain.now.shape, kept="FLOAT32").here)
    if direct:
        anchors = chain.constant(rng.uniform(0.1, 0.9, (count, 4)).astype(np.float32))
        chain.tensors[anchors].scale = chain.tensors[anchors].zero = ()
    else:
        chain.here = chain.constant(rng.integers(10, 127, (count, 4)).astype(np.int8), (1 / 128,))
        anchors = chain.operator("DEQUANTIZE", (count, 4), kept="FLOAT32").here
    return chain.detections(*tensors, anchors, **options)


if __name__ == "__main__":
    (DATA / "ssd.tflite").write_bytes(ssd().bytes())
    (DATA / "bilinear.tflite").write_bytes(bilinear().bytes())
    (DATA / "small.tflite").write_bytes(small().bytes())
    (DATA / "subtraction.tflite").write_bytes(subtraction().bytes())
