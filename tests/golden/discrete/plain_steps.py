"""A perceptron that learns in plain Python, number by number: it counts products, and bits of what it keeps.

It has layers with ReLU or hard tanh, with normalisation or biases, and converters to the nearest code.
"""

from collections import Counter
from dataclasses import dataclass, field
from math import sqrt

from bitloom.golden.discrete.converter import Converter
from bitloom.golden.discrete.dense import DenseSpec
from bitloom.golden.discrete.norm import EPSILON
from bitloom.golden.discrete.rule import UpdateRule


@dataclass(frozen=True)
class Number:
    """A number in memory: 32 bits, or those of a code."""

    value: float
    bits: int = 32

    @property
    def code(self) -> bool:
        return self.bits < 32


def real(value: float) -> Number:
    return Number(float(value))


def converted(converter: Converter | None, number: Number) -> Number:
    """The closest value of the table, of two the larger one."""
    if converter is None:
        return number
    y = min(max(number.value, -converter.zone), converter.zone)
    closest = min(sorted(converter.table.values, reverse=True), key=lambda value: abs(value - y))
    return Number(closest, len(converter.table.values).bit_length() - 1)


@dataclass
class PlainLayer:
    """Parameters and memories as lists of numbers: a row of weights a neuron."""

    spec: DenseSpec
    weight: list[list[Number]]
    """Codes, or a master copy."""
    others: dict[str, list[Number]]
    """gamma and beta, or bias."""
    codes: list[list[Number]] = field(default_factory=list)
    """Of a master copy."""
    weight_memory: list[list[Number]] = field(default_factory=list)
    others_memory: dict[str, list[Number]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tensors = self.spec.tensors
        self.weight_memory = [[converted(tensors.memory, real(0)) for _ in row] for row in self.weight]
        self.others_memory = {name: [real(0) for _ in row] for name, row in self.others.items()}
        if tensors.weights is not None and not tensors.master:
            self.weight = [[converted(tensors.weights, number) for number in row] for row in self.weight]


class PlainTrainer:
    """Learns batch by batch, and counts products by the number of codes among their factors."""

    def __init__(self, layers: list[PlainLayer], rule: UpdateRule) -> None:
        self.layers = layers
        self.rule = rule
        self.products: Counter[int] = Counter()
        self.batch_bits = 0

    def times(self, a: Number, b: Number) -> float:
        self.products[a.code + b.code] += 1
        return a.value * b.value

    def learn(self, images: list[list[float]], errors_of_outputs) -> None:
        """``errors_of_outputs`` gives the derivative of each image's loss by its outputs."""
        x = [[real(value) for value in image] for image in images]
        tapes = []
        for layer in self.layers:
            x, tape = self.forward(layer, x)
            tapes.append(tape)
        gradient = [[real(v) for v in row] for row in errors_of_outputs([[n.value for n in row] for row in x])]
        for number in range(len(self.layers) - 1, -1, -1):
            gradient = self.backward(self.layers[number], tapes[number], gradient, first=number == 0)

    def forward(self, layer: PlainLayer, x: list[list[Number]]):
        spec = layer.spec
        tensors = spec.tensors
        if tensors.weights is not None and tensors.master:
            layer.codes = [[converted(tensors.weights, number) for number in row] for row in layer.weight]
        weights = layer.codes or layer.weight
        x = [[converted(tensors.inputs, number) for number in image] for image in x]
        z = [[sum(self.times(a, w) for a, w in zip(image, row)) / 2**spec.places for row in weights] for image in x]
        hats: list[list[Number]] = []
        inverse: list[Number] = []
        if spec.norm:
            columns = []
            for column in zip(*z):
                mean = sum(column) / len(column)
                gaps = [real(value - mean) for value in column]
                variance = sum(self.times(gap, gap) for gap in gaps) / len(column)
                inverse.append(real(1 / sqrt(variance + EPSILON)))
                columns.append([real(self.times(gap, inverse[-1])) for gap in gaps])
            hats = [list(row) for row in zip(*columns)]
            gamma, beta = layer.others["gamma"], layer.others["beta"]
            z = [[self.times(h, g) + b.value for h, g, b in zip(row, gamma, beta)] for row in hats]
        else:
            biases = layer.others.get("bias", [real(0)] * spec.outputs)
            z = [[value + b.value for value, b in zip(row, biases)] for row in z]
        slopes: list[list[Number]] = []
        if spec.activation == "relu":
            slopes = [[converted(tensors.derivatives, real(value > 0)) for value in row] for row in z]
            z = [[max(value, 0) for value in row] for row in z]
        elif spec.activation == "hard_tanh":
            slopes = [[converted(tensors.derivatives, real(abs(value) <= 1)) for value in row] for row in z]
            z = [[min(max(value, -1), 1) for value in row] for row in z]
        for kept in (x, hats, slopes):
            self.batch_bits += sum(number.bits for row in kept for number in row)
        return [[real(value) for value in row] for row in z], (x, weights, hats, inverse, slopes)

    def backward(self, layer: PlainLayer, tape, gradient: list[list[Number]], *, first: bool):
        x, weights, hats, inverse, slopes = tape
        spec = layer.spec
        count = len(x)
        changes: dict[str, list[float]] = {}
        if slopes:
            gradient = [[real(self.times(g, f)) for g, f in zip(*rows)] for rows in zip(gradient, slopes)]
        if spec.norm:
            by_gamma = [sum(self.times(g, h) for g, h in zip(*columns)) for columns in zip(zip(*gradient), zip(*hats))]
            by_beta = [sum(g.value for g in column) for column in zip(*gradient)]
            changes = {"gamma": by_gamma, "beta": by_beta}
            factors = [real(self.times(g, i)) for g, i in zip(layer.others["gamma"], inverse)]
            gradient = [
                [
                    real(self.times(real(g.value - (b + self.times(h, real(c))) / count), factor))
                    for g, h, b, c, factor in zip(row, hat, by_beta, by_gamma, factors)
                ]
                for row, hat in zip(gradient, hats)
            ]
        gradient = [[converted(spec.tensors.errors, g) for g in row] for row in gradient]
        if "bias" in layer.others:
            changes = {"bias": [sum(g.value for g in column) for column in zip(*gradient)]}
        dw = [
            [
                converted(
                    spec.tensors.weight_gradients,
                    real(sum(self.times(gradient[n][i], x[n][j]) for n in range(count)) / count),
                )
                for j in range(len(x[0]))
            ]
            for i in range(spec.outputs)
        ]
        before = []
        if not first:
            before = [
                [
                    real(sum(self.times(row[i], weights[i][j]) for i in range(spec.outputs)) / 2**spec.places)
                    for j in range(len(x[0]))
                ]
                for row in gradient
            ]
        self.update(layer, dw, {name: [real(value / count) for value in row] for name, row in changes.items()})
        return before

    def update(self, layer: PlainLayer, dw: list[list[Number]], changes: dict[str, list[Number]]) -> None:
        tensors = layer.spec.tensors
        for i, row in enumerate(dw):
            for j, gradient in enumerate(row):
                change, layer.weight_memory[i][j] = self.moved(
                    gradient, layer.weight_memory[i][j], self.rule.rate, tensors.memory
                )
                value = layer.weight[i][j].value - change
                if tensors.weights is None:
                    layer.weight[i][j] = real(value)
                    continue
                zone = tensors.weights.zone
                clipped = real(min(max(value, -zone), zone))
                layer.weight[i][j] = clipped if tensors.master else converted(tensors.weights, clipped)
        for name, gradients in changes.items():
            memory = layer.others_memory[name]
            for i, gradient in enumerate(gradients):
                change, memory[i] = self.moved(gradient, memory[i], self.rule.neuron_rate or self.rule.rate, None)
                layer.others[name][i] = real(layer.others[name][i].value - change)

    def moved(self, gradient: Number, memory: Number, rate: float, converter: Converter | None) -> tuple[float, Number]:
        """What is subtracted from a parameter, and what is remembered."""
        total = gradient
        if self.rule.mu:
            total = real(gradient.value + self.times(real(self.rule.mu), memory))
        remembered = converted(converter, total if self.rule.name == "velocity" else gradient)
        return self.times(real(rate), remembered if self.rule.name == "velocity" else total), remembered

    def parameters(self) -> int:
        """How many there are."""
        return sum(len(row) for layer in self.layers for row in [*layer.weight, *layer.others.values()])

    def parameter_bits(self) -> int:
        """Bits that are kept between updates."""
        kept = [row for layer in self.layers for row in [*layer.weight, *layer.codes, *layer.others.values()]]
        if self.rule.mu:
            memories = [[*layer.weight_memory, *layer.others_memory.values()] for layer in self.layers]
            kept += [row for rows in memories for row in rows]
        return sum(number.bits for row in kept for number in row)
