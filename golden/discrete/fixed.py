"""Training in words, as the training machine does it: each step an instruction (C13 to C18).

For a sample x with target t, layer after layer forwards:

    z = W x                                   products truncated, sum exact, saturated once; W by the forward table
    z = gain (z - mean) / deviation           where the layer is normalised: by the moments of the batch (C20)
    v = z + bias;  y, f' = activation(v)      f' becomes codes if slopes are discrete
    y <- y - n;  n <- n + 2^-8 y              where results are centred
    y becomes codes if results are discrete
    g = y - t                                 in the last layer: the derivative of half the squared error

and backwards, layer after layer, each with its parameters as they were in the forward pass:

    g = gain / deviation (g - mean(g) - h mean(g h))   where the layer is normalised: h is z before the gain
    g becomes codes if errors are discrete
    dx = (g W) f' of the layer before         W by the backward table
    dW = x g, which becomes codes if weight gradients are discrete

Parameters then move by the rule (golden/discrete/machine/training.py), after each sample by `SourceRule`, after each
batch by `VelocityRule`. Discrete weights are clipped to their zone and become codes; without a master copy the values
of codes are what the next update begins with.

A conversion takes its draws when it is made: vectors one an element; weight gradients and weights one an input, for dW
first and then for W, as golden/discrete/draws.py has it. Without normalisation sums are as if mean were preset to 0 and
variance to 4^k: that is a shift by k places, which the tables of the weights take in (`CodeTable.scaled`).

Within a batch the parameters stay, so all of its samples go forward and backward side by side: arrays have them as
their first axis, and the generator's numbers are shared out as if one sample came after the other; where a layer is
normalised, as if each step were made for all samples.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

import numpy as np

from bitloom.golden.encoding import Array

from .activation import activate
from .arithmetic import operate, scale, word_of
from .converter import PAIRS, Converter
from .dot import dot
from .draws import GivenDraws, matrix_numbers
from .lfsr import Lfsr
from .machine.training import MEAN_PLACES, MOMENT_PLACES, DenseLayer, SourceRule, TensorKind, Training, Windows
from .machine.words import LayerState
from .operand import Continuous, Discrete, Operand, as_column
from .word import WordFormat

PRODUCTS = 1 << 17
"""Products that are made at once: as many as a CPU's cache holds."""


class SampleDraws:
    """Numbers of a generator for samples that are computed side by side.

    Parameters
    ----------
    generator : Lfsr
    samples : int
    each : int or None
        Numbers that a sample takes in all; the first sample has the first ones. None: each step takes the next ones
        for all samples.
    """

    def __init__(self, generator: Lfsr, samples: int, each: int | None) -> None:
        self._generator = generator
        self._samples = samples
        self._numbers = None if each is None else generator.draw(samples * each).reshape(samples, each)

    def take(self, count: int) -> Array:
        """The next ``count`` numbers of each sample, (samples, count)."""
        if self._numbers is None:
            return self._generator.draw(self._samples * count).reshape(self._samples, count)
        taken, self._numbers = np.split(self._numbers, [count], axis=1)
        return taken

    def matrices(self, layer: DenseLayer, by_chance: Sequence[bool]) -> Iterator[list[Array | None]]:
        """For each sample, and each window of it, the numbers of matrices that are converted together
        (`matrix_numbers`)."""
        each = layer.inputs * sum(by_chance)
        for drawn in self.take(layer.views * each):
            for of_view in drawn.reshape(layer.views, each):
                yield matrix_numbers(of_view, layer.outputs, by_chance)


@dataclass
class Norm:
    """Numbers of a batch that a normalised layer keeps from its forward to its backward pass."""

    hats: Array
    """(samples, outputs) words: sums less their mean, over their deviation."""
    root: Array
    """(outputs,) words: 1 / deviation."""
    gain_gradients: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    """(outputs,) words: sums over the batch."""


class FixedTrainer:
    """A multilayer perceptron that learns in words.

    Parameters
    ----------
    form : WordFormat
    training : Training
    states : sequence of LayerState
        At the start, one a layer.

    Attributes
    ----------
    states : list of LayerState
        As they are now, with everything that is kept of a layer.
    generator : Lfsr
    """

    def __init__(self, form: WordFormat, training: Training, states: Sequence[LayerState]) -> None:
        self.form = form
        self.training = training
        self.states = [state.whole(form, training, layer) for layer, state in zip(training.layers, states)]
        self.generator = Lfsr(training.seed)
        self._norms: dict[int, Norm] = {}
        tables = training.tables.items()
        self._converters = {number: Converter(table=table, zone=zone) for number, (table, zone) in tables}
        self._by_chance = {
            (number, pair): replace(nearest, rounding="stochastic", pair=pair)
            for number, nearest in self._converters.items()
            for pair in PAIRS
        }

    def learn(self, inputs: Array, targets: Array) -> Array:
        """Learn from samples, whole batches of them.

        Parameters
        ----------
        inputs : (N, inputs) words, or codes if the inputs are discrete
        targets : (N, outputs of the last layer) words

        Returns
        -------
        (N, outputs of the last layer) words
            Of each sample, before the update that follows it.

        Raises
        ------
        ValueError
            If N is no multiple of the batch.
        """
        batches = self.training.batches(len(inputs))
        pairs = zip(np.split(inputs, batches), np.split(targets, batches))
        return np.concatenate([self._batch(x, target) for x, target in pairs])

    def scores(self, inputs: Array) -> Array:
        """Inputs of the last layer's activation, (N, outputs) words, without learning: conversions are to the nearest,
        and the means of normalisation stay."""
        x = self._inputs(inputs)
        *hidden, last = range(len(self.states))
        for n in hidden:
            x, _ = self._forward(n, x, None)
        layer = self.training.layers[last]
        return self._before_activation(last, x, learning=False).reshape(-1, layer.vector_outputs)

    def _batch(self, inputs: Array, target: Array) -> Array:
        """Forward and backward for samples side by side, and an update."""
        layers = self.training.layers
        draws = SampleDraws(self.generator, len(inputs), None if self.training.normalised else self._draws_a_sample)
        xs = [self._inputs(inputs)]
        slopes = []
        for n in range(len(layers)):
            x, slope = self._forward(n, xs[-1], draws)
            xs.append(x)
            slopes.append(slope)
        outputs = word_of(self.form, xs[-1])
        gradient = self.form.subtract(outputs, target)
        for n in range(len(layers) - 1, -1, -1):
            if layers[n].normalised:
                gradient = self._errors_of_sums(n, gradient)
            g = self._converted(layers[n].errors, gradient, draws)
            if n:
                weights = self._weights(n, layers[n].backward_table)
                by_inputs = dot(self.form, weights.moved(np.transpose), in_views(layers[n], g))
                gradient = self._gated(self._images(n, by_inputs), slopes[n - 1])
            self._learned(n, seen_by(layers[n], xs[n]), in_views(layers[n], g), draws)
        if not isinstance(self.training.rule, SourceRule):
            for n in range(len(layers)):
                self._applied(n)
        return outputs

    @property
    def _draws_a_sample(self) -> int:
        """Numbers of the generator that a sample takes; the last layer's slopes are not asked for."""
        layers = self.training.layers
        updates = isinstance(self.training.rule, SourceRule)
        vectors = sum(layer.vector_outputs * (layer.results.chance + layer.errors.chance) for layer in layers)
        slopes = sum(layer.vector_outputs * layer.slopes.chance for layer in layers[:-1])
        chances = [layer.weight_gradients.chance + updates * layer.weights.chance for layer in layers]
        matrices = sum(layer.views * layer.inputs * chance for layer, chance in zip(layers, chances))
        return vectors + slopes + matrices

    def _inputs(self, inputs: Array) -> Operand:
        """Inputs of the first layer as they come from outside."""
        kind = self.training.inputs
        return Discrete(inputs, self.training.tables[kind.table][0]) if kind.table else Continuous(inputs)

    def _forward(self, n: int, x: Operand, draws: SampleDraws | None) -> tuple[Operand, Operand]:
        """Results of layer ``n`` and the derivative of its activation; without draws it isn't learning."""
        learning = draws is not None
        layer = self.training.layers[n]
        sums = self._before_activation(n, x, learning)
        y, slope = activate(layer.activation, sums, self.form.one)
        if layer.centred:
            y = self._centred(n, y, learning=learning)
        y, slope = (vectors.reshape(-1, layer.vector_outputs) for vectors in (y, slope))
        results = self._converted(layer.results, y, draws)
        last = layer is self.training.layers[-1]
        return results, Continuous(slope) if last else self._converted(layer.slopes, slope, draws)

    def _before_activation(self, n: int, x: Operand, learning: bool) -> Array:
        """Inputs of the activation of layer ``n``: (samples times windows, outputs) words."""
        form = self.form
        layer = self.training.layers[n]
        state = self.states[n]
        sums = dot(form, self._weights(n, layer.forward_table), seen_by(layer, x))
        if layer.normalised:
            assert state.gains is not None
            sums = form.multiply(self._normalised(n, sums, learning), state.gains)
        return form.add(sums, state.biases)

    def _normalised(self, n: int, sums: Array, learning: bool) -> Array:
        """Sums of layer ``n`` less their mean, over their deviation: those of the batch, which the running ones follow,
        while the layer learns; else the running ones."""
        form = self.form
        state = self.states[n]
        assert state.sum_means is not None
        assert state.sum_variances is not None
        if not learning:
            return form.multiply(form.subtract(sums, state.sum_means), form.inverse_root(state.sum_variances))
        mean = self._mean(sums)
        centred = form.subtract(sums, mean)
        variance = self._mean(form.multiply(centred, centred))
        root = form.inverse_root(variance)
        hats = form.multiply(centred, root)
        self._norms[n] = Norm(hats, root)
        for name, moment in (("sum_means", mean), ("sum_variances", variance)):
            running = getattr(state, name)
            setattr(state, name, form.add(running, form.shift(form.subtract(moment, running), MOMENT_PLACES)))
        return hats

    def _mean(self, rows: Array) -> Array:
        """The mean of a batch, each sample divided before it is added, so that no sum saturates."""
        form = self.form
        return self._added(np.zeros_like(rows[0]), form.shift(rows, self.training.batch_places))

    def _errors_of_sums(self, n: int, errors: Array) -> Array:
        """Errors of the sums of normalised layer ``n`` from those of what goes into its activation; gradients of its
        biases and gains."""
        form = self.form
        state = self.states[n]
        norm = self._norms[n]
        assert state.gains is not None
        assert state.bias_gradients is not None
        state.bias_gradients = self._added(state.bias_gradients, errors)
        norm.gain_gradients = self._added(np.zeros_like(state.gains), form.multiply(errors, norm.hats))
        errors = form.subtract(errors, form.shift(state.bias_gradients, self.training.batch_places))
        along = form.multiply(norm.hats, form.shift(norm.gain_gradients, self.training.batch_places))
        return form.multiply(form.subtract(errors, along), form.multiply(norm.root, state.gains))

    def _centred(self, n: int, y: Array, *, learning: bool) -> Array:
        """Results less their running mean, which each sample moves while the layer learns."""
        form = self.form
        state = self.states[n]
        assert state.means is not None
        if not learning:
            return form.subtract(y, state.means)
        rows = []
        for row in y:
            rows.append(form.subtract(row, state.means))
            state.means = form.add(state.means, form.shift(rows[-1], MEAN_PLACES))
        return np.array(rows)

    def _weights(self, n: int, table: int) -> Operand:
        """Weights of layer ``n`` as they are multiplied with: by the table of that number, 0 for the layer's own."""
        layer = self.training.layers[n]
        state = self.states[n]
        if not layer.weights.table:
            assert state.weights is not None
            return Continuous(state.weights)
        assert state.codes is not None
        return Discrete(state.codes, self.training.tables[table or layer.weights.table][0])

    def _images(self, n: int, by_inputs: Array) -> Array:
        """Gradients by the input of layer ``n`` from those of all windows, added one after another."""
        windows = self.training.layers[n].windows
        if windows is None:
            return by_inputs
        by_windows = by_inputs.reshape(-1, len(windows.runs), windows.inputs)
        images = np.zeros((len(by_windows), windows.pixels), np.int64)
        for number, pixels in enumerate(window_pixels(windows)):
            images[:, pixels] = self.form.add(images[:, pixels], by_windows[:, number])
        return images

    def _gated(self, gradient: Array, slope: Operand) -> Array:
        """Gradients times the derivative of an activation."""
        if isinstance(slope, Discrete):
            return scale(self.form, gradient, slope)
        return np.where(slope.words != 0, gradient, 0)

    def _learned(self, n: int, x: Operand, g: Operand, draws: SampleDraws) -> None:
        """Add each sample's gradients to what layer ``n`` remembers; by the source's rule the layer's parameters
        move."""
        form = self.form
        layer = self.training.layers[n]
        state = self.states[n]
        rule = self.training.rule
        if not isinstance(rule, SourceRule):
            assert state.bias_gradients is not None
            if not layer.normalised:
                state.bias_gradients = self._added(state.bias_gradients, word_of(form, g))
            if self._accumulated_at_once(n, x, g):
                return
        by_chance = [layer.weight_gradients.chance, isinstance(rule, SourceRule) and layer.weights.chance]
        for sample, (drawn_d, drawn_w) in enumerate(draws.matrices(layer, by_chance)):
            of_sample = g.moved(itemgetter(sample))
            db = word_of(form, of_sample)
            dw = operate(form, "*", of_sample.moved(as_column), x.moved(itemgetter(sample)))
            dw = word_of(form, self._coded(layer.weight_gradients, dw, drawn_d))
            if not isinstance(rule, SourceRule):
                assert state.weight_gradients is not None
                state.weight_gradients = form.add(state.weight_gradients, dw)
                continue
            weight_step = dw
            bias_step = db
            if rule.mu_places is not None:
                assert state.weight_gradients is not None
                assert state.bias_gradients is not None
                weight_step = form.add(dw, form.shift(state.weight_gradients, rule.mu_places))
                bias_step = form.add(db, form.shift(state.bias_gradients, rule.mu_places))
                state.weight_gradients, state.bias_gradients = dw, db
            self._update_weights(n, weight_step, drawn_w)
            state.biases = form.subtract(state.biases, form.shift(bias_step, rule.rate_places))

    def _added(self, total: Array, rows: Array) -> Array:
        """``total`` and then rows, one after another; all at once where no sum on the way can saturate."""
        if np.max(np.abs(total) + np.abs(rows).sum(axis=0)) <= self.form.largest:
            return np.asarray(total + rows.sum(axis=0))
        for row in rows:
            total = self.form.add(total, row)
        return total

    def _accumulated_at_once(self, n: int, x: Operand, g: Operand) -> bool:
        """Whether the weight gradients of all samples were added to the velocities of layer ``n``: they are continuous,
        and so small that no sum on the way can saturate, so that the order of additions doesn't matter. Truncated
        products of words are exact in float64."""
        form = self.form
        velocities = self.states[n].weight_gradients
        assert velocities is not None
        if self.training.layers[n].weight_gradients.table or (isinstance(x, Discrete) and isinstance(g, Discrete)):
            return False
        left = real_of(form, g)
        right = real_of(form, x) * 2.0**form.fraction
        added = np.abs(right).max(axis=1) @ np.abs(left)  # at most, to the velocities of each neuron
        if np.max(np.abs(velocities).max(axis=1) + added) > form.largest:
            return False
        total = np.zeros(velocities.shape)
        step = max(1, PRODUCTS // velocities.size)
        for begin in range(0, len(left), step):
            products = left[begin : begin + step, :, None] * right[begin : begin + step, None, :]
            total += np.trunc(products, out=products).sum(axis=0)
        velocities += total.astype(np.int64)
        return True

    def _applied(self, n: int) -> None:
        """The end of a batch in layer ``n``."""
        form = self.form
        layer = self.training.layers[n]
        state = self.states[n]
        rule = self.training.rule
        assert not isinstance(rule, SourceRule)
        assert state.weight_gradients is not None
        assert state.bias_gradients is not None
        drawn = self.generator.draw(layer.inputs * layer.weights.chance)
        (numbers,) = matrix_numbers(drawn, layer.outputs, [layer.weights.chance])
        self._update_weights(n, state.weight_gradients, numbers)
        velocities = state.weight_gradients
        taken = velocities if rule.decay_places is None else form.shift(velocities, rule.decay_places)
        state.weight_gradients = form.subtract(velocities, taken)
        state.biases = form.subtract(state.biases, form.shift(state.bias_gradients, rule.bias_places))
        state.bias_gradients = np.zeros_like(state.bias_gradients)
        if layer.normalised:
            assert state.gains is not None
            state.gains = form.subtract(state.gains, form.shift(self._norms[n].gain_gradients, rule.bias_places))

    def _update_weights(self, n: int, step: Array, numbers: Array | None) -> None:
        """w <- w - rate * step in layer ``n``, within the zone where weights are discrete."""
        form = self.form
        layer = self.training.layers[n]
        state = self.states[n]
        words = state.weights if layer.continuous else word_of(form, self._weights(n, layer.weights.table))
        assert words is not None
        words = form.subtract(words, form.shift(step, self.training.rule.rate_places))
        if layer.weights.table:
            words = self._converters[layer.weights.table].clipped(form, words)
            coded = self._coded(layer.weights, words, numbers)
            assert isinstance(coded, Discrete)
            state.codes = coded.codes
        if layer.continuous:
            state.weights = words

    def _converted(self, kind: TensorKind, words: Array, draws: SampleDraws | None) -> Operand:
        """Vectors as codes, or as they are where they are continuous; without draws to the nearest."""
        by_chance = draws is not None and kind.chance
        return self._coded(kind, words, draws.take(words.shape[1]) if draws is not None and by_chance else None)

    def _coded(self, kind: TensorKind, words: Array, numbers: Array | None) -> Operand:
        """Words as codes, by numbers of the generator for each or to the nearest; or as they are."""
        if not kind.table:
            return Continuous(words)
        converter = self._converters[kind.table]
        if numbers is None:
            return Discrete(converter.word_codes(self.form, words), converter.table)
        by_chance = self._by_chance[kind.table, kind.pair]
        return Discrete(by_chance.word_codes(self.form, words, GivenDraws(numbers)), converter.table)


def first_state(form: WordFormat, training: Training, layer: DenseLayer, weights: Array) -> LayerState:
    """A layer before its first sample, from real weights (outputs, inputs): words, their nearest codes, or both."""
    words = form.words(weights)
    codes = None
    if layer.weights.table:
        table, zone = training.tables[layer.weights.table]
        codes = Converter(table=table, zone=zone).word_codes(form, words)
    return LayerState(words if layer.continuous else None, codes, np.zeros(layer.outputs, np.int64))


def real_of(form: WordFormat, operand: Operand) -> Array:
    """Real numbers, exact."""
    if isinstance(operand, Discrete):
        return np.asarray(operand.table.real[operand.codes])
    return form.values(operand.words)


def window_pixels(windows: Windows) -> Array:
    """(windows, inputs of a window) places in the image."""
    return np.array([[begin + k for begin in runs for k in range(windows.run)] for runs in windows.runs])


def seen_by(layer: DenseLayer, x: Operand) -> Operand:
    """Inputs of a layer's neurons, of the map's (samples, elements): the same, or the elements of each window, (samples
    times windows, inputs)."""
    if layer.windows is None:
        return x
    pixels = window_pixels(layer.windows)
    return x.moved(lambda values: values[:, pixels].reshape(-1, layer.inputs))


def in_views(layer: DenseLayer, g: Operand) -> Operand:
    """Errors (samples, elements) of a layer as (samples times windows, outputs)."""
    return g if layer.windows is None else g.moved(lambda values: values.reshape(-1, layer.outputs))
