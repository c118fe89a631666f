"""One layer of a multilayer perceptron in training: forward, backward, update (C13 to C18, C20).

    x -> [inputs] -> z = W x -> normalise, or add a bias -> activation -> y            W from [weights]
    dy -> times f', from [derivatives] -> back through normalise -> g, [errors] -> dx = g W and dW = x g
    dW, [weight gradients] -> update rule, which remembers [memory]

Names in brackets are tensors that may be discrete (`DiscreteTensors`): a converter makes codes of them, and the codes'
values go on. The derivative of a conversion counts as 1 (straight through), so the derivative by a code's value is also
that by what was converted.
"""

from dataclasses import dataclass, field
from functools import partial
from math import sqrt
from typing import NamedTuple

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.integers import make_fields_plain
from bitloom.golden.layers.batch_norm import Moments
from bitloom.golden.training.checkpoint import check_range
from bitloom.golden.training.reproducible import random_signs

from .activation import ACTIVATIONS, activate
from .converter import Converter
from .lfsr import Lfsr
from .norm import NormTape, normalise, normalise_backward
from .rule import UpdateRule
from .table import MOST_EXPONENT


@dataclass(frozen=True, kw_only=True)
class DiscreteTensors:
    """Which tensors of a layer are discrete (C1), each by its converter; None is continuous."""

    inputs: Converter | None = None
    weights: Converter | None = None
    derivatives: Converter | None = None
    errors: Converter | None = None
    weight_gradients: Converter | None = None
    memory: Converter | None = None
    """inputs, weights, derivatives, errors, weight_gradients, memory: x; W; f'; the layer's errors g; dW;
    what the update rule remembers of each weight."""
    master: bool = True
    """Whether discrete weights have a continuous master copy, which is updated and converted anew for each batch.
    Without it codes are all that is kept of weights: the updated value of each code is converted at once (C18)."""


@dataclass(frozen=True, kw_only=True)
class DenseSpec:
    """A layer before training."""

    outputs: int
    """Neurons, >= 1."""
    activation: str = "relu"
    """"relu", "clip" or "none"."""
    norm: bool = True
    """Whether sums are normalised over the batch."""
    bias: bool = True
    """Whether sums that are not normalised get a bias."""
    places: int = 0
    """0 to 31. Products are those with weights times 2^-places, forwards and backwards, so that sums of large codes are
    not too large without normalisation. The derivative by a weight counts as that by the weight times 2^-places."""
    tensors: DiscreteTensors = field(default_factory=DiscreteTensors)

    def __post_init__(self) -> None:
        make_fields_plain(self)
        if type(self.outputs) is not int or self.outputs < 1:
            raise ValueError(f"layer: outputs must be an integer >= 1, got {self.outputs!r}")
        if type(self.places) is not int or not 0 <= self.places <= MOST_EXPONENT:
            raise ValueError(f"layer: places must be an integer, 0..{MOST_EXPONENT}, got {self.places!r}")
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"layer: activation must be one of {', '.join(ACTIVATIONS)}, got {self.activation!r}")


class DenseTape(NamedTuple):
    """Values of the forward pass that the backward step needs."""

    x: Array
    weights: Array
    norm: NormTape | None
    derivative: Array


class DenseTrainer:
    """A layer with its parameters.

    Parameters
    ----------
    spec : DenseSpec
    inputs : int
    generator : Lfsr
        Of all stochastic conversions.
    key : int
        Names the random numbers of the weights at the start.

    Attributes
    ----------
    spec : DenseSpec
    params : dict of str to array
        ``weight`` (outputs, inputs) floats: the master copy, or the values of the codes; ``gamma`` and ``beta``, or
        ``bias`` if there is one, (outputs,).
    memory : dict of str to array
        Memory of the update rule, of each.
    """

    def __init__(self, spec: DenseSpec, inputs: int, generator: Lfsr, *key: int) -> None:
        self.spec = spec
        self.generator = generator
        weight = random_signs((spec.outputs, inputs), *key)
        converter = spec.tensors.weights
        grows = spec.norm and spec.tensors.master
        if converter is None or (grows and not converter.draws and converter.table.bits > 1):
            # He: keeps the variance of sums after ReLU. Where the nearest of several magnitudes is taken, most weights
            # then begin with the smallest and grow as they learn; where only signs are taken, the zone is as good, and
            # without normalisation the sums of the smallest are too small to learn from.
            weight *= sqrt(6 / inputs)
        else:
            weight *= converter.zone  # spread over the whole zone (C18)
            if not spec.tensors.master:
                weight = self._converted(converter, weight)
        names = ("gamma", "beta") if spec.norm else ("bias",) * spec.bias
        self.params = {"weight": weight, **{name: np.zeros(spec.outputs) for name in names}}
        if spec.norm:
            self.params["gamma"] += 1
        self.memory = {name: np.zeros_like(value) for name, value in self.params.items()}
        self.memory["weight"] = self._converted(spec.tensors.memory, self.memory["weight"])  # there may be no code of 0

    def weights(self, nearest: bool = False) -> Array:
        """The weights of all products, (outputs, inputs): of a master copy, its codes' values; times 2^-places.

        With ``nearest`` the master copy is rounded to the nearest codes, as for use after training.
        """
        converter = self.spec.tensors.weights if self.spec.tensors.master else None
        return self._converted(converter, self.params["weight"], nearest) * 2.0**-self.spec.places

    def forward(self, x: Array, preset: Moments | None = None, nearest: bool = False) -> tuple[Array, DenseTape]:
        """The layer's output.

        Parameters
        ----------
        x : (N, inputs) floats
        preset : Moments, optional
            Mean and variance to normalise with, by default those of the batch.
        nearest : bool
            Whether conversions by chance round to the nearest code instead, as for use after training.

        Returns
        -------
        (N, outputs) floats
        DenseTape
            For `backward`.
        """
        weights = self.weights(nearest)
        x = self._converted(self.spec.tensors.inputs, x, nearest)
        z = x @ weights.T
        tape = None
        if self.spec.norm:
            z, tape = normalise(z, self.params["gamma"], self.params["beta"], preset)
        elif self.spec.bias:
            z = z + self.params["bias"]
        y, derivative = activate(self.spec.activation, z)
        return y, DenseTape(x, weights, tape, self._converted(self.spec.tensors.derivatives, derivative))

    def backward(self, tape: DenseTape, gradient: Array) -> tuple[Array, dict[str, Array]]:
        """The derivatives of `forward`.

        Parameters
        ----------
        tape : DenseTape
        gradient : (N, outputs) floats
            Derivative of each image's loss by the layer's output.

        Returns
        -------
        (N, inputs) floats
            By the layer's input.
        dict of str to array
            By each parameter: means over the batch.
        """
        gradient = gradient * tape.derivative  # C14
        slopes = {}
        if tape.norm is not None:
            gradient, slopes["gamma"], slopes["beta"] = normalise_backward(tape.norm, self.params["gamma"], gradient)
        gradient = self._converted(self.spec.tensors.errors, gradient)
        if "bias" in self.params:
            slopes["bias"] = gradient.sum(axis=0)
        slopes["weight"] = gradient.T @ tape.x  # C16
        slopes = {name: slope / len(gradient) for name, slope in slopes.items()}
        slopes["weight"] = self._converted(self.spec.tensors.weight_gradients, slopes["weight"])
        return gradient @ tape.weights, slopes  # C15

    def update(self, slopes: dict[str, Array], rule: UpdateRule, share: float = 1.0) -> None:
        """Move each parameter by its derivative; ``share`` is that of the rule's rate (C17, C18)."""
        memory = self.spec.tensors.memory
        for name, slope in slopes.items():
            of_weights = name == "weight"
            convert = partial(self._converted, memory) if of_weights and memory is not None else None
            change, self.memory[name] = rule.change(
                slope, self.memory[name], share, of_neuron=not of_weights, convert=convert
            )
            self.params[name] = self.params[name] - change
        converter = self.spec.tensors.weights
        if converter is not None:
            weight = np.clip(self.params["weight"], -converter.zone, converter.zone)
            self.params["weight"] = weight if self.spec.tensors.master else self._converted(converter, weight)

    def check_weights(self, name: str, weight: Array, memory: Array) -> None:
        """Refuse saved weights, and a memory of them, that `update` can't make: ValueError unless they lie in the zone
        or are values of codes."""
        tensors = self.spec.tensors
        if tensors.weights is not None:
            check_range(name, weight, -tensors.weights.zone, tensors.weights.zone)
            if not tensors.master:
                _check_values(name, weight, tensors.weights)
        if tensors.memory is not None:
            _check_values(f"{name}.memory", memory, tensors.memory)

    def _converted(self, converter: Converter | None, x: Array, nearest: bool = False) -> Array:
        """The values of a matrix's codes, a draw an element where they are by chance; without a converter itself."""
        if converter is None:
            return x
        if nearest:
            return Converter(table=converter.table, zone=converter.zone).values(x)
        return converter.values(x, self.generator)


def _check_values(name: str, array: Array, converter: Converter) -> None:
    """Refuse saved numbers that are no values of codes."""
    if not np.isin(array, converter.table.real).all():
        values = ", ".join(f"{value:g}" for value in converter.table.values)
        raise ValueError(f"state: {name} must be values of codes, {values}, got others")
