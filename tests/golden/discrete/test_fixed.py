from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden.discrete.converter import Converter
from bitloom.golden.discrete.dense import DenseSpec, Tensors
from bitloom.golden.discrete.fixed import FixedRule, FixedTrainer
from bitloom.golden.discrete.lfsr import Lfsr
from bitloom.golden.discrete.mlp import MlpTrainer
from bitloom.golden.discrete.rule import UpdateRule
from bitloom.golden.discrete.table import ONE_BIT, THREE_BITS, TWO_BITS
from bitloom.golden.discrete.word import WordFormat
from tests.errors import value_error

FORM = WordFormat(18, 12)


def chance(table) -> Converter:
    return Converter(table=table, rounding="stochastic")


TENSORS = {
    "continuous": Tensors(),
    "master": Tensors(weights=chance(TWO_BITS)),
    "codes": Tensors(weights=chance(ONE_BIT.scaled(1)), master=False),
    "nearest": Tensors(weights=Converter(table=ONE_BIT.scaled(1)), inputs=Converter(table=TWO_BITS)),
    "all": Tensors(
        weights=chance(TWO_BITS), inputs=chance(THREE_BITS), gradients=chance(THREE_BITS.scaled(1)),
        weight_gradients=chance(THREE_BITS.scaled(2)), master=False,
    ),
}  # fmt: skip


def specs(tensors: Tensors, activation: str) -> list[DenseSpec]:
    hidden = DenseSpec(outputs=5, activation=activation, norm=False, tensors=tensors)
    return [hidden, replace(hidden, outputs=4), replace(hidden, outputs=3, activation="none")]


def weights(seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1, 1, shape) for shape in ((5, 6), (4, 5), (3, 4))]


class Plain:
    """The same training in lists of Python's integers, written after the text of fixed.py alone."""

    def __init__(self, layers: list[DenseSpec], start: list[np.ndarray], rule: FixedRule, state: int) -> None:
        self.layers, self.rule, self.state = layers, rule, state
        self.w, self.master = [], []
        for spec, matrix in zip(layers, start):
            words = [[int(v * 4096) for v in row] for row in matrix.tolist()]
            used, _ = self.convert_matrix(spec.tensors.weights, words, self.draws_of([spec.tensors.weights], words)[0])
            self.master.append(words if spec.tensors.weights is None or spec.tensors.master else None)
            self.w.append(used)
        self.dw = [[[0] * len(row) for row in matrix] for matrix in self.w]
        self.b = [[0] * len(matrix) for matrix in self.w]
        self.db = [[0] * len(matrix) for matrix in self.w]

    def draw(self) -> int:
        for _ in range(16):
            bit = (self.state >> 31 ^ self.state >> 29 ^ self.state >> 25 ^ self.state >> 24) & 1
            self.state = (self.state << 1 | bit) & 0xFFFFFFFF
        return self.state & 0xFFFF

    @staticmethod
    def clip(value: int) -> int:
        return max(-131071, min(131071, value))

    def times(self, a: int, b: int) -> int:
        magnitude = abs(a) * abs(b) >> 12
        return self.clip(magnitude if (a < 0) == (b < 0) else -magnitude)

    @staticmethod
    def halved(a: int, places: int) -> int:
        return abs(a) >> places if a >= 0 else -(abs(a) >> places)

    @staticmethod
    def convert(converter: Converter | None, word: int, number: int | None) -> int:
        """The word of the value that a word becomes."""
        if converter is None:
            return word
        values = sorted(int(v * 4096) for v in converter.table.values)
        y = max(-4096 * converter.zone, min(4096 * converter.zone, word))
        if number is None:
            return min(values, key=lambda v: (abs(v - y), -v))
        low = max((v for v in values if v <= y), default=values[0])
        high = min((v for v in values if v >= y), default=values[-1])
        return high if (y - low) * 2**17 > (2 * number + 1) * (high - low) else low

    def convert_vector(self, converter: Converter | None, words: list[int]) -> list[int]:
        stochastic = converter is not None and converter.draws
        return [self.convert(converter, word, self.draw() if stochastic else None) for word in words]

    def draws_of(self, converters: list[Converter | None], words: list[list[int]]) -> list[list[int] | None]:
        """For each converter a number for each input, drawn input by input."""
        wanted = [c is not None and c.draws for c in converters]
        rows = [[self.draw() if want else None for want in wanted] for _ in words[0]]
        return [[row[k] for row in rows] if want else None for k, want in enumerate(wanted)]

    def convert_matrix(self, converter, words, numbers):
        def number(i: int, j: int) -> int | None:
            return None if numbers is None else numbers[j] ^ int(f"{i:016b}"[::-1], 2)

        made = [[self.convert(converter, word, number(i, j)) for j, word in enumerate(row)]
                for i, row in enumerate(words)]  # fmt: skip
        return made, words

    def descend(self, w: int, dw: int, last: int) -> int:
        slope = dw if self.rule.mu_places is None else self.clip(dw + self.halved(last, self.rule.mu_places))
        return self.clip(w - self.halved(slope, self.rule.rate_places))

    def learn(self, x: list[int], target: list[int]) -> list[int]:
        inputs, slopes = [], []
        for n, spec in enumerate(self.layers):
            x = self.convert_vector(spec.tensors.inputs, x)
            inputs.append(x)
            v = [self.clip(self.clip(sum(self.times(w, a) for w, a in zip(row, x))) + b)
                 for row, b in zip(self.w[n], self.b[n])]  # fmt: skip
            slopes.append({
                "relu": [a > 0 for a in v], "hard_tanh": [abs(a) <= 4096 for a in v], "none": [True for a in v],
            }[spec.activation])  # fmt: skip
            x = {
                "relu": [max(a, 0) for a in v], "hard_tanh": [max(-4096, min(4096, a)) for a in v], "none": v,
            }[spec.activation]  # fmt: skip
        gradient = [self.clip(y - t) for y, t in zip(x, target)]
        for n in range(len(self.layers) - 1, -1, -1):
            t = self.layers[n].tensors
            g = self.convert_vector(t.gradients, gradient)
            if n:
                sums = [self.clip(sum(self.times(row[j], a) for row, a in zip(self.w[n], g)))
                        for j in range(len(self.w[n][0]))]  # fmt: skip
                gradient = [total if slope else 0 for total, slope in zip(sums, slopes[n - 1])]
            dw = [[self.times(a, b) for b in inputs[n]] for a in g]
            drawn_d, drawn_w = self.draws_of([t.weight_gradients, t.weights], dw)
            dw, _ = self.convert_matrix(t.weight_gradients, dw, drawn_d)
            old = self.w[n] if self.master[n] is None else self.master[n]
            new = [[self.descend(*cell) for cell in zip(*rows)] for rows in zip(old, dw, self.dw[n])]
            if t.weights is not None:
                most = 4096 * t.weights.zone
                new = [[max(-most, min(most, word)) for word in row] for row in new]
            self.master[n] = None if self.master[n] is None else new
            self.w[n], _ = self.convert_matrix(t.weights, new, drawn_w)
            self.b[n] = [self.descend(*cell) for cell in zip(self.b[n], g, self.db[n])]
            self.dw[n], self.db[n] = dw, g
        return x


@pytest.mark.parametrize("rule", [FixedRule(rate_places=3), FixedRule(rate_places=2, mu_places=1)], ids=["plain", "mu"])
@pytest.mark.parametrize("activation", ["relu", "hard_tanh"])
@pytest.mark.parametrize("name", TENSORS)
def test_learning_equals_plain_integers(name, activation, rule):
    """Twelve samples: outputs, weights, codes, biases, what is remembered, and the generator's state."""
    layers = specs(TENSORS[name], activation)
    ours, plain = FixedTrainer(FORM, layers, weights(), rule, Lfsr(77)), Plain(layers, weights(), rule, 77)
    rng = np.random.default_rng(5)
    for _ in range(12):
        x, target = rng.integers(-6000, 6001, 6), rng.choice([-4096, 4096], 3)
        assert ours.learn(x, target).tolist() == plain.learn(x.tolist(), target.tolist())
        for n, layer in enumerate(ours.layers):
            converter = layer.spec.tensors.weights
            if converter is not None:
                assert (converter.table.real[layer.codes] * 4096).tolist() == plain.w[n]
            if layer.words is None:
                assert plain.master[n] is None
            else:
                assert layer.words.tolist() == plain.master[n]
            assert layer.bias.tolist() == plain.b[n]
            assert layer.last_gradients.tolist() == plain.dw[n]
            assert layer.last_bias_gradients.tolist() == plain.db[n]
        assert ours.generator.state == plain.state


def test_long_words_come_near_to_floating_point():
    """32 bits, 24 of them fraction, against the training that PyTorch confirms, with batches of one sample."""
    form, layers = WordFormat(32, 24), specs(Tensors(), "relu")
    ours = FixedTrainer(form, layers, weights(), FixedRule(rate_places=4, mu_places=1), Lfsr(1))
    real = MlpTrainer(6, layers, seed=0)
    for layer, weight in zip(real.layers, weights()):
        layer.params["weight"] = weight.copy()
    rng = np.random.default_rng(1)
    for _ in range(20):
        x, label = rng.uniform(-1, 1, 6), rng.integers(0, 3)
        target = np.where(np.arange(3) == label, 1.0, -1.0)
        y = ours.learn(form.words(x), form.words(target))
        _, expected = real.learn(x[None], np.array([label]), "squared_error", UpdateRule("source", 2**-4, 0.5))
        np.testing.assert_allclose(form.values(y), expected[0], atol=1e-4)
    for layer, other in zip(ours.layers, real.layers):
        np.testing.assert_allclose(form.values(layer.words), other.params["weight"], atol=1e-4)
        np.testing.assert_allclose(form.values(layer.bias), other.params["bias"], atol=1e-4)


def test_outputs_are_those_of_learning_before_it():
    layers = specs(TENSORS["nearest"], "relu")
    trainer = FixedTrainer(FORM, layers, weights(), FixedRule(rate_places=3), Lfsr(1))
    x = np.random.default_rng(0).integers(-5000, 5000, (9, 6))
    before = trainer.outputs(x)
    assert before[4].tolist() == trainer.learn(x[4], np.zeros(3, np.int64)).tolist()
    assert (trainer.outputs(x) != before).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"norm": True}, "layer 1: words know layers with a bias and continuous derivatives alone"),
        ({"bias": False}, "layer 1: words know layers with a bias and continuous derivatives alone"),
        ({"tensors": Tensors(derivatives=chance(ONE_BIT))},
         "layer 1: words know layers with a bias and continuous derivatives alone"),
        ({"outputs": 5}, "layer 1: weights must be (outputs, inputs) of the layer, got (4, 5)"),
    ],
)  # fmt: skip
def test_wrong_layers(change, message):
    layers = specs(Tensors(), "relu")
    layers[1] = replace(layers[1], **change)
    with value_error(message):
        FixedTrainer(FORM, layers, weights(), FixedRule(rate_places=3), Lfsr(1))


def test_layers_without_weights():
    for layers, start in ((3, 2), (2, 3), (0, 0)):
        with value_error(f"layers: must be one or more, each with weights, got {layers} and {start}"):
            FixedTrainer(FORM, specs(Tensors(), "relu")[:layers], weights()[:start], FixedRule(rate_places=3), Lfsr(1))


def test_wrong_rules():
    with value_error("update rule: rate_places must be 0..31, got -1"):
        FixedRule(rate_places=-1)
    with value_error("update rule: rate_places must be 0..31, got None"):
        FixedRule(rate_places=None)
    with value_error("update rule: mu_places must be 0..31, got 32"):
        FixedRule(rate_places=1, mu_places=32)
