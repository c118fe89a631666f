"""Quantisers and quantised weights of random ONNX files, in each of their forms."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.overlay.importers.quantisers import ROUNDINGS

from .onnx_writer import QONNX, OnnxMap, OnnxWriter, Shape

SPREAD = 2.5
"""How many standard deviations from its middle a sum is taken to reach."""


@dataclass(frozen=True, kw_only=True)
class FileWeights:
    """Weights of a file."""

    real: str
    """The tensor of real numbers."""
    integers: tuple[str, ...]
    """Names of the integers, their scales and zero points; none in QONNX's form."""
    scale: Array
    """One, or one an output."""
    rms: float
    """About the root mean square of the real numbers."""


def of_channels(shape: Shape) -> Shape:
    """The shape of constants of a map of this shape, one a channel."""
    return (shape[0], *[1] * (len(shape) - 1))


def _common(reach: tuple[float, float], ends: tuple[float, float]) -> tuple[float, float]:
    """From where to where real numbers reach that a quantiser cuts; to its own ends where it leaves none."""
    low, high = max(reach[0], ends[0]), min(reach[1], ends[1])
    return (low, high) if low < high else ends


class OnnxQuantisers(OnnxWriter):
    """An ONNX file with quantisers, in the words of its form."""

    def source(self) -> OnnxMap:
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

    def levels(self, low: float, high: float, kind: str) -> OnnxMap:
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
        return OnnxMap(name="", shape=(), low=low, high=high, scale=scale, zero=zero, kind=kind, pair=pair)

    def quantised(self, real: str, shape: Shape, reach: tuple[float, float], like: OnnxMap | None = None) -> OnnxMap:
        """Append a quantiser, with the scale of another map if that is given."""
        if self.form == "qonnx":
            return self._quant(real, shape, reach)
        kind = self.kind
        if self.has_narrow and self.chance(8):
            kind = self.pick.of(["INT4", "UINT4"])
        levels = like or self.levels(*reach, kind)
        name = self.node("QuantizeLinear", real, *levels.pair, kind=levels.kind)
        return self._appended(replace(levels, name=name, shape=shape))

    def _quant(self, real: str, shape: Shape, reach: tuple[float, float]) -> OnnxMap:
        """QONNX's quantiser."""
        low, high = reach
        if self.chance(16):
            return self._appended(OnnxMap(name=self.node("Sign", real), shape=shape, low=-1.0, high=1.0))
        if self.chance(8):
            scale = self.scale(max(abs(low), abs(high)) / 2)
            name = self.node("BipolarQuant", real, self.constant(scale), domain=QONNX)
            return self._appended(OnnxMap(name=name, shape=shape, low=-scale, high=scale, scale=scale))
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
        return self._appended(OnnxMap(name=name, shape=shape, low=low, high=high, scale=scale))

    def _appended(self, result: OnnxMap) -> OnnxMap:
        """The map, which later steps may read."""
        self.maps.append(result)
        return result

    def _of_each(self, scale: float, shape: Shape) -> Any:
        """Sometimes a scale for each channel: small multiples of one number, which all weights read, or any."""
        if not self.chance(8):
            return scale
        some = [scale, scale / 2, scale / 4] if self.chance(2) else [self.scale(scale) for _ in range(shape[0])]
        return np.float32([self.pick.of(some) for _ in range(shape[0])]).reshape(of_channels(shape))

    def real(self, here: OnnxMap) -> str:
        """The tensor of a map's real numbers."""
        return here.name if self.form == "qonnx" else self.node("DequantizeLinear", here.name, *here.pair)

    def maybe(self, here: OnnxMap) -> OnnxMap | None:
        """The scale of a map, or none."""
        return here if self.form != "qonnx" and self.pick.flip() else None

    def moved(self, here: OnnxMap, op: str, inputs: Sequence[str], shape: Shape, **attributes: Any) -> OnnxMap:
        """A node that moves values: of the integers, or of the real numbers with the same quantiser behind."""
        if self.form == "qonnx" or (self.pick.flip() and not here.kind.endswith("4")):
            kind = "" if self.form == "qonnx" else here.kind
            name = self.node(op, here.name, *inputs, kind=kind, **attributes)
            return self._appended(replace(here, name=name, shape=shape))
        return self.quantised(self.node(op, self.real(here), *inputs, **attributes), shape, (here.low, here.high), here)

    def integer_node(
        self,
        op: str,
        sources: Sequence[OnnxMap],
        shape: Shape,
        reach: tuple[float, float],
        real: Callable[[list[str]], str],
        *,
        behind: Sequence[str] = (),
        last: Sequence[str] = (),
        first: bool = False,
        domain: str = "",
        **attributes: Any,
    ) -> OnnxMap:
        """Append one of onnxruntime's operators on integers. ``real`` appends the same on real numbers, to the twin.

        Its inputs are the maps with their scales and zero points, what comes ``behind`` these, the result's scale and
        zero point (or ``first`` of all), and what is ``last``.
        """
        levels = self.levels(*reach, self.kind)
        name = self._name()
        with self._only(self._twin):
            self.node(
                "QuantizeLinear", real([self.real(each) for each in sources]), *levels.pair, out=name, kind=levels.kind
            )
        maps = [part for each in sources for part in (each.name, *each.pair)]
        inputs = [*maps, *behind]
        inputs = [*levels.pair, *inputs] if first else [*inputs, *levels.pair]
        with self._only(self._nodes):
            self.node(op, *inputs, *last, domain=domain, out=name, kind=levels.kind, **attributes)
        return self._appended(replace(levels, name=name, shape=shape))

    def grid(self, shape: Shape, axis: int = 0) -> FileWeights:
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
        return FileWeights(real=real, integers=names, scale=scale, rms=float(scale.max()) * (high - low) * 0.29)

    def _quant_weights(self, shape: Shape, scale: Any) -> FileWeights:
        """Weights of QONNX's form: real numbers that a quantiser reads."""
        bits = self.pick.of([1, 1, 2, 2, 3, 4, 4, 5, 8, 8, 8])
        most = max(1, (1 << bits - 1) - 1)
        values = self.rng.normal(0, 0.6 * most, shape) * scale
        if bits == 1:
            scale = np.asarray(scale).ravel()[0]
            name = self.node("BipolarQuant", self.constant(values), self.constant(scale), domain=QONNX)
            return FileWeights(real=name, integers=(), scale=np.asarray(scale), rms=float(scale))
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
        return FileWeights(real=name, integers=(), scale=np.asarray(scale), rms=float(np.max(scale)) * 0.6 * most)

    def bias(self, here: OnnxMap, weights: FileWeights, outputs: int, spread: float) -> tuple[str, str]:
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
