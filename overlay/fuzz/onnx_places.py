"""Steps of random ONNX files that reduce windows, or put values at other places."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, log2, prod
from typing import Any

import numpy as np

from .onnx_quantisers import OnnxQuantisers
from .onnx_writer import MICROSOFT, OnnxMap, Shape
from .random_files import MOST_CHANNELS, MOST_VALUES


class OnnxPlaces(OnnxQuantisers):
    """An ONNX file with steps of windows and places."""

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

    def pool(self, here: OnnxMap) -> OnnxMap | None:
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
        if self.chance(4):  # a max pool of means
            kernel = self.kernel(result)
            real = self.node("MaxPool", real, kernel_shape=kernel)
            shape = (channels, *(size - taps + 1 for size, taps in zip(result, kernel)))
        return self.quantised(real, shape, (here.low, here.high), self.maybe(here))

    def whole(self, here: OnnxMap, average: bool) -> OnnxMap:
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

    def reduce(self, here: OnnxMap) -> OnnxMap | None:
        """The mean, the sum or the maximum over some axes."""
        if len(here.shape) != 3:
            return None
        axes = self.pick.of([[2, 3], [2, 3], [-1, -2], [2], [3], [1]])
        keep = self.pick.integer(0, 1)
        gone = {axis % 4 for axis in axes}
        shape = tuple(
            1 if axis in gone else size for axis, size in enumerate((1, *here.shape)) if keep or axis not in gone
        )
        op = self.pick.of(["ReduceMean", "ReduceMax", "ReduceSum"])
        count = prod(size for axis, size in enumerate((1, *here.shape)) if axis in gone)
        self.exact = self.exact and (op != "ReduceMean" or log2(count).is_integer())
        if self.opset >= (13 if op == "ReduceSum" else 18):
            real = self.node(op, self.real(here), self.constant(axes, np.int64), keepdims=keep)
        else:
            real = self.node(op, self.real(here), axes=axes, keepdims=keep)
        times = count if op == "ReduceSum" else 1
        return self.quantised(real, shape[1:], (times * here.low, times * here.high), self.maybe(here))

    def split(self, here: OnnxMap) -> OnnxMap | None:
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

    def cut(self, here: OnnxMap) -> OnnxMap | None:
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

    def pad(self, here: OnnxMap) -> OnnxMap | None:
        """Zeros, edges or what lies behind these around a map."""
        if len(here.shape) != 3:
            return None
        widths = [self.pick.integer(0, 2) for _ in range(4)]
        pads = [0, 0, *widths[:2], 0, 0, *widths[2:]]
        channels, rows, columns = here.shape
        shape = (channels, rows + widths[0] + widths[2], columns + widths[1] + widths[3])
        modes = ["constant", "edge"] + ["reflect"] * (max(widths[::2]) < rows and max(widths[1::2]) < columns)
        real = self.node("Pad", self.real(here), self.constant(pads, np.int64), mode=self.pick.of(modes))
        return self.quantised(real, shape, (here.low, here.high), self.maybe(here))

    def resize(self, here: OnnxMap) -> OnnxMap | None:
        """More rows and columns, by whole numbers."""
        if len(here.shape) != 3:
            return None
        times: tuple[float, float] = self.pick.of(
            [(2, 2), (2, 2), (1, 2), (2, 1), (3, 3), (4, 2), (0.5, 0.5), (0.5, 1)]
        )
        channels, rows, columns = here.shape
        shape = (channels, int(rows * times[0]), int(columns * times[1]))
        if not 0 < prod(shape) <= MOST_VALUES or shape[1:] != (rows * times[0], columns * times[1]):
            return None
        mode = self.pick.of(["nearest", "linear"]) if min(times) >= 1 else "linear"
        rules = ["asymmetric", "half_pixel", "pytorch_half_pixel"] + ["align_corners"] * (mode == "linear")
        attributes = {"mode": mode, "coordinate_transformation_mode": self.pick.of(rules)}
        if mode == "nearest":
            attributes["nearest_mode"] = self.pick.of(["floor", "floor", "round_prefer_floor"])
        scales = self.constant([1.0, 1.0, *map(float, times)])
        if self.by_integers() and not here.kind.endswith("4"):
            return self.moved(here, "Resize", ["", scales], shape, **attributes)
        self.exact = self.exact and (mode == "nearest")
        real = self.node("Resize", self.real(here), "", scales, **attributes)
        return self.quantised(real, shape, (here.low, here.high), self.maybe(here))

    def blocks(self, here: OnnxMap) -> OnnxMap | None:
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

    def transpose(self, here: OnnxMap) -> OnnxMap | None:
        """Another order of the axes."""
        if len(here.shape) < 2 or max(here.shape) > MOST_CHANNELS:
            return None
        axes = [0, *(1 + int(axis) for axis in self.rng.permutation(len(here.shape)))]
        return self.moved(here, "Transpose", (), tuple(here.shape[axis - 1] for axis in axes[1:]), perm=axes)

    def reshape(self, here: OnnxMap) -> OnnxMap | None:
        """Append Reshape, Squeeze or Unsqueeze, which give the values another shape."""
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
