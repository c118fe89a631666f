"""A training: layers of a perceptron, which of their tensors are discrete, and constants (C1, C13 to C18)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bitloom.golden.discrete.table import CodeTable
from bitloom.golden.integers import make_fields_plain

from . import instruction as isa

ACTIVATIONS = {"none": None, "relu": (isa.RELU, isa.RELU_SLOPE), "clip": (isa.CLIP, isa.CLIP_SLOPE)}
"""Activation and slope of each name; clip is the hard tanh, which clips to [-1, 1]."""


@dataclass(frozen=True)
class Kind:
    """How a tensor is kept: continuous, or as codes of a table."""

    table: int = 0
    """0: continuous words; else the number of the table."""
    chance: bool = False
    """It is converted by chance, not to the nearest."""

    def __post_init__(self) -> None:
        make_fields_plain(self)


@dataclass(frozen=True, kw_only=True)
class DenseLayer:
    """One layer of a perceptron as the machine trains it."""

    inputs: int
    outputs: int
    activation: str = "relu"
    """"relu", "clip" or "none"."""
    weights: Kind = field(default_factory=Kind)
    master: bool = False
    """Discrete weights have continuous master weights."""
    gradients: Kind = field(default_factory=Kind)
    """Of the weight gradients."""
    results: Kind = field(default_factory=Kind)
    """Of what leaves the activation: the inputs of the next layer."""
    errors: Kind = field(default_factory=Kind)
    """Of the input gradients."""

    def __post_init__(self) -> None:
        make_fields_plain(self)
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"layer: activation must be one of {', '.join(ACTIVATIONS)}, got {self.activation!r}")
        for name in ("inputs", "outputs"):
            if getattr(self, name) < 1:
                raise ValueError(f"layer: {name} must be 1 or more, got {getattr(self, name)}")

    @property
    def continuous(self) -> bool:
        """Whether the machine keeps words of the weights."""
        return self.weights.table == 0 or self.master


@dataclass(frozen=True, kw_only=True)
class Training:
    """The layers that are trained, and the constants of the training."""

    layers: tuple[DenseLayer, ...]
    """The outputs of each are the inputs of the next."""
    rate_places: int = 5
    """k of the learning rate 2^-k."""
    mu_places: int | None = None
    """k of mu = 2^-k, None for mu = 0."""
    tables: Mapping[int, tuple[CodeTable, int]] = field(default_factory=dict)
    """mapping of int to (CodeTable, int): table and zone by number."""
    inputs: Kind = field(default_factory=Kind)
    """Of the first layer's inputs; codes are sent as codes."""
    seed: int = 1
    """State of the generator, 1 to 2^32 - 1."""

    def __post_init__(self) -> None:
        make_fields_plain(self)
        if not self.layers:
            raise ValueError("training: layers must be one or more, got none")
        for before, after in zip(self.layers, self.layers[1:]):
            if before.outputs != after.inputs:
                raise ValueError(
                    f"training: a layer must have as many inputs as the one before has outputs, {before.outputs}, "
                    f"got {after.inputs}"
                )

    def kind_of_inputs(self, number: int) -> int:
        """Kind of the inputs of layer ``number``, as an instruction says it."""
        return self.layers[number - 1].results.table if number else self.inputs.table

    @property
    def multiplications(self) -> int:
        """Products with a weight or a weight's gradient that a sample takes: forward, backward, dw."""
        sizes = [layer.inputs * layer.outputs for layer in self.layers]
        return 3 * sum(sizes) - sizes[0]
