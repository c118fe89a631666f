from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden.discrete.dense import DenseSpec
from bitloom.golden.discrete.fixed import FixedTrainer, first_state
from bitloom.golden.discrete.machine.training import (
    DenseLayer,
    SourceRule,
    TensorKind,
    Training,
    VelocityRule,
    Windows,
)
from bitloom.golden.discrete.machine.words import LayerState, kept
from bitloom.golden.discrete.mlp import MlpTrainer
from bitloom.golden.discrete.norm import normalise
from bitloom.golden.discrete.rule import UpdateRule
from bitloom.golden.discrete.word import WordFormat
from bitloom.golden.layers.batch_norm import Moments
from tests.errors import value_error

from .machine.cases import BATCH_CASES, CASES, PAIR_CASES, samples, start

FORM = WordFormat(18, 12)
SAMPLES = 12


class Plain:
    """The same training in lists of Python's integers, written after the text of fixed.py alone."""

    def __init__(self, t: Training, states: list[LayerState]) -> None:
        self.t = t
        self.state, self.layers = t.seed, t.layers
        for name in ("weights", "codes", "weight_gradients", "biases", "bias_gradients", "means"):
            arrays = [getattr(state, name) for state in states]
            setattr(self, name, [None if array is None else array.tolist() for array in arrays])

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

    def values(self, table: int) -> list[int]:
        """Words of the codes of a table."""
        return [int(value * 4096) for value in self.t.tables[table][0].values]

    def convert(self, kind: TensorKind, word: int, number: int | None) -> int:
        """The code that a word becomes, or the word."""
        if not kind.table:
            return word
        known = self.values(kind.table)
        values = sorted(known)
        zone = 4096 * self.t.tables[kind.table][1]
        y = max(-zone, min(zone, word))
        if number is None:
            return known.index(min(values, key=lambda v: (abs(v - y), -v)))
        if kind.pair == "nearest":
            a, b = sorted(values, key=lambda v: (abs(v - y), -v))[:2]
            return known.index(a if (2 * number + 1) * (abs(a - y) + abs(b - y)) < abs(b - y) * 2**17 else b)
        low = max((v for v in values if v <= y), default=values[0])
        high = min((v for v in values if v >= y), default=values[-1])
        return known.index(high if (y - low) * 2**17 > (2 * number + 1) * (high - low) else low)

    def word(self, kind: TensorKind, cell: int) -> int:
        return self.values(kind.table)[cell] if kind.table else cell

    def vector(self, kind: TensorKind, words: list[int]) -> list[int]:
        """Words after a conversion: those of the codes' values."""
        by_chance = kind.table and kind.chance
        return [self.word(kind, self.convert(kind, word, self.draw() if by_chance else None)) for word in words]

    def draws_of(self, kinds: list[TensorKind], inputs: int) -> list[list[int] | None]:
        """For each kind a number for each input, drawn input by input."""
        wanted = [kind.table and kind.chance for kind in kinds]
        rows = [[self.draw() if want else None for want in wanted] for _ in range(inputs)]
        return [[row[k] for row in rows] if want else None for k, want in enumerate(wanted)]

    def matrix(self, kind: TensorKind, words: list[list[int]], numbers: list[int] | None) -> list[list[int]]:
        """Cells of a matrix after a conversion."""

        def number(i: int, j: int) -> int | None:
            return None if numbers is None else numbers[j] ^ int(f"{i:016b}"[::-1], 2)

        return [[self.convert(kind, word, number(i, j)) for j, word in enumerate(row)] for i, row in enumerate(words)]

    def multiplied(self, n: int, table: int) -> list[list[int]]:
        """Weights as words, by a table or by the layer's own."""
        layer = self.layers[n]
        if not layer.weights.table:
            return self.weights[n]
        values = self.values(table or layer.weights.table)
        return [[values[code] for code in row] for row in self.codes[n]]

    def learn(self, x: list[int], target: list[int]) -> list[int]:
        if self.t.inputs.table:
            x = [self.values(self.t.inputs.table)[code] for code in x]
        inputs = [x]
        slopes = []
        for n, layer in enumerate(self.layers):
            sums = [
                [self.times(w, a) for w, a in zip(row, inputs[-1])] for row in self.multiplied(n, layer.forward_table)
            ]
            v = [self.clip(self.clip(sum(products)) + b) for products, b in zip(sums, self.biases[n])]
            slopes_of = {"relu": lambda a: a > 0, "clip": lambda a: abs(a) <= 4096, "none": lambda a: True}
            clips = {"relu": lambda a: max(a, 0), "clip": lambda a: max(-4096, min(4096, a)), "none": lambda a: a}
            slope, x = ([functions[layer.activation](a) for a in v] for functions in (slopes_of, clips))
            if layer.centred:
                x = [self.clip(a - mean) for a, mean in zip(x, self.means[n])]
                self.means[n] = [self.clip(mean + self.halved(a, 8)) for a, mean in zip(x, self.means[n])]
            inputs.append(self.vector(layer.results, x))
            if n < len(self.layers) - 1:
                slopes.append(self.vector(layer.slopes, [4096 * one for one in slope]))
        gradient = [self.clip(y - t) for y, t in zip(inputs[-1], target)]
        for n in range(len(self.layers) - 1, -1, -1):
            layer = self.layers[n]
            g = self.vector(layer.errors, gradient)
            if n:
                w = self.multiplied(n, layer.backward_table)
                sums = [self.clip(sum(self.times(row[j], a) for row, a in zip(w, g))) for j in range(layer.inputs)]
                gradient = [self.times(total, slope) for total, slope in zip(sums, slopes[n - 1])]
            self.learned(n, inputs[n], g)
        return inputs[-1]

    def learned(self, n: int, x: list[int], g: list[int]) -> None:
        layer = self.layers[n]
        source = isinstance(self.t.rule, SourceRule)
        dw = [[self.times(a, b) for b in x] for a in g]
        drawn_d, drawn_w = self.draws_of(
            [layer.weight_gradients, layer.weights if source else TensorKind()], layer.inputs
        )
        dw = [
            [self.word(layer.weight_gradients, cell) for cell in row]
            for row in self.matrix(layer.weight_gradients, dw, drawn_d)
        ]
        if source:
            step = dw
            steps = g
            if (mu := self.t.rule.mu_places) is not None:
                step = [self.with_momentum(*rows, mu) for rows in zip(dw, self.weight_gradients[n])]
                steps = self.with_momentum(g, self.bias_gradients[n], mu)
                self.weight_gradients[n] = dw
                self.bias_gradients[n] = g
            self.moved(n, step, drawn_w)
            self.biases[n] = self.descended(self.biases[n], steps, self.t.rule.rate_places)
        else:
            self.weight_gradients[n] = [
                [self.clip(a + b) for a, b in zip(*rows)] for rows in zip(self.weight_gradients[n], dw)
            ]
            self.bias_gradients[n] = [self.clip(a + b) for a, b in zip(self.bias_gradients[n], g)]

    def applied(self) -> None:
        """The end of a batch."""
        rule = self.t.rule
        for n, layer in enumerate(self.layers):
            (drawn,) = self.draws_of([layer.weights], layer.inputs)
            self.moved(n, self.weight_gradients[n], drawn)
            self.weight_gradients[n] = [
                [0 if rule.decay_places is None else self.clip(v - self.halved(v, rule.decay_places)) for v in row]
                for row in self.weight_gradients[n]
            ]
            self.biases[n] = self.descended(self.biases[n], self.bias_gradients[n], rule.bias_places)
            self.bias_gradients[n] = [0] * layer.outputs

    def with_momentum(self, gradients: list[int], last: list[int], places: int) -> list[int]:
        return [self.clip(d + self.halved(before, places)) for d, before in zip(gradients, last)]

    def descended(self, words: list[int], steps: list[int], places: int) -> list[int]:
        return [self.clip(word - self.halved(step, places)) for word, step in zip(words, steps)]

    def moved(self, n: int, step: list[list[int]], drawn: list[int] | None) -> None:
        layer = self.layers[n]
        old = self.multiplied(n, 0) if self.weights[n] is None else self.weights[n]
        new = [self.descended(*rows, self.t.rule.rate_places) for rows in zip(old, step)]
        if layer.weights.table:
            zone = 4096 * self.t.tables[layer.weights.table][1]
            new = [[max(-zone, min(zone, word)) for word in row] for row in new]
            self.codes[n] = self.matrix(layer.weights, new, drawn)
        self.weights[n] = None if self.weights[n] is None else new


@pytest.mark.parametrize("case", {**CASES, **BATCH_CASES, **PAIR_CASES})
def test_learning_equals_plain_integers(case):
    """Outputs, all that is kept, and the generator's state, after each batch."""
    t = {**CASES, **BATCH_CASES, **PAIR_CASES}[case]
    ours = FixedTrainer(FORM, t, start(t, FORM))
    plain = Plain(t, start(t, FORM))
    batches = t.batches(SAMPLES)
    inputs, targets = samples(t, FORM, SAMPLES)
    for xs, wanted in zip(np.split(inputs, batches), np.split(targets, batches)):
        assert ours.learn(xs, wanted).tolist() == [
            plain.learn(x.tolist(), target.tolist()) for x, target in zip(xs, wanted)
        ]
        if isinstance(t.rule, VelocityRule):
            plain.applied()
        for n, (layer, state) in enumerate(zip(t.layers, ours.states)):
            for name in kept(t, layer):
                assert getattr(state, name).tolist() == getattr(plain, name)[n], name
        assert ours.generator.state == plain.state


@pytest.mark.parametrize("case", BATCH_CASES)
def test_velocities_saturate(case):
    """Gradients so large that sums on the way to the end of a batch saturate."""
    t = BATCH_CASES[case]
    states = start(t, FORM)
    for state in states:
        shape = state.weight_gradients.shape
        state.weight_gradients = np.where(np.arange(np.prod(shape)) % 3, -131000, 131000).reshape(shape)
        state.bias_gradients = np.full_like(state.biases, 131000)
    ours = FixedTrainer(FORM, t, states)
    plain = Plain(t, states)
    inputs, targets = samples(t, FORM, t.rule.batch)
    ours.learn(inputs, targets)
    for x, target in zip(inputs, targets):
        plain.learn(x.tolist(), target.tolist())
    plain.applied()
    for n, state in enumerate(ours.states):
        assert state.weight_gradients.tolist() == plain.weight_gradients[n]
        assert state.biases.tolist() == plain.biases[n]


def real_layers(sizes: tuple[int, ...], norm: bool = False) -> tuple[tuple[DenseLayer, ...], list[DenseSpec]]:
    """A perceptron with ReLU in words, and in floating point."""
    last = len(sizes) - 2
    activations = ["relu"] * last + ["none"]
    layers = [
        DenseLayer(inputs=a, outputs=b, activation=name, normalised=norm)
        for a, b, name in zip(sizes, sizes[1:], activations)
    ]
    return tuple(layers), [DenseSpec(outputs=b, activation=name, norm=norm) for b, name in zip(sizes[1:], activations)]


@pytest.mark.parametrize(
    ("rule", "batch", "real_rule"),
    [
        (SourceRule(rate_places=4, mu_places=1), 1, UpdateRule("source", 2**-4, 0.5)),
        (VelocityRule(rate_places=6, bias_places=6, batch=4), 4, UpdateRule("velocity", 2**-4, 0)),
        # the velocity of floating point is of means over the batch
        (VelocityRule(rate_places=5, bias_places=5, decay_places=1, batch=2), 2, UpdateRule("velocity", 2**-4, 0.5)),
    ],
)
def test_long_words_come_near_to_floating_point(rule, batch, real_rule):
    """32 bits, 24 of them fraction, against the training that PyTorch confirms; biases have no velocity in words."""
    form = WordFormat(32, 24)
    layers, specs = real_layers((6, 5, 4, 3))
    rng = np.random.default_rng(1)
    t = Training(layers=layers, rule=rule)
    weights = [rng.uniform(-1, 1, (layer.outputs, layer.inputs)) for layer in layers]
    ours = FixedTrainer(form, t, [first_state(form, t, layer, weight) for layer, weight in zip(layers, weights)])
    real = MlpTrainer(6, specs, seed=0)
    for layer, weight in zip(real.layers, weights):
        layer.params["weight"] = weight.copy()
    for _ in range(20):
        x = rng.uniform(-1, 1, (batch, 6))
        labels = rng.integers(0, 3, batch)
        target = np.where(np.arange(3) == labels[:, None], 1.0, -1.0)
        y = ours.learn(form.words(x), form.words(target))
        _, expected = real.learn(x, labels, "squared_error", real_rule)
        np.testing.assert_allclose(form.values(y), expected, atol=1e-4)
        if isinstance(rule, VelocityRule) and rule.decay_places is not None:
            for layer in real.layers:
                layer.memory["bias"] *= 0
    for state, layer in zip(ours.states, real.layers):
        np.testing.assert_allclose(form.values(state.weights), layer.params["weight"], atol=1e-4)
        np.testing.assert_allclose(form.values(state.biases), layer.params["bias"], atol=1e-4)


@pytest.mark.parametrize("case", ["inputs and results", "batch, master"])
def test_scores_are_those_of_learning_before_it(case):
    """The outputs of "batch, master" are the scores, clipped."""
    t = {**CASES, **BATCH_CASES}[case]
    trainer = FixedTrainer(FORM, t, start(t, FORM))
    x, target = samples(t, FORM, 12)
    before = trainer.scores(x)
    clip = FORM.one if t.layers[-1].activation == "clip" else FORM.largest
    assert np.clip(before[0], -clip, clip).tolist() == trainer.learn(x, target)[0].tolist()
    assert (trainer.scores(x) != before).any()


def test_a_batch_that_is_not_whole():
    t = BATCH_CASES["batch, by chance"]
    with value_error("training: samples must be a multiple of the batch, 4, got 6"):
        FixedTrainer(FORM, t, start(t, FORM)).learn(*samples(t, FORM, 6))


def test_slopes_without_an_activation():
    with value_error("layer: slopes must be continuous without an activation, got table 2"):
        DenseLayer(inputs=2, outputs=3, activation="none", slopes=TensorKind(2))


def test_wrong_rules():
    for rule in (SourceRule, VelocityRule):
        with value_error("update rule: rate_places must be 0..31, got -1"):
            rule(rate_places=-1)
        with value_error("update rule: rate_places must be 0..31, got None"):
            rule(rate_places=None)
    with value_error("update rule: mu_places must be 0..31, got 32"):
        SourceRule(mu_places=32)
    with value_error("update rule: decay_places must be 0..31, got 99"):
        VelocityRule(decay_places=99)
    with value_error("update rule: bias_places must be 0..31, got 40"):
        VelocityRule(bias_places=40)
    with value_error("update rule: batch must be 1 or more, got 0"):
        replace(VelocityRule(), batch=0)


class ExactRoots(WordFormat):
    """Words with inverse roots that are as near as a word can be."""

    def inverse_root(self, a: np.ndarray) -> np.ndarray:
        return self.words(1 / np.sqrt(self.values(np.maximum(np.abs(a), 1))))


def test_normalisation_by_a_table_of_roots():
    """One batch in words of the machine: outputs as those of PyTorch's rule, but for 4 % of the root and some
    truncations; by running moments without a batch, which move an eighth of the way."""
    layers, _ = real_layers((6, 5), norm=True)
    rng = np.random.default_rng(2)
    t = Training(layers=layers, rule=VelocityRule(batch=16))
    state = first_state(FORM, t, layers[0], rng.uniform(-1, 1, (5, 6)))
    state.gains, state.biases = FORM.words(rng.uniform(0.5, 1.5, 5)), FORM.words(rng.normal(0, 0.5, 5))
    trainer = FixedTrainer(FORM, t, [state])
    x = rng.uniform(-1, 1, (16, 6))
    words = FORM.words(x)
    gamma, beta, weights = (FORM.values(part) for part in (state.gains, state.biases, state.weights))
    preset = Moments(np.zeros(5), np.ones(5))
    z = x @ weights.T
    scores, _ = normalise(z, gamma, beta, preset)
    np.testing.assert_allclose(
        FORM.values(trainer.scores(words)), scores, atol=0.04 * np.abs(scores - beta).max() + 0.01
    )
    expected, tape = normalise(z, gamma, beta)
    y = FORM.values(trainer.learn(words, words[:, :5]))
    np.testing.assert_allclose(y, expected, atol=0.04 * np.abs(expected - beta).max() + 0.02)
    assert np.abs(y - scores).max() > 0.5
    (after,) = trainer.states
    np.testing.assert_allclose(FORM.values(after.sum_means), tape.moments.mean / 8, atol=2e-3)
    np.testing.assert_allclose(FORM.values(after.sum_variances), 1 + (tape.moments.variance - 1) / 8, atol=2e-3)


def test_normalisation_against_pytorch(torch):
    """A batch by PyTorch's batch_norm and its derivatives: outputs, and the steps of weights, gains and biases."""
    form = ExactRoots(32, 24)
    layers, _ = real_layers((6, 5), norm=True)
    rng = np.random.default_rng(3)
    t = Training(layers=layers, rule=VelocityRule(rate_places=5, bias_places=5, batch=16))
    state = first_state(form, t, layers[0], rng.uniform(-1, 1, (5, 6)))
    state.gains, state.biases = form.words(rng.uniform(0.5, 1.5, 5)), form.words(rng.normal(0, 0.5, 5))
    trainer = FixedTrainer(form, t, [state])
    x, target = rng.uniform(-1, 1, (16, 6)), rng.uniform(-1, 1, (16, 5))
    params = [
        torch.tensor(form.values(part), requires_grad=True) for part in (state.weights, state.gains, state.biases)
    ]
    z = torch.tensor(x) @ params[0].T
    y = torch.nn.functional.batch_norm(z, None, None, params[1], params[2], training=True, eps=1e-12)
    (0.5 * (y - torch.tensor(target)) ** 2).sum().backward()
    np.testing.assert_allclose(
        form.values(trainer.learn(form.words(x), form.words(target))), y.detach().numpy(), atol=1e-3
    )
    (after,) = trainer.states
    for name, param in zip(("weights", "gains", "biases"), params):
        expected = (param - 2**-5 * param.grad).detach().numpy()
        np.testing.assert_allclose(form.values(getattr(after, name)), expected, atol=1e-3)


@pytest.mark.parametrize("batch", [1, 3, 24])
def test_batches_of_a_normalised_layer(batch):
    layers, _ = real_layers((6, 5), norm=True)
    rule = f"training: batch must be a power of two from 2 on where layers are normalised, got {batch}"
    with value_error(rule):
        Training(layers=layers, rule=VelocityRule(batch=batch))


IMAGES = Windows(height=6, width=7, channels=2, size=2)
MAPS = Windows(height=5, width=6, channels=3, size=3, stride=2)
"""Windows of images, and of what three neurons make of them."""


def convolved(images: np.ndarray, kernels: np.ndarray, windows: Windows) -> np.ndarray:
    """Correlations by scipy, (N, rows, columns, neurons)."""
    from scipy.signal import correlate  # half a second, which a worker without this test saves

    shape = (windows.size, windows.size, windows.channels)
    maps = []
    for image in images.reshape(-1, windows.height, windows.width, windows.channels):
        dots = [correlate(image, kernel.reshape(shape), mode="valid") for kernel in kernels]
        maps.append([dot[:: windows.stride, :: windows.stride, 0] for dot in dots])
    return np.moveaxis(np.array(maps), 1, -1)


def test_convolutions_come_near_to_floating_point():
    """Two of them and a layer behind: outputs as by scipy's correlate, steps as by differences of the loss."""
    form = WordFormat(32, 24)
    layers = (
        DenseLayer(inputs=8, outputs=3, windows=IMAGES),
        DenseLayer(inputs=27, outputs=2, windows=MAPS),
        DenseLayer(inputs=8, outputs=3, activation="none"),
    )
    rng = np.random.default_rng(4)
    t = Training(layers=layers, rule=VelocityRule(rate_places=6, bias_places=6, batch=4))
    states = [first_state(form, t, layer, rng.normal(0, 0.4, (layer.outputs, layer.inputs))) for layer in layers]
    for state in states:
        state.biases = form.words(rng.normal(0, 0.2, len(state.biases)))
    x, target = rng.uniform(-1, 1, (4, IMAGES.pixels)), rng.uniform(-1, 1, (4, 3))
    x, target = (form.values(form.words(values)) for values in (x, target))

    def outputs(params: list[np.ndarray]) -> np.ndarray:
        first = np.maximum(convolved(x, params[0], IMAGES) + params[1], 0)
        second = np.maximum(convolved(first, params[2], MAPS) + params[3], 0)
        return second.reshape(4, -1) @ params[4].T + params[5]

    params = [form.values(part) for state in states for part in (state.weights, state.biases)]
    trainer = FixedTrainer(form, t, states)
    np.testing.assert_allclose(form.values(trainer.scores(form.words(x))), outputs(params), atol=1e-5)
    trainer.learn(form.words(x), form.words(target))
    after = [form.values(part) for state in trainer.states for part in (state.weights, state.biases)]
    for number, param in enumerate(params):
        for place in [*np.ndindex(param.shape)][::3]:
            losses = []
            for step in (1e-6, -1e-6):
                moved = [np.array(values) for values in params]
                moved[number][place] += step
                losses.append(0.5 * ((outputs(moved) - target) ** 2).sum())
            slope = (losses[0] - losses[1]) / 2e-6
            assert abs(after[number][place] - (param[place] - 2**-6 * slope)) < 1e-5, (number, place)


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"size": 0}, "windows: size must be 1 or more, got 0"),
        ({"size": 7}, "windows: size must be 1..6, got 7"),
        ({"stride": 2.0}, "windows: stride must be 1 or more, got 2.0"),
    ],
)
def test_windows_that_are_wrong(fields, rule):
    with value_error(rule):
        replace(IMAGES, **fields)


def test_layers_with_windows():
    first = DenseLayer(inputs=8, outputs=3, windows=IMAGES)
    assert (first.views, first.vector_inputs, first.vector_outputs) == (30, 84, 90)
    assert MAPS.runs == ((0, 18, 36), (6, 24, 42), (36, 54, 72), (42, 60, 78))
    with value_error("layer: inputs must be those of a window, 8, got 9"):
        replace(first, inputs=9)
    with value_error("training: a layer must have as many inputs as the one before has outputs, 90, got 89"):
        Training(layers=(first, DenseLayer(inputs=89, outputs=2)))
    rule = "training: layers with windows need a rule of velocities, and that no layer is normalised"
    with value_error(rule):
        Training(layers=(first,))
    with value_error(rule):
        Training(layers=(first, DenseLayer(inputs=90, outputs=2, normalised=True)), rule=VelocityRule())
