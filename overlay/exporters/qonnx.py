"""A model as a QONNX file: for Netron, qonnx, FINN's tools, and for `bitloom import`, which makes an equal model of it.

Integers become real numbers that are equal to them. Tensors are in ONNX's order (1, channels, rows, columns).

=============  ===================================================================================
layer          nodes
=============  ===================================================================================
input          BipolarQuant or Quant of scale 1, which says what comes in
conv, dense    Conv, or Flatten and Gemm, on weights that go through BipolarQuant or Quant
threshold      MultiThreshold; a falling channel is multiplied with -1 before
requantise     MultiThreshold: the first sum of each value, which no rounding of floats can move
max, avg pool  MaxPool; AveragePool and Quant, which rounds halves away from zero
concat         Concat of channels
outputs        the file's outputs, one for each map
=============  ===================================================================================
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bitloom.golden.distribution import pip_install
from bitloom.golden.encoding import BIPOLAR, Array, Encoding
from bitloom.golden.graph import INPUT
from bitloom.golden.layer import Layer, Map, OneInput
from bitloom.golden.layers.affine import Affine
from bitloom.golden.layers.concat import Concat
from bitloom.golden.layers.conv import Conv, Weighted
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.outputs import Outputs
from bitloom.golden.layers.pool import AvgPool, MaxPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model
from bitloom.golden.window import Window

DOMAIN = "qonnx.custom_op.general"
OPSET = 17
QONNX_OPSET = 1
IR_VERSION = 8
EXACT = 1 << 24
"""Integers of float32 are exact below this."""


def to_qonnx(model: Model) -> bytes:
    """A model as the bytes of a QONNX file.

    Parameters
    ----------
    model : Model
        With one output or several. Additions, products of maps, lookups, minimum pools and sum pools have no form.

    Raises
    ------
    ValueError
        If a layer has no such form; the message names the layer, the rule and the value.
    """
    return _Writer(model).message().SerializeToString()  # type: ignore[no-any-return]


class _Writer:
    """Nodes and constants, layer by layer."""

    def __init__(self, model: Model) -> None:
        try:
            from onnx import helper, numpy_helper
        except ModuleNotFoundError as e:
            raise ValueError(f"needs the extra import: {pip_install('import')} ({e})") from None
        self._helper = helper
        self._numpy = numpy_helper
        self._model = model
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._here = "input"
        self._here = self._quantised(self._here, "input_quant", model.network.input.encoding)
        self._tensors = {INPUT: self._here}
        """Map -> the tensor that has its values."""
        self._flat = {INPUT: False}
        """Map -> whether that tensor has no rows and columns: behind a dense layer."""
        for layer in model.network.layers:
            self._joined(layer)
            self._tensors[layer.name] = self._here

    def message(self) -> Any:
        """The ModelProto."""
        network = self._model.network
        infos = [self._info("input", network.input, False)]
        for place, name in enumerate(network.outputs):
            tensor = self._tensors[name]
            if name in network.outputs[:place]:  # the outputs of a file have different names
                tensor = self._node("Identity", tensor, name=f"output_{place}")
            infos.append(self._info(tensor, network.maps[name], self._flat[name]))
        graph = self._helper.make_graph(self._nodes, network.name, infos[:1], infos[1:], self._constants)
        versions = [self._helper.make_opsetid("", OPSET), self._helper.make_opsetid(DOMAIN, QONNX_OPSET)]
        message = self._helper.make_model(graph, opset_imports=versions, ir_version=IR_VERSION, producer_name="bitloom")
        if network.classes:
            self._helper.set_model_props(message, {"classes": "\n".join(network.classes)})
        return message

    def _info(self, tensor: str, values: Map, flat: bool) -> Any:
        """Entry of the file for a tensor: its type and shape."""
        size = [] if flat else [values.height, values.width]
        return self._helper.make_tensor_value_info(tensor, 1, ["N", values.channels, *size])

    def _node(self, op: str, *inputs: str, name: str, domain: str = "", **attributes: Any) -> str:
        """Append a node; returns the name of its output."""
        output = f"{name}_out"
        self._nodes.append(self._helper.make_node(op, inputs, [output], name, domain=domain, **attributes))
        return output

    def _constant(self, name: str, values: Any) -> str:
        array = np.asarray(values)
        if array.dtype.kind == "i" and array.size and np.abs(array).max() >= EXACT:
            raise ValueError(f"{name}: must be below 2^24 to be exact in float32, got {np.abs(array).max()}")
        self._constants.append(self._numpy.from_array(array.astype(np.float32), name))
        return name

    def _quantised(self, values: str, name: str, encoding: Encoding) -> str:
        """Append the quantiser whose values are those of an encoding."""
        if encoding == BIPOLAR:
            return self._node("BipolarQuant", values, self._constant(f"{name}_scale", 1.0), name=name, domain=DOMAIN)
        scale = float(encoding.step)
        zero = 0.0
        bits = encoding.bits
        if encoding.kind == "bipolar":  # k bits: 0..k, as long as nothing else comes in
            bits = encoding.bits.bit_length()
            zero = encoding.bits / 2
        kinds = {"signed": int(encoding.kind in ("signed", "ternary")), "narrow": int(encoding.kind == "ternary")}
        return self._quant(values, name, (scale, zero, bits), rounding_mode="ROUND", **kinds)

    def _quant(self, values: str, name: str, parameters: tuple[float, float, int], **attributes: Any) -> str:
        """Append a Quant of scale, zero point and bits."""
        named = [
            self._constant(f"{name}_{what}", float(value)) for what, value in zip(("scale", "zero", "bits"), parameters)
        ]
        return self._node("Quant", values, *named, name=name, domain=DOMAIN, **attributes)

    def _joined(self, layer: Layer) -> None:
        """Nodes of a layer, which begin at what it reads."""
        if isinstance(layer, Outputs):
            return
        network = self._model.network
        names = network.reads[layer.name]
        sources = network.sources(layer)
        read = [self._tensors[name] for name in names]
        flat = {self._flat[name] for name in names}
        if len(flat) > 1:
            got = " and ".join(names)
            raise ValueError(f"{layer.name}: QONNX joins maps behind dense layers with each other alone, got {got}")
        self._flat[layer.name] = isinstance(layer, Dense) or flat == {True}
        if isinstance(layer, OneInput):
            (self._here,), (source,) = read, sources
            self._layer(layer, source)
        elif isinstance(layer, Concat):
            self._here = self._node("Concat", *read, name=layer.name, axis=1)
        else:
            raise ValueError(f"{layer.name}: QONNX has no form for a layer of kind {layer.kind}")

    def _layer(self, layer: OneInput, source: Map) -> None:
        arrays = self._model.arrays.get(layer.name, {})
        if isinstance(layer, Weighted):
            self._weighted(layer, source, layer.weights(arrays))
        elif isinstance(layer, Threshold):
            direction = arrays["direction"].astype(np.int64)
            self._turn(layer.name, direction)
            rising = np.sort(arrays["threshold"] * direction[:, None], axis=1)
            self._steps(layer.name, rising, scale=2.0, bias=-float(layer.levels))
        elif isinstance(layer, Requantise):
            steps = first_sums(layer, source, arrays)
            self._steps(layer.name, steps, scale=1.0, bias=float(layer.low))
        elif isinstance(layer, MaxPool):
            self._here = self._node("MaxPool", self._here, name=layer.name, **_sliding(layer.window))
        elif isinstance(layer, AvgPool):
            self._average(layer, source)
        elif isinstance(layer, Affine):
            self._affine(layer, arrays)
        else:
            raise ValueError(f"{layer.name}: QONNX has no form for a layer of kind {layer.kind}")

    def _weighted(self, layer: Weighted, source: Map, weight: Array) -> None:
        """A convolution or a dense layer: weights (outputs, rows, columns, channels) in ONNX's order."""
        ordered = weight.transpose(0, 3, 1, 2)
        if isinstance(layer, Conv):
            several = source.channels // weight.shape[3]
            groups = {"group": several} if several > 1 else {}
            window = layer.window(source)
            op = "Conv"
            if window.repeats:
                scales = self._constant(f"{layer.name}_scales", np.array([1, 1, *window.growth]))
                nearest = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
                self._here = self._node("Resize", self._here, "", scales, name=f"{layer.name}_grown", **nearest)
            if window.beside != "nothing":
                window = self._with_edges(layer.name, window)
            sliding = _sliding(window)
            if window.growth != (1, 1) and not window.repeats:
                op = "ConvTranspose"
                sliding = _transposed(layer.name, window)
                parts = [part.transpose(1, 0, 2, 3) for part in np.split(ordered, several)]
                ordered = np.concatenate(parts)[:, :, ::-1, ::-1]
            values = self._quantised(self._constant(f"{layer.name}_w", ordered), f"{layer.name}_quant", layer.weight)
            self._here = self._node(op, self._here, values, name=layer.name, **sliding, **groups)
        else:
            flat = self._constant(f"{layer.name}_w", ordered.reshape(len(weight), -1))
            values = self._quantised(flat, f"{layer.name}_quant", layer.weight)
            self._here = self._node("Flatten", self._here, name=f"{layer.name}_flat", axis=1)
            self._here = self._node("Gemm", self._here, values, name=layer.name, transB=1)
        if layer.accumulate == "or_words":
            raise ValueError(f"{layer.name}: QONNX has no form for accumulate or_words")
        if layer.accumulate == "or":  # one match is enough: the sum is above that of no match
            window = layer.window(source)
            if any(window.padding):
                raise ValueError(f"{layer.name}: accumulate or must have no padding, got {window.padding}")
            if window.padded:
                raise ValueError(f"{layer.name}: accumulate or must have growth (1, 1), got {window.growth}")
            limit = np.full((layer.out_channels, 1), 2 - layer.fan_in(source))
            self._steps(f"{layer.name}_or", limit, scale=2.0, bias=-1.0)

    def _with_edges(self, name: str, window: Window) -> Window:
        """Append a padding with values of the map, and the window of what it makes."""
        apart = (1, 1) if window.repeats else window.growth
        edges, left = zip(*(divmod(side, growth) for side, growth in zip(window.padding, apart * 2)))
        top, before, bottom, behind = edges
        mode = {"nearest": "edge", "mirrored": "reflect"}[window.beside]
        pads = self._constant(f"{name}_pads", np.array([0, 0, top, before, 0, 0, bottom, behind]))
        self._here = self._node("Pad", self._here, pads, name=f"{name}_edges", mode=mode)
        return replace(window, padding=left, beside="nothing")

    def _turn(self, name: str, direction: Array) -> None:
        """Multiply falling channels with -1."""
        if (direction < 0).any():
            spread = direction if self._flat[name] else direction[:, None, None]
            self._here = self._node("Mul", self._here, self._constant(f"{name}_sign", spread), name=f"{name}_turn")

    def _steps(self, name: str, limits: Array, scale: float, bias: float) -> None:
        """Append thresholds: scale * (how many are reached) + bias."""
        thresholds = self._constant(f"{name}_limits", limits.astype(np.int64))
        levels = limits.shape[1]
        kind = "BIPOLAR" if (levels, scale) == (1, 2.0) else f"INT{max(2, int(levels * scale).bit_length() + 1)}"
        self._here = self._node(
            "MultiThreshold",
            self._here,
            thresholds,
            name=name,
            domain=DOMAIN,
            out_dtype=kind,
            out_scale=scale,
            out_bias=bias,
        )

    def _affine(self, layer: Affine, arrays: Mapping[str, Array]) -> None:
        """A product and a sum with a constant a channel, and perhaps Relu."""
        for what, op in (("multiplier", "Mul"), ("bias", "Add")):
            values = arrays[what] if self._flat[layer.name] else arrays[what].reshape(1, -1, 1, 1)
            constant = self._constant(f"{layer.name}_{what}", values)
            self._here = self._node(op, self._here, constant, name=f"{layer.name}_{op.lower()}")
        if layer.relu:
            self._here = self._node("Relu", self._here, name=f"{layer.name}_relu")

    def _average(self, layer: AvgPool, source: Map) -> None:
        average = self._node("AveragePool", self._here, name=layer.name, count_include_pad=0, **_sliding(layer.window))
        encoding = source.encoding
        kinds = {"signed": int(encoding.kind == "signed"), "narrow": 0, "rounding_mode": "HALF_UP"}
        self._here = self._quant(average, f"{layer.name}_quant", (1.0, 0.0, encoding.bits), **kinds)


def _sliding(window: Window) -> dict[str, tuple[int, ...]]:
    attributes = {"kernel_shape": window.kernel, "strides": window.stride, "pads": window.padding}
    return {**attributes, "dilations": window.dilation} if window.dilated else attributes


def _transposed(name: str, window: Window) -> dict[str, tuple[int, ...]]:
    """The attributes of a ConvTranspose whose windows are those of a map that grows with nothing between positions."""
    if window.stride != (1, 1):
        raise ValueError(
            f"{name}: QONNX has no form for a map that grows where stride isn't (1, 1), got {window.stride}"
        )
    pads = tuple(span - 1 - side for span, side in zip(window.span * 2, window.padding))
    return _sliding(replace(window, stride=window.growth, padding=pads))


def first_sums(layer: Requantise, source: Map, arrays: dict[str, Array] | Any) -> Array:
    """Where each value of a requantisation begins.

    Parameters
    ----------
    layer : Requantise
    source : Map
        The sums.
    arrays : mapping of str to array
        The layer's.

    Returns
    -------
    (channels, values - 1) int64
        The first sum that becomes ``low + 1``, ``low + 2``, ... or more; one above all sums where none does.
    """
    low = source.encoding.low
    high = source.encoding.high
    first = np.full((source.channels, layer.high - layer.low), low, np.int64)
    last = np.full_like(first, high + 1)
    wanted = np.arange(layer.low + 1, layer.high + 1)
    while (first < last).any():  # the rule never falls as the sum rises
        middle = (first + last) >> 1
        columns = [layer.forward(middle[:, k], arrays, source) for k in range(first.shape[1])]
        reached = np.stack(columns, axis=1) >= wanted
        last = np.where(reached, middle, last)
        first = np.where(reached, first, middle + 1)
    return last
