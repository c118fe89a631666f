"""A perceptron with 1-bit weights and activations becomes a network of integers, which the hardware flow takes.

Its first layer may read grey values of all their bits. Batch normalisation and the sign of hidden layers become
thresholds (golden/layers/batch_norm.py); the class is the largest of the last layer's sums.
"""

from collections.abc import Sequence

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.batch_norm import BatchNorm, Moments, fold
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network

from .dense import DenseTrainer
from .mlp import MlpTrainer
from .norm import EPSILON


def to_model(name: str, mlp: MlpTrainer, preset: Sequence[Moments | None], source: Map, half: float) -> Model:
    """Make the network that computes what a trained perceptron does.

    Parameters
    ----------
    name : str
        Of the network.
    mlp : MlpTrainer
        All weights have 1 bit, of one magnitude. Hidden layers are normalised and have activation clip; the
        layers after them convert their inputs to 1 bit. The last layer has neither normalisation nor bias.
    preset : sequence of Moments or None
        Result of `MlpTrainer.preset`.
    source : Map
        One image, whose values in raster order are the inputs.
    half : float
        The perceptron was trained with inputs ``value / half - 1``.

    Returns
    -------
    Model

    Raises
    ------
    ValueError
        If a layer is not of that kind.
    """
    layers: list[Layer] = []
    arrays: dict[str, dict[str, Array]] = {}
    reads = source
    slope = 1 / half
    offset = -1.0
    for number, (layer, moments) in enumerate(zip(mlp.layers, preset), start=1):
        last = number == len(mlp.layers)
        _check(number, layer, last)
        signs, magnitude = _signs(number, layer)
        dense = Dense(name=f"dense_{number}", out_channels=layer.spec.outputs)
        arrays[dense.name] = {"weight": signs.reshape(dense.array_shapes(reads)["weight"])}
        layers.append(dense)
        if moments is not None:
            threshold = Threshold(name=f"threshold_{number}")
            norm = BatchNorm(
                name=threshold.name,
                gamma=layer.params["gamma"],
                beta=layer.params["beta"],
                mean=moments.mean,
                var=moments.variance,
                eps=EPSILON,
                scale=magnitude * slope,
                bias=magnitude * offset * signs.sum(axis=1),
            )
            step = 1 if number == 1 else 2  # of neighbouring sums: behind the first layer they are of +-1
            arrays[threshold.name] = fold(norm, *dense.accumulator_range(reads), step=step)
            layers.append(threshold)
            reads = threshold.output(dense.output(reads))
            slope = 1.0
            offset = 0.0
    network = Network(name=name, input=source, layers=tuple(layers), classes=tuple(map(str, range(dense.out_channels))))
    return Model(network, arrays)


def _check(number: int, layer: DenseTrainer, last: bool) -> None:
    """Refuse a layer that the network can't have."""
    spec = layer.spec
    what = f"layer {number}"
    inputs = spec.tensors.inputs
    if number > 1 and (inputs is None or set(inputs.table.values) != {1.0, -1.0}):
        raise ValueError(f"{what}: inputs must be converted to +1 and -1 for hardware")
    if last and (spec.norm or spec.bias or spec.activation != "none"):
        raise ValueError(f"{what}: the last layer must have neither normalisation, bias nor activation for hardware")
    if not last and not (spec.norm and spec.activation == "clip"):
        raise ValueError(f"{what}: hidden layers must have normalisation and activation clip for hardware")
    if number == 1 and inputs is not None:
        raise ValueError(f"{what}: inputs of the first layer must be continuous for hardware")


def _signs(number: int, layer: DenseTrainer) -> tuple[Array, float]:
    """The signs of a layer's weights, int64, and their magnitude."""
    weights = layer.weights(nearest=True)
    magnitude = float(np.abs(weights).max())
    if (np.abs(weights) != magnitude).any():
        raise ValueError(f"layer {number}: weights must have one magnitude for hardware, got {magnitude:g} and others")
    return np.sign(weights).astype(np.int64), magnitude
