"""Training in words, as the training machine does it: sample by sample, each step an instruction (C13 to C18).

For a sample x with target t, layer after layer forwards:

    z = W x                                   products truncated, sum exact, saturated once
    v = z + bias;  y, f' = activation(v)      y becomes codes if the next layer's inputs are discrete
    g = y - t                                 in the last layer: the derivative of half the squared error

and backwards, layer after layer, each with its parameters as they were in the forward pass:

    g becomes codes if gradients are discrete
    dx = g W  where f' of the layer before is not 0, else 0
    dW = x g, which becomes codes if weight gradients are discrete
    W <- W - 2^-rate (dW + 2^-mu dW');  dW' <- dW;  the same for the bias
    W is clipped to the zone of its converter and becomes codes, if weights are discrete

A conversion takes its draws when it is made: vectors one an element; an update one an input, for dW first and then for
W, as golden/discrete/draws.py has it. There is no normalisation: with preset mean 0 and variance 4^k it is a shift by
k places, which the code table of the weights takes in (`CodeTable.scaled`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.integers import make_fields_plain

from .activation import activate
from .arithmetic import operate, word_of
from .converter import Converter
from .dense import DenseSpec
from .dot import dot
from .draws import Draws, MatrixDraws
from .lfsr import Lfsr
from .operand import Continuous, Discrete, Operand
from .word import WordFormat


@dataclass(frozen=True, kw_only=True)
class FixedRule:
    """The source's update rule (C17) with constants that are powers of two."""

    rate_places: int
    """k of the learning rate 2^-k, 0 to 31."""
    mu_places: int | None = None
    """k of mu = 2^-k, 0 to 31; None for mu = 0."""

    def __post_init__(self) -> None:
        make_fields_plain(self)
        for name in ("rate_places", "mu_places"):
            value = getattr(self, name)
            if (value is not None or name == "rate_places") and not (type(value) is int and 0 <= value <= 31):
                raise ValueError(f"update rule: {name} must be 0..31, got {value!r}")


@dataclass
class FixedDense:
    """A layer in words."""

    spec: DenseSpec
    """With a bias, without normalisation, and with continuous derivatives."""
    words: Array | None
    """(outputs, inputs) words or None: weights; None where codes are all that is kept."""
    codes: Array | None
    """(outputs, inputs) int64 or None: none where weights are continuous."""
    bias: Array
    """(outputs,) words."""
    last_gradients: Array
    """(outputs, inputs) words: dW' of the last update."""
    last_bias_gradients: Array
    """(outputs,) words."""

    @property
    def weights(self) -> Operand:
        """The weights that are multiplied with."""
        converter = self.spec.tensors.weights
        if converter is not None:
            assert self.codes is not None
            return Discrete(self.codes, converter.table)
        assert self.words is not None
        return Continuous(self.words)


class FixedTrainer:
    """A multilayer perceptron that learns in words.

    Parameters
    ----------
    form : WordFormat
    specs : sequence of DenseSpec
    weights : sequence of (outputs, inputs) float64
        At the start; discrete ones are converted, in order, with draws of the generator where that is by chance.
    rule : FixedRule
    generator : Lfsr

    Attributes
    ----------
    layers : list of FixedDense

    Raises
    ------
    ValueError
        If a layer is normalised, lacks a bias or has discrete derivatives, if layers don't fit each other, or if there
        are not as many weights as layers.
    """

    def __init__(
        self, form: WordFormat, specs: Sequence[DenseSpec], weights: Sequence[Array], rule: FixedRule, generator: Lfsr
    ) -> None:
        self.form = form
        self.rule = rule
        self.generator = generator
        self.layers: list[FixedDense] = []
        if not specs or len(weights) != len(specs):
            raise ValueError(f"layers: must be one or more, each with weights, got {len(specs)} and {len(weights)}")
        inputs = weights[0].shape[-1]
        for number, (spec, weight) in enumerate(zip(specs, weights)):
            if spec.norm or not spec.bias or spec.tensors.derivatives is not None:
                raise ValueError(f"layer {number}: words know layers with a bias and continuous derivatives alone")
            if weight.shape != (spec.outputs, inputs):
                raise ValueError(f"layer {number}: weights must be (outputs, inputs) of the layer, got {weight.shape}")
            self.layers.append(self._first(spec, form.words(weight)))
            inputs = spec.outputs

    def _first(self, spec: DenseSpec, words: Array) -> FixedDense:
        """A layer before its first sample."""
        converter = spec.tensors.weights
        zeros = np.zeros(spec.outputs, np.int64)
        codes = None
        if converter is not None:
            draws = MatrixDraws(self.generator, *words.shape) if converter.draws else None
            codes = converter.word_codes(self.form, words, draws)
        kept = words if converter is None or spec.tensors.master else None
        return FixedDense(spec, kept, codes, zeros, np.zeros_like(words), zeros)

    def learn(self, x: Array, target: Array) -> Array:
        """Forward, backward and update for one sample.

        Parameters
        ----------
        x : (inputs,) words
        target : (outputs of the last layer,) words

        Returns
        -------
        (outputs of the last layer,) words
            Before the update.
        """
        inputs = [self._converted(self.layers[0].spec.tensors.inputs, x)]
        slopes = []
        for layer, after in zip(self.layers, [*self.layers[1:], None]):
            y, slope = self._forward(layer, inputs[-1])
            inputs.append(self._converted(after.spec.tensors.inputs if after else None, y))
            slopes.append(slope)
        gradient = self.form.subtract(y, target)
        for number in range(len(self.layers) - 1, -1, -1):
            layer = self.layers[number]
            g = self._converted(layer.spec.tensors.gradients, gradient)
            if number:
                gradient = np.where(slopes[number - 1] != 0, dot(self.form, transposed(layer.weights), g), 0)
            self._update(layer, inputs[number], g)
        return y

    def outputs(self, x: Array) -> Array:
        """The network's outputs without learning: (N, inputs) words -> (N, outputs) words. Conversions round to the
        nearest."""
        for layer in self.layers:
            converter = layer.spec.tensors.inputs
            operand: Operand = Continuous(x)
            if converter is not None:
                nearest = Converter(table=converter.table, zone=converter.zone)
                operand = Discrete(nearest.word_codes(self.form, x), converter.table)
            x, _ = self._forward(layer, operand)
        return x

    def _forward(self, layer: FixedDense, x: Operand) -> tuple[Array, Array]:
        """Results of a layer and the derivative of its activation, words of 1.0 or 0."""
        sums = self.form.add(dot(self.form, layer.weights, x), layer.bias)
        return activate(layer.spec.activation, sums, self.form.one)

    def _update(self, layer: FixedDense, x: Operand, g: Operand) -> None:
        """Move a layer's parameters."""
        tensors = layer.spec.tensors
        form = self.form
        gradients = operate(form, "*", column(g), x)
        stochastic = [c for c in (tensors.weight_gradients, tensors.weights) if c is not None and c.draws]
        outputs, inputs = gradients.shape
        draws = MatrixDraws(self.generator, outputs, inputs, len(stochastic)) if stochastic else None
        if tensors.weight_gradients is not None:
            converter = tensors.weight_gradients
            gradients = word_of(form, Discrete(converter.word_codes(form, gradients, draws), converter.table))
        words = word_of(form, layer.weights) if layer.words is None else layer.words
        words = self._descended(words, gradients, layer.last_gradients)
        if tensors.weights is not None:
            words = tensors.weights.clipped(form, words)
            layer.codes = tensors.weights.word_codes(form, words, draws)
        layer.words = None if layer.words is None else words
        layer.last_gradients = gradients
        by_bias = word_of(form, g)
        layer.bias = self._descended(layer.bias, by_bias, layer.last_bias_gradients)
        layer.last_bias_gradients = by_bias

    def _descended(self, words: Array, gradients: Array, last: Array) -> Array:
        """Parameters after an update."""
        form = self.form
        rule = self.rule
        if rule.mu_places is not None:
            gradients = form.add(gradients, form.shift(last, rule.mu_places))
        return form.subtract(words, form.shift(gradients, rule.rate_places))

    def _converted(self, converter: Converter | None, words: Array) -> Operand:
        """A vector as codes, or as it is without a converter."""
        if converter is None:
            return Continuous(words)
        generator: Draws | None = self.generator if converter.draws else None
        return Discrete(converter.word_codes(self.form, words, generator), converter.table)


def transposed(operand: Operand) -> Operand:
    """A matrix with rows and columns exchanged."""
    return Discrete(operand.codes.T, operand.table) if isinstance(operand, Discrete) else Continuous(operand.words.T)


def column(operand: Operand) -> Operand:
    """A vector (N,) as a column (N, 1)."""
    if isinstance(operand, Discrete):
        return Discrete(operand.codes[:, None], operand.table)
    return Continuous(operand.words[:, None])
