"""Steps of random ONNX files that compute each value for itself, of one map or of several.

Activations are those of the importer's table, with random attributes of ONNX's schemas.
"""

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

import numpy as np

from bitloom.overlay.importers.activations import ACTIVATIONS, ActivationFunction
from bitloom.overlay.importers.references import reference
from bitloom.overlay.importers.source import SourceNode

from .onnx_quantisers import SPREAD, OnnxQuantisers, of_channels
from .onnx_writer import MICROSOFT, OnnxMap, Shape
from .random_files import MOST_CHANNELS

PLACES = 65
"""Places at which an activation's results are looked at, to see how far they reach."""


class OnnxValues(OnnxQuantisers):
    """An ONNX file with steps of each value."""

    def applied(
        self, real: str, reach: tuple[float, float], shape: Shape, only: Sequence[ActivationFunction] = ()
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
        if chosen.constants and self.pick.flip():
            constants = [constants[0] * self.rng.uniform(self.pick.of([0, -1]), 1, of_channels(shape))]
        return self.node(op, real, *(self.constant(each) for each in constants), **attributes), ends

    def _attributes(self, activation: ActivationFunction) -> Mapping[str, Any]:
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

    def activation(self, here: OnnxMap) -> OnnxMap:
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

    def with_constant(self, here: OnnxMap) -> OnnxMap:
        """Sums, differences, products, quotients and ends of a map and constants, of one number or one a channel."""
        real = self.real(here)
        low, high = here.low, here.high
        for _ in range(self.pick.integer(1, 2)):
            op = self.pick.of(["Add", "Sub", "Mul", "Div", "Neg", "Max", "Min"])
            if op == "Neg":
                real = self.node("Neg", real)
                low, high = -high, -low
                continue
            self.exact = False
            shape = of_channels(here.shape) if self.pick.flip() else ()
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

    def gated(self, here: OnnxMap) -> OnnxMap:
        """A map and a function of it, as x * sigmoid(x), or one of both."""
        real = self.real(here)
        self.exact = False
        gate, _ = self.applied(
            real,
            (here.low, here.high),
            here.shape,
            [each for each in ACTIVATIONS if each.onnx in ("Sigmoid", "Tanh", "HardSigmoid")],
        )
        op = self.pick.of(["Mul", "Mul", "Sub", "Max", "Min", "Where"])
        first = [self.compared(real, here)] if op == "Where" else []
        return self.quantised(self.node(op, *first, real, gate), here.shape, (here.low / 2, here.high))

    def compared(self, real: str, here: OnnxMap) -> str:
        """Tensor of truth values of a map's real numbers: a comparison with a number, or of two of these."""
        kind = self.pick.of(["Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal", "Not", "And", "Or"])
        if kind == "Not":
            return self.node(kind, self.compared(real, here))
        if kind in ("And", "Or"):
            return self.node(kind, self.compared(real, here), self.compared(real, here))
        return self.node(kind, real, self.constant(self.rng.uniform(here.low, here.high)))

    def requantise(self, here: OnnxMap) -> OnnxMap:
        """Another scale."""
        return self.quantised(self.real(here), here.shape, (here.low, here.high))

    def nothing(self, here: OnnxMap) -> OnnxMap:
        """An operator that leaves every value as it is, with the same quantiser behind it, or another one."""
        op = self.pick.of(["Identity", "Dropout", "Cast"])
        attributes = {"to": self._types.FLOAT} if op == "Cast" else {}
        real = self.node(op, self.real(here), **attributes)
        return self.quantised(real, here.shape, (here.low, here.high), self.maybe(here))

    def join(self, here: OnnxMap) -> OnnxMap | None:
        """A sum or a product of two maps, one of which may be made for it, or be a value a channel."""
        product = self.chance(3)
        others = [each for each in self.maps if each.shape == here.shape and each is not here]
        if not others or self.chance(3):
            second = self.gate(here) if product and self.pick.flip() else self.beside(here)
            if second is None:
                return None
            others = [second]
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
            real = self.node("Relu", real)
            low = 0.0
        return self.quantised(real, here.shape, (low, most))

    def beside(self, here: OnnxMap) -> OnnxMap | None:
        """A map of the same shape, by a convolution."""
        if len(here.shape) < 2:
            return None
        channels, *sizes = here.shape
        weights = self.grid((channels, channels, *[1] * len(sizes)))
        spread = sqrt(channels) * here.rms * weights.rms
        real = self.node("Conv", self.real(here), weights.real)
        return self.quantised(real, here.shape, (-SPREAD * spread, SPREAD * spread))

    def gate(self, here: OnnxMap) -> OnnxMap | None:
        """A value a channel, as squeeze-and-excite blocks have it."""
        if len(here.shape) != 3:
            return None
        self.exact = False
        mean = self.quantised(
            self.node("GlobalAveragePool", self.real(here)), (here.shape[0], 1, 1), (here.low / 2, here.high / 2)
        )
        by_weights = self.beside(mean)
        if by_weights is None:
            return None
        real = self.node(self.pick.of(["Sigmoid", "HardSigmoid"]), self.real(by_weights))
        return self.quantised(real, by_weights.shape, (0.0, 1.0))

    def concatenate(self, here: OnnxMap) -> OnnxMap | None:
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
