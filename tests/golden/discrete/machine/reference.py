"""One training step in plain numpy, whole matrices at a time: nothing of the machine but its numbers.

Draws of matrices follow golden/discrete/machine/draws.py: input by input, the same for all neurons but for the
exclusive or with the neuron's number, bits reversed.
"""

import numpy as np

from bitloom.golden.discrete.arithmetic import operate, word_of
from bitloom.golden.discrete.converter import Converter
from bitloom.golden.discrete.dot import dot
from bitloom.golden.discrete.lfsr import DRAW_BITS, Lfsr
from bitloom.golden.discrete.machine.training import Training
from bitloom.golden.discrete.machine.words import LayerState
from bitloom.golden.discrete.operand import Continuous, Discrete, Operand
from bitloom.golden.discrete.word import WordFormat


class Given:
    """A generator that gives what it was given."""

    def __init__(self, numbers):
        self.numbers = np.asarray(numbers)

    def draw(self, count):
        assert count == self.numbers.size
        return self.numbers.reshape(-1)


class Reference:
    """Trains like the machine; ``states`` change."""

    def __init__(self, training: Training, form: WordFormat, states: list[LayerState]):
        self.t, self.form, self.states, self.generator = training, form, states, Lfsr(training.seed)
        for layer, state in zip(training.layers, states):
            state.gradients = np.zeros((layer.outputs, layer.inputs), np.int64)
            state.bias_gradients = np.zeros(layer.outputs, np.int64)

    def convert(self, kind, words, numbers=None) -> Operand:
        if not kind.table:
            return Continuous(words)
        table, zone = self.t.tables[kind.table]
        rounding = "stochastic" if kind.chance else "nearest"
        generator = Given(numbers) if numbers is not None else self.generator
        codes = Converter(table=table, zone=zone, rounding=rounding).word_codes(self.form, words, generator)
        return Discrete(codes, table)

    def weights(self, n) -> Operand:
        layer, state = self.t.layers[n], self.states[n]
        if layer.weights.table:
            return Discrete(state.codes, self.t.tables[layer.weights.table][0])
        return Continuous(state.weights)

    def step(self, inputs: np.ndarray, target: np.ndarray) -> None:
        t, form = self.t, self.form
        kind = t.inputs.table
        xs: list[Operand] = [Discrete(inputs, t.tables[kind][0]) if kind else Continuous(inputs)]
        slopes = []
        for n, (layer, state) in enumerate(zip(t.layers, self.states)):
            y = form.add(dot(form, self.weights(n), xs[-1]), state.biases)
            a = {"none": y, "relu": np.maximum(y, 0), "clip": np.clip(y, -form.one, form.one)}[layer.activation]
            slopes.append({"none": y == y, "relu": y > 0, "clip": np.abs(y) <= form.one}[layer.activation])
            xs.append(self.convert(layer.results, a))
        g = form.subtract(word_of(form, xs[-1]), target)
        for n in range(len(t.layers) - 1, -1, -1):
            gradient = self.convert(t.layers[n].errors, g)
            if n:
                w = self.weights(n)
                columns = Discrete(w.codes.T, w.table) if isinstance(w, Discrete) else Continuous(w.words.T)
                g = np.where(slopes[n - 1], dot(form, columns, gradient), 0)
            self.update(n, xs[n], gradient)

    def update(self, n, x: Operand, gradient: Operand) -> None:
        form, layer, state = self.form, self.t.layers[n], self.states[n]
        down = lambda o: type(o)(o.codes[:, None], o.table) if isinstance(o, Discrete) else Continuous(o.words[:, None])  # noqa: E731
        dw = operate(form, "*", down(gradient), x)  # (outputs, inputs)
        drawn = self.matrix_draws(n)
        dw = word_of(form, self.convert(layer.gradients, dw, drawn[0]))
        w = word_of(form, self.weights(n)) if not layer.continuous else state.weights
        w = self.descended(w, dw, state.gradients)
        state.gradients = dw
        if layer.weights.table:
            most = self.t.tables[layer.weights.table][1] * form.one
            w = np.clip(w, -most, most)
        if layer.continuous:
            state.weights = w
        if layer.weights.table:
            state.codes = self.convert(layer.weights, w, drawn[1]).codes
        g = word_of(form, gradient)
        state.biases, state.bias_gradients = self.descended(state.biases, g, state.bias_gradients), g

    def descended(self, w, dw, before):
        form, mu = self.form, self.t.mu_places
        slope = dw if mu is None else form.add(dw, form.multiply(before, np.int64(form.one >> mu)))
        return form.subtract(w, form.multiply(slope, np.int64(form.one >> self.t.rate_places)))

    def matrix_draws(self, n):
        layer = self.t.layers[n]
        drawn = [[], []]
        chances = [layer.gradients.table and layer.gradients.chance, layer.weights.table and layer.weights.chance]
        turned = np.array([int(f"{i:0{DRAW_BITS}b}"[::-1], 2) for i in range(layer.outputs)])
        for _ in range(layer.inputs):
            for k in (0, 1):
                if chances[k]:
                    drawn[k].append(int(self.generator.draw(1)[0]) ^ turned)
        return [np.array(found).T if chances[k] else None for k, found in enumerate(drawn)]
