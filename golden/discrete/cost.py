"""The cost of training: bits of memory, and products of a sample.

Continuous numbers count as float32. Sums are not counted, nor products with a constant 2^-k, which cost no more than a
sum: means over a batch, which is a power of two, and weights that are smaller by some places. Root, quotient and loss
are left out, too: there are a few for each neuron and batch, or each output and sample.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .converter import Converter
from .dense import DenseSpec
from .rule import UpdateRule

REAL_BITS = 32
"""Of a continuous number."""


@dataclass(frozen=True)
class Cost:
    """Memory and products."""

    parameter_bits: float
    """Bits a parameter, between updates: weights, or their master copy and its codes; gamma, beta and biases; what the
    rule remembers of each. A mean over all parameters."""
    batch_bits: int
    """Bits of a batch between its forward and its backward pass: inputs and f' of each layer, and normalised sums."""
    multiplications: float
    shifts: float
    look_ups: float
    """multiplications, shifts, look_ups: products of a sample of which no, one or both factors are codes, which is what
    the arithmetic unit needs for them (C8 to C10). Samples of a batch share the products of its update."""


def training_cost(inputs: int, specs: Sequence[DenseSpec], rule: UpdateRule, batch: int) -> Cost:
    """Bits of memory, and operations of a sample, that training a perceptron takes.

    Parameters
    ----------
    inputs : int
        Of the first layer.
    specs : sequence of DenseSpec
    rule : UpdateRule
    batch : int
        Images of a batch.

    Returns
    -------
    Cost
    """
    parameters = 0
    parameter_bits = 0
    image_bits = 0
    counts = [0.0, 0.0, 0.0]  # products, by the number of codes among their factors
    for number, spec in enumerate(specs):
        tensors = spec.tensors
        weights = inputs * spec.outputs
        others = spec.outputs * (2 if spec.norm else int(spec.bias))  # gamma and beta, or biases
        remembered = _remembered(spec, rule)
        parameters += weights + others
        master = tensors.weights is not None and tensors.master
        parameter_bits += weights * (_bits(tensors.weights) + REAL_BITS * master) + others * REAL_BITS
        image_bits += inputs * _bits(tensors.inputs)

        x, w, g = (_discrete(converter) for converter in (tensors.inputs, tensors.weights, tensors.errors))
        counts[x + w] += weights  # forwards
        counts[g + x] += weights  # weight gradients
        if number > 0:
            counts[g + w] += weights  # backwards
        if spec.activation != "none":
            image_bits += spec.outputs * _bits(tensors.derivatives)
            counts[_discrete(tensors.derivatives)] += spec.outputs
        if spec.norm:
            image_bits += spec.outputs * REAL_BITS
            # Forwards the square, times inverse, times gamma; backwards by gamma, its share, times gamma and inverse.
            # The product of gamma and inverse is made once for a batch.
            counts[0] += spec.outputs * (6 + 1 / batch)
        if rule.name == "source":
            moved = _discrete(tensors.weight_gradients) if not rule.remembers else 0
        else:
            moved = _discrete(remembered)
        counts[moved] += weights / batch  # times rate
        counts[0] += others / batch
        if rule.remembers:
            parameter_bits += weights * _bits(remembered) + others * REAL_BITS
            counts[_discrete(remembered)] += weights / batch  # times mu
            counts[0] += others / batch
        inputs = spec.outputs
    return Cost(parameter_bits / parameters, image_bits * batch, *counts)


def _bits(converter: Converter | None) -> int:
    """Bits of a number of a tensor."""
    return REAL_BITS if converter is None else converter.table.bits


def _discrete(converter: Converter | None) -> int:
    """1 if a tensor has codes, else 0."""
    return int(converter is not None)


def _remembered(spec: DenseSpec, rule: UpdateRule) -> Converter | None:
    """The converter of what the rule remembers of weights: its own, or that of the gradients; None of words."""
    tensors = spec.tensors
    if tensors.memory is not None:
        return tensors.memory
    return tensors.weight_gradients if rule.name == "source" or not rule.remembers else None
