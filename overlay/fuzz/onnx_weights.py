"""Steps of random ONNX files that have weights, with what follows them in front of a quantiser."""

from collections.abc import Callable
from math import prod, sqrt

import numpy as np

from .onnx_places import OnnxPlaces
from .onnx_quantisers import SPREAD, FileWeights
from .onnx_values import OnnxValues
from .onnx_writer import MICROSOFT, OnnxMap, Shape
from .random_files import MOST_VALUES


class OnnxWeights(OnnxValues, OnnxPlaces):
    """An ONNX file with steps that have weights."""

    def conv(self, here: OnnxMap) -> OnnxMap | None:
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

    def transposed(self, here: OnnxMap) -> OnnxMap | None:
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

    def one_scale(self, draw: Callable[[], FileWeights]) -> FileWeights:
        """Weights with one scale: of groups of a transposed convolution there is no axis of all outputs."""
        while (weights := draw()).scale.size > 1:
            pass
        return weights

    def dense(self, here: OnnxMap) -> OnnxMap:
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

    def dense_at_each_place(self, here: OnnxMap) -> OnnxMap | None:
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
            real = self.node("Reshape", real, self.constant([-1, *shape], np.int64))
        else:
            real = self.node("MatMul", real, weights.real)
        return self.quantised(real, shape, (-SPREAD * spread, SPREAD * spread))

    def after(self, real: str, shape: Shape, reach: tuple[float, float]) -> OnnxMap:
        """Append the nodes behind a layer, and return their map: perhaps batch normalisation, mostly an activation, in
        either order; and a quantiser."""
        normalises = len(shape) > 1 and self.chance(4)
        last = self.chance(3)
        if normalises and not last:
            real = self.normalised(real, shape, reach)
        low, high = reach
        if self.chance(2):
            real = self.node("Relu", real)
            low, high = 0.0, high
        elif self.chance(5):
            real, (low, high) = self.applied(real, (low, high), shape)
        elif self.chance(6):
            ends = self.constant(0.0), self.constant(round(high / 2, 3))
            real = self.node("Clip", real, *ends)
            low, high = 0.0, high / 2
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
